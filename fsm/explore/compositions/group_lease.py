"""Composition for the lease of a node, measured by the node's clock and by the engine's.

Participant: `fsm.group.membership`, with an engine that removes a row `GROUP_LEASE` seconds after
it has written it. Renewals and answers take any time, are lost, or come twice; the process is
suspended for any time, and then gets everything that came meanwhile.

Node and engine are one participant, since each participant of a composition has its own clock.

Left out, and why the result is still valid:

* The actions of a member: it calls `may_write` before each, and that result is checked here.
* An engine that ends leases early: no node can notice; it is told (composition `group`).
"""

import math
from typing import Final

from typing_extensions import override

from fsm.explore import composition as plan
from fsm.explore.composition import Call, Channel, Condition, Event, UnsafeError
from fsm.group.kinds import Holder, NodeRow
from fsm.group.membership import MembershipCore, MembershipPort, PutLease
from fsm.group.row_form import write_row
from fsm.machines.group_membership import State
from specs.limits.group import GROUP_LEASE

PLACE: Final = "lease"
_NODE: Final = "a"
_PUTS: Final = 4
"""Number of requests that reach the engine in one run; then it becomes unreachable."""
_ANSWER: Final = 2.0
"""Seconds after which a request counts as unanswered."""


class Lease(plan.Host, MembershipPort):
    """Node and engine, with the row that is the node's lease.

    Attributes:
        core: The node's core.
        row: The row; None: no row exists.
        ends: The time at which the engine removes it.
        is_stopped: Whether the node's process is suspended.
        boots: Number of times the node has joined.
        puts: Number of requests that may still reach the engine.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.core = MembershipCore(_NODE, self)
        self.row: NodeRow | None = None
        self.revision = 0
        self.ends = math.inf
        self.is_stopped = False
        self.boots = 0
        self.puts = _PUTS
        self._asked: tuple[int, float] | None = None
        # Rows and answers that arrive, in order; None: the process resumes.
        self._waiting: list[tuple[NodeRow, int] | Call | None] = []

    @override
    def deadline(self) -> float:
        if self.is_stopped:
            return self.ends
        due = self.core.deadline() if self.puts or self.core.may_write(self.now) else math.inf
        late = math.inf if self._asked is None else self._asked[1] + _ANSWER
        return min(due, late, self.ends)

    @override
    def time_over(self) -> None:
        if self.now >= self.ends:
            self.row, self.ends = None, math.inf
            self.revision += 1
        if self.is_stopped:
            return self._check()
        if self._asked is not None and self.now >= self._asked[1] + _ANSWER:
            self._take_outcome(Call("take_silence", (self._asked[0],)))
        self.core.tick(self.now)
        return self._check()

    @override
    def take(self, call: Call) -> None:
        super().take(call)
        self._check()

    def join(self) -> None:
        self.boots += 1
        self.core.join(self.boots, self.now)
        self.core.begin_watch(self.now)
        self.core.end_list(self.now)

    def stop(self) -> None:
        self.is_stopped = True

    def resume(self) -> None:
        self.is_stopped = False
        self._take_news(None)

    def take_answer(self, answer: Call) -> None:
        """Pass the engine's answer to a renewal to the node."""
        self._take_news(answer)

    def _take_news(self, news: tuple[NodeRow, int] | Call | None) -> None:
        self._waiting.append(news)
        while self._waiting and not self.is_stopped:
            match self._waiting.pop(0):
                case None:
                    self.core.tick(self.now)
                case Call() as answer:
                    self._take_outcome(answer)
                case (row, revision):
                    self.core.take_node(_NODE, row, revision, self.now)

    def write(self, put: PutLease) -> None:
        """Write the row as the engine does, and answer."""
        if put.expected == (self.revision if self.row is not None else 0):
            self.revision += 1
            self.row, self.ends = put.row, self.now + GROUP_LEASE
            answer = Call("take_written", (put.number, self.revision))
            self._take_news((put.row, self.revision))
        else:
            value = None if self.row is None else write_row(self.row)
            answer = Call("take_conflict", (put.number, value, self.revision))
        self.send(f"{PLACE} as answer", "take_answer", answer)

    def _take_outcome(self, answer: Call) -> None:
        if self._asked is not None and answer.args[0] == self._asked[0]:
            self._asked = None
        self.give(self.core, answer)

    @override
    def put_lease(self, lease: PutLease) -> None:
        if self.puts:
            self.puts -= 1
            self._asked = lease.number, self.now
            self.send(PLACE, "write", lease)

    def _check(self) -> None:
        if self.core.may_write(self.now) and (self.row is None or self.row.holder != self.here):
            raise UnsafeError("a node takes itself for a member, and the engine does not")

    @property
    def here(self) -> Holder:
        """The present process of the node."""
        return Holder(_NODE, self.boots)


def _may_join(lease: Lease) -> bool:
    return not lease.is_stopped and lease.core.state in {None, State.FENCED}


def _has_ended(lease: Lease) -> bool:
    return lease.deadline() == math.inf and not lease.core.may_write(lease.now)


COMPOSITION: Final = plan.Composition(
    name="group-lease",
    places={PLACE: Lease},
    channels=(Channel(PLACE, PLACE), Channel(PLACE, PLACE, suffix=" as answer")),
    events=(
        Event("the node joins", PLACE, "join", _may_join, 2),
        Event(
            "the process stops", PLACE, "stop", lambda lease: not lease.is_stopped, is_fault=True
        ),
        Event("it goes on", PLACE, "resume", lambda lease: lease.is_stopped, None),
    ),
    ends=(Condition("the engine is away, and the node is no member", (PLACE,), _has_ended),),
    bounds=plan.Bounds(losses=1, duplicates=1, channel=2),
    horizon=2 * GROUP_LEASE,
)
"""Composition: a node renews its lease at a slow engine; its process may be suspended."""
