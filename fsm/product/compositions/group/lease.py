"""The lease of a node, by two clocks that agree: the node's own, and that of the engine.

Participant: `fsm.group.membership`, beside an engine that lets a row go `GROUP_LEASE` seconds
after it has written it. Renewals and answers take any time, are lost, or come twice; the process
is stopped for any time, and hears all that came meanwhile afterwards.

Node and engine are one place, as the places of a composition have clocks of their own.

Left out, and why that is no loss:

* What a member does: it asks `may_write` before, and that is what is looked at here.
* An engine that lets leases end early: no node can know. It hears of it (composition `group`).
"""

import math
from collections.abc import Hashable
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.group.kinds import Holder, NodeRow
from fsm.group.membership import MembershipCore, MembershipPort, PutLease
from fsm.group.row_form import write_row
from fsm.group.rows import Answered, Conflicted, Unanswered, Written
from fsm.machines.group_membership import State
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Host,
    Patience,
    Place,
    Plan,
    Situation,
    UnsafeError,
)
from specs.limits.group import GROUP_LEASE

PLACE: Final = "lease"
_NODE: Final = "a"
_PUTS: Final = 4
"""Requests that reach the engine in one run; then it is away for good."""
_ANSWER: Final = 2.0
"""Seconds after which a request counts as unanswered."""


@final
@attrs.frozen(slots=True)
class Answer:
    """The answer of the engine to a renewal."""

    said: Written | Conflicted

    @override
    def __str__(self) -> str:
        """The event in words."""
        is_made = isinstance(self.said, Written)
        return f"renewal {self.said.number} is {'made' if is_made else 'refused'}"


@final
class LeasePlace(Host, MembershipPort):
    """A node, and the row of the engine that is its lease.

    Attributes:
        core: The node's side.
        row: The row; None: there is none.
        ends: When it goes.
        is_stopped: Whether the node's process is.
        boots: How often the node has joined.
        puts: Requests that may still reach the engine.
    """

    def __init__(self) -> None:
        super().__init__()
        self.core = MembershipCore(_NODE, self)
        self.row: NodeRow | None = None
        self.revision = 0
        self.ends = math.inf
        self.is_stopped = False
        self.boots = 0
        self.puts = _PUTS
        self._asked: tuple[int, float] | None = None
        # Rows and answers that come, in order; None: the process goes on.
        self._waiting: list[tuple[NodeRow, int] | Written | Conflicted | None] = []

    @property
    def is_idle(self) -> bool:
        """True if it does nothing more by itself."""
        return self.deadline() == math.inf

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
            return self._look()
        if self._asked is not None and self.now >= self._asked[1] + _ANSWER:
            self._take_answer(Unanswered(self._asked[0]))
        self.core.tick(self.now)
        return self._look()

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case PutLease():
                self._write(happened)
            case Answer(said):
                self._waiting.append(said)
                self._hear()
            case "joins":
                self.boots += 1
                self.core.join(self.boots, self.now)
                self.core.begin_watch(self.now)
                self.core.end_list(self.now)
            case "stops":
                self.is_stopped = True
            case "goes on":
                self.is_stopped = False
                self._waiting.append(None)
                self._hear()
            case _:
                raise TypeError(happened)
        self._look()

    def _hear(self) -> None:
        while self._waiting and not self.is_stopped:
            match self._waiting.pop(0):
                case None:
                    self.core.tick(self.now)
                case (NodeRow() as row, int(revision)):
                    self.core.take_node(_NODE, row, revision, self.now)
                case Written() | Conflicted() as answer:
                    self._take_answer(answer)

    def _write(self, put: PutLease) -> None:
        said: Written | Conflicted
        if put.expected == (self.revision if self.row is not None else 0):
            self.revision += 1
            self.row, self.ends = put.row, self.now + GROUP_LEASE
            said = Written(put.number, self.revision)
            self._waiting.append((put.row, self.revision))
            self._hear()
        else:
            there = None if self.row is None else write_row(self.row)
            said = Conflicted(put.number, there, self.revision)
        self.send("answers", Answer(said))

    def _take_answer(self, answer: Answered) -> None:
        if self._asked is not None and answer.number == self._asked[0]:
            self._asked = None
        self.core.take_answer(answer, self.now)

    @override
    def step(self, step: Step) -> None:
        self.out.append(step)

    @override
    def put_lease(self, lease: PutLease) -> None:
        if self.puts:
            self.puts -= 1
            self._asked = lease.number, self.now
            self.send("asks", lease)

    def _look(self) -> None:
        if self.core.may_write(self.now) and (self.row is None or self.row.holder != self.here):
            raise UnsafeError("a node takes itself for a member, and the engine does not")

    @property
    def here(self) -> Holder:
        """This process of the node."""
        return Holder(_NODE, self.boots)


def _place(now: Situation) -> LeasePlace:
    return now.at(PLACE, LeasePlace)


def _may_join(now: Situation) -> bool:
    return not _place(now).is_stopped and _place(now).core.state in {None, State.FENCED}


_EVENTS: Final = (
    Event("the node joins", PLACE, "joins", when=_may_join, budget=2),
    Event(
        "the process stops",
        PLACE,
        "stops",
        when=lambda now: not _place(now).is_stopped,
        is_fault=True,
    ),
    Event("it goes on", PLACE, "goes on", when=lambda now: _place(now).is_stopped, budget=None),
)

_ENDS: Final = (
    End(
        "the engine is away, and the node is no member",
        (PLACE,),
        lambda now: _place(now).is_idle and not _place(now).core.may_write(_place(now).now),
    ),
)


def _compose(bounds: Bounds) -> Composition:
    return Composition(
        name="group-lease",
        about="A node renews its lease at an engine that is slow; its process may be stopped.",
        places=(Place(PLACE, LeasePlace),),
        channels=(Channel("asks", PLACE, PLACE), Channel("answers", PLACE, PLACE)),
        events=_EVENTS,
        ends=_ENDS,
        bounds=bounds,
        patience=Patience.NONE,
        horizon=2 * GROUP_LEASE,
    )


GROUP_LEASES: Final = Plan("group-lease", _compose, Bounds(losses=1, duplicates=1, channel=2))
"""Two clocks, and a lease."""
