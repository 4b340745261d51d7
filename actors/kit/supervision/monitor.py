"""The online monitor: what no table declares is seen the moment it is tried (OBS-06).

An actor steps its entities by their tables, and a step without a row is refused there: it
raises, and the state does not move. The error is a crash like any other, so what becomes of
the actor is its supervisor's decision. Every supervisor tells its monitor what a child
crashed with, and the monitor puts each refused step on record, wherever in the actor it was
tried: while it started or stopped, in a message, or in work beside the mailbox.
"""

from collections.abc import Iterator
from typing import final
from weakref import WeakSet

import structlog

from actors.kit.counting.counters import Counters
from actors.kit.trace import NULL_TRACER, Tracer, refused_fact
from fsm.errors import UndeclaredTransitionError
from specs.trace import ABSENT

__all__ = ["Monitor"]

_log = structlog.get_logger("actors.kit")


@final
class Monitor:
    """Traces, counts and logs the refused steps of one process, each once.

    Args:
        tracer: Where they are put on record.
        counters: Where they are counted, by machine; other parts of the process count there too.
    """

    def __init__(self, tracer: Tracer = NULL_TRACER, counters: Counters | None = None) -> None:
        self._tracer = tracer
        self.counters = Counters() if counters is None else counters
        self._told: WeakSet[UndeclaredTransitionError] = WeakSet()

    def crashed(self, actor: str, error: Exception) -> None:
        """Look for refused steps in what an actor crashed with; never waits or raises.

        Also in groups, and in what an error came after or from: an actor that has gone wrong
        may fail again while it stops. An error that goes on from actor to actor, as an answer
        or out of a start, is told by the first.
        """
        for one in _all_of(error):
            if isinstance(one, UndeclaredTransitionError) and one not in self._told:
                self._told.add(one)
                self._tell(actor, one)

    def restarted(self, actor: str) -> None:
        """Count that an actor is started again; its crash was told before."""
        self.counters.restart(actor)

    def _tell(self, actor: str, refused: UndeclaredTransitionError) -> None:
        self.counters.violation(refused.machine)
        self._tracer.record(actor, refused_fact(refused))
        _log.error(
            "monitor violation",
            actor=actor,
            machine=refused.machine,
            key=refused.key,
            state=str(refused.state or ABSENT),
            trigger=refused.trigger,
        )


def _all_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that it holds or came after, the oldest first; each once."""
    found: dict[int, BaseException] = {}
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            inside = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            before = (one.__cause__, one.__context__)
            waiting += [*inside, *(each for each in before if each is not None)]
    yield from reversed(found.values())
