"""A tracer that forwards everything, and feeds the dashboard.

Steps and table rows are rare at a node and always counted. Hops of messages are needed only while
an operator watches a connection: `hops` is then true even if no trace records them.
"""

import time
from typing import TYPE_CHECKING, Final, Unpack

import trio
from typing_extensions import override

from actors.kit.trace import More, PassingTracer, Tracer
from fsm.dashboard.fleet import Fleet, Watched
from fsm.engine import Step
from fsm.machines.registration import REGISTRATION
from specs.message import Message
from specs.trace import Fact, Kind, Op

if TYPE_CHECKING:
    from collections.abc import Callable


_NANO: Final = 1e9
_HOPS: Final = frozenset({Kind.MSG, Kind.AUTHZ})


def wall() -> float:
    """Return the seconds since 1970 UTC."""
    return time.time_ns() / _NANO


class Tap(PassingTracer):
    """The tracer of a node that has a dashboard.

    Args:
        tracer: Receives everything.

    Attributes:
        owner_of: Returns the runtime that owns an address now; None: no runtime.
    """

    def __init__(self, tracer: Tracer, fleet: Fleet, watched: Watched) -> None:
        super().__init__(tracer)
        self.steps = True
        self._has_hops = tracer.hops
        self.owner_of: Callable[[str], str | None] = lambda _: None
        self._fleet = fleet
        self._watched = watched

    def watch(self, runtime: str) -> bool:
        """Report the messages of a connection for a while; return False if too many are watched.

        Args:
            runtime: Address of the runtime of the connection.
        """
        is_watched = self._watched.ask(runtime, trio.current_time())
        self.hops = self._has_hops or bool(self._watched)
        return is_watched

    @override
    def record(self, actor: str, fact: Fact) -> None:
        if self._has_hops or self.sample or fact.k not in _HOPS:
            self._tracer.record(actor, fact)
        match fact:
            case Fact(k=Kind.MSG):
                self._watched.note_report(fact, wall())
            case Fact(k=Kind.TABLE, op=Op() as op, table=str(table), key=str(key), val=str(val)):
                self._fleet.row(op, table, key, val, wall())
            case Fact(k=Kind.SESSION, link=str(link), b=str(runtime), kind=str(form)):
                self._fleet.open_link(runtime, link, form)
            case Fact(k=Kind.LINK, op=Op.CLOSE, link=str(link)):
                self._fleet.close_link(link)
            case Fact(k=Kind.STATE, op=Op.REFUSED, machine=str(machine), key=str(key)):
                self._fleet.note_refusal(machine, key, fact.old or "", fact.cause or "", wall())
            case _:
                pass

    @override
    def step(self, actor: str, step: Step) -> None:
        self._tracer.step(actor, step)
        owner = None
        if step.machine == REGISTRATION.name and step.old is None:
            owner = self.owner_of(step.key.partition("|")[0])
        self._fleet.take_step(step, wall(), owner or "")

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        if self._has_hops or self.sample:
            self._tracer.message(actor, op, message, **more)
        if not self._watched:
            return
        self._watched.expire(trio.current_time())
        if not self._watched:
            self.hops = self._has_hops
            return
        runtime = self._fleet.runtime_of(more.get("link", ""))
        why = more.get("reason") or more.get("listener") or more.get("why") or ""
        self._watched.note_message(op, message, runtime, why, wall())
