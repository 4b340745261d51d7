"""A node of a group: its cores, hosted as the bus of a node does."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Final, final

from typing_extensions import override

from fsm.engine import Step
from fsm.group.homes import Homes
from fsm.group.kinds import Holder, NodeRow, SessionRow, node_key, session_key
from fsm.group.membership import MembershipCore, MembershipPort, PutLease
from fsm.group.moves import Effect as Move
from fsm.group.moves import GiveUp, MovesCore
from fsm.group.order import SenderOrder
from fsm.group.row_form import write_row
from fsm.group.rows import (
    Answered,
    Applied,
    Change,
    Current,
    Done,
    Effect,
    Forget,
    Gap,
    Lost,
    Put,
    Read,
    Rejected,
    Remove,
    RowNews,
    RowsCore,
    Seen,
    Unanswered,
    Withdrawn,
    Written,
)
from fsm.machines.group_membership import State
from fsm.product.composition import (
    Host,
    UnsafeError,
)
from fsm.product.compositions.group.engine import (
    KEY,
    RUNTIME,
    Answer,
    Ask,
    Lapse,
    News,
    Watch,
    Write,
    beginning,
    session_of,
)
from specs.limits.group import GROUP_PATIENCE, GROUP_RETRY

_LATE: Final = 1_000.0
"""Seconds after which a lease is over by any clock."""


@final
class NodePlace(Host, MembershipPort):
    """A node of the group.

    Attributes:
        is_alive: Whether its process runs.
        is_asked: Whether a link waits for the session.
        heard: The newest revision that its watch has brought.
        boots: How many processes it has had, or epochs of one.
        reads: How many rows it reads.
    """

    def __init__(self, node: str, nodes: Sequence[str], *, is_held: bool) -> None:
        super().__init__()
        self.node = node
        self.boots = 1
        self.heard = self.reads = 0
        self.is_alive = True
        self.is_over = False
        self.is_asked = False
        self._unanswered: dict[tuple[int, bool], None] = {}
        self._wanted: dict[int, Put] = {}
        self._due: list[Callable[[], None]] = []
        self._begin()
        if node == nodes[0] and is_held:
            self.moves.keep(session_of(self.here), None)
        self._join()
        for number, (key, value) in enumerate(beginning(nodes, is_held=is_held).items(), 1):
            if key == node_key(node):
                self._member(partial(self.membership.take_answer, Written(1, number)), self.now)
            self._hear(Seen(key, value, number))
            self.heard = number
        self._hear(Current(""))
        self._unanswered.clear()
        self.out.clear()

    def _begin(self) -> None:
        self.membership = MembershipCore(self.node, self)
        self.rows = RowsCore()
        self.moves = MovesCore()
        self.homes = Homes(self.membership.is_live, {}, SenderOrder(self.rows, self.moves))
        self.is_current = False
        self._told = 0, 0

    def _join(self) -> None:
        self._member(partial(self.membership.join, self.boots), self.now)
        self._watched(Gap(""))
        self.send(f"{self.node}-says", Watch(self.here))

    def _tell(self, revision: int, *, is_there: bool) -> None:
        """Note what is known of the row of the session: its revision, and up to which one."""
        if revision >= self._told[1]:
            self._told = (revision if is_there else 0), revision

    @property
    def here(self) -> Holder:
        """This process."""
        return Holder(self.node, self.boots)

    @property
    def has_copy(self) -> bool:
        """True if it has the session, as far as it knows."""
        return RUNTIME in self.moves.own

    @property
    def is_member(self) -> bool:
        """True if it serves runtimes."""
        return self.is_alive and self.is_current and self.membership.may_write(self._clock)

    @property
    def is_fenced(self) -> bool:
        """True if it has to join anew."""
        return self.is_alive and self.membership.state is State.FENCED

    @property
    def _clock(self) -> float:
        return _LATE if self.is_over else self.now

    # ---- what happens

    @override
    def deadline(self) -> float:
        is_due = self._unanswered or self._is_left or self._must_join
        return self.now if is_due and self.is_alive else math.inf

    @property
    def _must_join(self) -> bool:
        return self.membership.state is State.JOINING

    @property
    def _is_left(self) -> bool:
        """True if a session waits here for a runtime that does not come."""
        is_tidier = self.is_member and self.membership.tidies(KEY)
        return is_tidier and self.homes.deadline() < math.inf and self.rows.is_settled

    @override
    def time_over(self) -> None:
        if self._unanswered:
            for number, is_lease in tuple(self._unanswered):
                self._answered(Unanswered(number), is_lease=is_lease)
        elif self._must_join:
            self._member(self.membership.tick, self.membership.deadline())
        else:
            for runtime in self.homes.overdue(self.now + GROUP_PATIENCE):
                self.homes.session_over(runtime)
                self._rows(self.rows.feed(Remove(session_key(runtime)), self.now))
        self._flush()

    @override
    def take(self, happened: Hashable) -> None:
        if not self.is_alive and happened != "starts":
            return
        match happened:
            case Answer(outcome, to, is_lease) if to == self.here:
                self._answered(outcome, is_lease=is_lease)
            case News(seen, to, revision) if to == self.here:
                self.heard = revision
                self.reads -= isinstance(seen, Seen) and seen.is_read
                self._hear(seen)
            case Answer() | News():
                return
            case str(wanted):
                self._do(wanted)
            case _:
                raise TypeError(happened)
        self._flush()

    def _do(self, wanted: str) -> None:
        match wanted:
            case "comes":
                self.is_asked = True
                before = self.rows.row(KEY)
                self.homes.session_over(RUNTIME)
                self._moves([self.moves.keep(session_of(self.here), before, 1)])
            case "leaves":
                self.is_asked = False
                self._moves(self.moves.end(RUNTIME))
            case "over":
                self.is_over = True
                self.send(f"{self.node}-says", Lapse(self.here))
                self._member(self.membership.tick, self._clock)
            case "drains":
                self._member(self.membership.leave, self.now)
            case "goes" | "dies":
                if wanted == "goes":
                    self._member(self.membership.go, self.now)
                self._end()
            case "starts" | "joins":
                self.is_alive = True
                self._anew()
            case _:
                raise TypeError(wanted)

    def _end(self) -> None:
        """End the process; its lease ends by itself."""
        self.send(f"{self.node}-says", Lapse(self.here))
        self.is_alive = self.is_over = self.is_asked = False
        self._unanswered.clear()
        self._wanted.clear()
        self._begin()

    def _anew(self) -> None:
        self.boots += 1
        self.is_over, self.heard, self.reads = False, 0, 0
        self._join()

    # ---- as the bus of a node does

    def _answered(self, outcome: Answered, *, is_lease: bool) -> None:
        self._unanswered.pop((outcome.number, is_lease), None)
        if is_lease:
            self._member(partial(self.membership.take_answer, outcome), self.now)
        else:
            self._told_by(outcome)
            self._rows(self.rows.feed(outcome, self.now))

    def _told_by(self, outcome: Answered) -> None:
        wanted = self._wanted.pop(outcome.number, None)
        if wanted is None or isinstance(outcome, Unanswered):
            return
        there = wanted.value if isinstance(outcome, Written) else outcome.value
        self._tell(outcome.revision, is_there=there is not None)

    def _hear(self, seen: Seen | Current) -> None:
        if isinstance(seen, Seen) and seen.key == KEY:
            self._tell(seen.revision, is_there=seen.value is not None)
        if isinstance(seen, Current):
            self._watched(seen)
        else:
            self._rows(self.rows.feed(seen, self.now))
        self.is_current = self.rows.is_current

    def _watched(self, happened: Gap | Current) -> None:
        self._rows(self.rows.feed(happened, self.now))
        watch = self.membership
        begins = isinstance(happened, Gap)
        self._member(watch.begin_watch if begins else watch.end_list, self.now)

    def _member(self, call: Callable[[float], None], now: float) -> None:
        """Call the membership; perform then what would lead back to it."""
        call(now)
        due, self._due = self._due, []
        for perform in due:
            perform()

    @override
    def step(self, step: Step) -> None:
        self.out.append(step)

    @override
    def put_lease(self, lease: PutLease) -> None:
        self._unanswered[lease.number, True] = None
        put = Put(lease.number, lease.row.key, write_row(lease.row), lease.expected)
        self.send(f"{self.node}-asks", Write(put, self.here, is_lease=True))

    @override
    def drop_lease(self, key: str, expected: int) -> None:
        put = Put(0, key, None, expected)
        self.send(f"{self.node}-asks", Write(put, self.here, is_lease=True))

    @override
    def fence(self, why: str) -> None:
        self._due.append(self._fence)

    @override
    def add_node(self, row: NodeRow) -> None:
        self.remove_node(row.holder)

    @override
    def remove_node(self, holder: Holder) -> None:
        self._due.append(lambda: self.homes.node_moved(holder.node, self.now))

    def _fence(self) -> None:
        self._unanswered.clear()
        self._wanted.clear()
        self.is_current, self._told = False, (0, 0)
        self._moves(self.moves.fenced())
        self._rows(self.rows.feed(Forget(), self.now))

    def _rows(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Applied(NodeRow(holder) as row, revision):
                    seen = partial(self.membership.take_node, holder.node, row, revision)
                    self._member(seen, self._clock)
                case Withdrawn(NodeRow(holder), revision):
                    seen = partial(self.membership.take_node, holder.node, None, revision)
                    self._member(seen, self._clock)
                case Done():
                    self.is_asked = False
                case Read():
                    self.reads += 1
                    self.send(f"{self.node}-says", Ask(effect, self.here))
                case Applied() | Withdrawn() | Lost():
                    self._session(effect)
                case Rejected():
                    raise UnsafeError("a node refuses a row that a node has written")

    def _session(self, effect: RowNews) -> None:
        if isinstance(effect, Applied) and effect.revision < self._told[1]:
            raise UnsafeError("a node applies an older version of a row than it knows")
        if isinstance(effect, Lost) and effect.tickets:
            self.is_asked = False
        self._moves(self.moves.feed(effect, self.here))
        there = None if isinstance(effect, Withdrawn) else self.rows.row(KEY)
        if isinstance(there, SessionRow) and there.holder != self.here:
            self.homes.session(there, self.now)
        else:
            self.homes.session_over(RUNTIME)

    def _moves(self, effects: Iterable[Move]) -> None:
        for effect in effects:
            match effect:
                case GiveUp():
                    self.is_asked = False
                case Change() | Remove():
                    self._rows(self.rows.feed(effect, self.now))

    def _flush(self) -> None:
        if not self.is_member:
            return
        for put in self.rows.writes(self.now + GROUP_RETRY):
            self._unanswered[put.number, False] = None
            self._wanted[put.number] = put
            write = Write(put, self.here, self._told[0], self.is_over)
            self.send(f"{self.node}-asks", write)
