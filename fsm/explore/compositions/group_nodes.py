"""Compositions of the nodes of one domain: sessions move, leases end, the engine answers late.

Participants at each node: `fsm.group.membership`, `.rows`, `.moves` and `.homes`, hosted as the bus
of a node does; and a model of the engine, the shared store: rows with revisions, writes that expect
a revision, watches that report changes.

Faults and events: a write or its answer is lost, or a write comes twice; an answer comes after the
request was abandoned; runtimes connect to any node at any time, and leave; a node finds its lease
over by its own clock; a node dies, and comes back as another process with the same id.

The engine learns at any later time that a node found its lease over, or died: the composition
`group-lease` shows that a lease never ends earlier.

Left out, and why the result is still valid:

* Links, tokens and messages: the engine knows only the row of a session.
* Renewals: they change no row but the node's own.
* Time: timers may expire whenever no other input is waiting, and once while another input is.
"""

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.effects import CoreHost, deferred
from fsm.explore import composition as plan
from fsm.explore.composition import Call, Condition, Event, UnsafeError
from fsm.group import kinds
from fsm.group.homes import Homes
from fsm.group.membership import MembershipCore, MembershipPort, PutLease
from fsm.group.moves import GiveUp, MovesCore, MovesPort
from fsm.group.row_form import read_row, write_row
from fsm.group.rows import Put, RowsCore, RowsPort
from fsm.machines.group_membership import State
from fsm.session.node_session_io import PeerForm
from specs.limits.group import GROUP_PATIENCE, GROUP_RETRY

ENGINE: Final = "engine"
RUNTIME: Final = "hyperty-runtime://a.ex/ra"
KEY: Final = kinds.session_key(RUNTIME)

_WATCH: Final = " by watch"
_WATCHED: Final = f"{ENGINE}{_WATCH}"
_STALE: Final = -1
_LATE: Final = 1_000.0
"""Seconds after which a lease is over by any clock."""


def _session_of(holder: kinds.Holder, epoch: int = 0) -> kinds.SessionRow:
    """Return the row of the session as held by a process; epoch 0: the epoch is unknown."""
    return kinds.SessionRow(RUNTIME, holder, epoch, PeerForm.OWN, "stub")


def _beginning(nodes: Sequence[str], *, is_held: bool) -> dict[str, bytes]:
    """Return the initial rows: all nodes are members, the first may have the session."""
    rows: list[kinds.GroupRow] = [kinds.NodeRow(kinds.Holder(node, 1)) for node in nodes]
    if is_held:
        rows.append(_session_of(kinds.Holder(nodes[0], 1), 1))
    return {row.key: write_row(row) for row in rows}


class Engine(plan.Host):
    """Model of the engine: rows with revisions, conditional writes, and watches.

    The engine raises an error for a write of a node that knew that its lease was over, or that did
    not know the row: accepting the write would hide the fault that is checked here.

    Attributes:
        rows: Value and revision of each row.
        revision: The last revision.
        watchers: The process of each node that watches the rows.
    """

    def __init__(self, place: str, nodes: Sequence[str], *, is_held: bool) -> None:
        super().__init__(place)
        rows = _beginning(nodes, is_held=is_held)
        self.rows = {key: (rows[key], number) for number, key in enumerate(rows, 1)}
        self.revision = len(rows)
        self.watchers = {node: kinds.Holder(node, 1) for node in nodes}

    def row(self, key: str) -> kinds.GroupRow | None:
        stored = self.rows.get(key)
        return None if stored is None else read_row(key, stored[0])

    def write(self, put: Put, by: kinds.Holder, known: int | None) -> None:
        """Make a write if the row has the expected revision, and answer the node.

        Args:
            put: A row, or the node's own.
            by: The process that writes.
            known: The revision of the row that the process knew when it wrote; 0: it knew of no
                row; -1: its lease was over by its own clock; None: it is the node's own row.
        """
        value, revision = self.rows.get(put.key, (None, 0))
        if put.expected in {revision, None}:
            if known is not None:
                self._check_write(put, known)
            self._set(put.key, put.value)
            answer = Call("take_written", (put.number, self.revision))
        else:
            answer = Call("take_conflict", (put.number, value, revision or put.expected))
        self.send(by.node, "take_lease_answer" if known is None else "take_row_answer", answer, by)

    def _check_write(self, put: Put, known: int) -> None:
        if known == _STALE:
            raise UnsafeError("the engine makes a write of a node that knew its lease was over")
        if known != self.rows.get(KEY, (b"", 0))[1]:
            raise UnsafeError("the engine makes a write over a row that its node did not know")
        current, row = self.row(KEY), None if put.value is None else read_row(KEY, put.value)
        if not isinstance(row, kinds.SessionRow) or not isinstance(current, kinds.SessionRow):
            return
        if row.holder != current.holder and row.epoch != current.epoch + 1:
            raise UnsafeError("a session changes its node, and its epoch is not the next one")

    def watch(self, by: kinds.Holder) -> None:
        self.watchers[by.node] = by
        for key, (value, revision) in sorted(self.rows.items(), key=lambda row: row[1][1]):
            self._notify(by, Call("take_row", (key, value, revision)))
        self._notify(by, Call("end_list"))

    def read(self, key: str, revision: int, by: kinds.Holder) -> None:
        value, revision = self.rows.get(key, (None, revision))
        self._notify(by, Call("take_read", (key, value, revision)))

    def end_lease(self, holder: kinds.Holder) -> None:
        self.watchers = {n: watcher for n, watcher in self.watchers.items() if watcher != holder}
        row = self.row(kinds.node_key(holder.node))
        if isinstance(row, kinds.NodeRow) and row.holder == holder:
            self._set(row.key, None)

    def _set(self, key: str, value: bytes | None) -> None:
        self.revision += 1
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value, self.revision
        for watcher in self.watchers.values():
            self._notify(watcher, Call("take_row", (key, value, self.revision)))

    def _notify(self, to: kinds.Holder, news: Call) -> None:
        self.send(f"{to.node}{_WATCH}", "take_news", news, to, self.revision)


@final
class Node(plan.Host, CoreHost, MembershipPort, RowsPort, MovesPort):
    """Node of the group: its cores, hosted as the bus of a node hosts them.

    Attributes:
        is_alive: Whether its process runs.
        is_asked: Whether a link waits for the session.
        heard: The newest revision that its watch has delivered.
        boots: Number of processes, or of epochs of one process, that it has had.
        reads: Number of rows it is reading.
    """

    def __init__(self, node: str, nodes: Sequence[str], *, is_held: bool) -> None:
        super().__init__(node)
        self.boots = 1
        self.heard = self.reads = 0
        self.is_alive = True
        self.is_over = self.is_asked = False
        self._unanswered: dict[tuple[Hashable, bool], None] = {}
        self._wanted: dict[Hashable, Put] = {}
        self.due = deque()
        self._begin()
        if node == nodes[0] and is_held:
            self.moves.keep(_session_of(self.here), None)
        self._join()
        for number, (key, value) in enumerate(_beginning(nodes, is_held=is_held).items(), 1):
            if key == kinds.node_key(node):
                self._take_answer(Call("take_written", (1, number)), is_lease=True)
            self.take_row(key, value, number)
            self.heard = number
        self.end_list()
        self._unanswered.clear()
        self.out.clear()

    def _begin(self) -> None:
        self.membership = MembershipCore(self.place, self)
        self.rows = RowsCore(self)
        self.moves = MovesCore(self)
        self.homes = Homes(self.membership.is_live, {}, self.rows, self.moves)
        self.is_current = False
        self._known = 0, 0

    def _join(self) -> None:
        self._member(partial(self.membership.join, self.boots), self.now)
        self.rows.begin_watch("")
        self._member(self.membership.begin_watch, self.now)
        self.send(_WATCHED, "watch", self.here)

    def _note_known(self, revision: int, *, is_kept: bool) -> None:
        """Store the known revision of the session's row, and the newest revision heard about it."""
        if revision >= self._known[1]:
            self._known = (revision if is_kept else 0), revision

    @property
    def here(self) -> kinds.Holder:
        """The present process of this node."""
        return kinds.Holder(self.place, self.boots)

    @property
    def has_copy(self) -> bool:
        """True if the node believes that it has the session."""
        return RUNTIME in self.moves.own

    @property
    def is_member(self) -> bool:
        """True if the node may serve runtimes."""
        return self.is_alive and self.is_current and self.membership.may_write(self._clock)

    @property
    def is_fenced(self) -> bool:
        """True if the node has to join again."""
        return self.is_alive and self.membership.state is State.FENCED

    @property
    def _clock(self) -> float:
        return _LATE if self.is_over else self.now

    # ---- events

    @override
    def deadline(self) -> float:
        is_due = self._unanswered or self._is_left or self._must_join
        return self.now if is_due and self.is_alive else math.inf

    @property
    def _must_join(self) -> bool:
        return self.membership.state is State.JOINING

    @property
    def _is_left(self) -> bool:
        """True if this node must remove a session whose runtime does not come back."""
        is_tidier = self.is_member and self.membership.tidies(KEY)
        return is_tidier and self.homes.deadline() < math.inf and self.rows.is_settled

    @override
    def time_over(self) -> None:
        if self._unanswered:
            for number, is_lease in tuple(self._unanswered):
                self._take_answer(Call("take_silence", (number,)), is_lease=is_lease)
        elif self._must_join:
            self._member(self.membership.tick, self.membership.deadline())
        else:
            for runtime in self.homes.overdue(self.now + GROUP_PATIENCE):
                self.homes.session_over(runtime)
                self._change(kinds.session_key(runtime), None)
        self._flush()

    @override
    def take(self, call: Call) -> None:
        is_for_other = bool(call.args) and call.args[1] != self.here
        if is_for_other or not (self.is_alive or call.name == "start"):
            return
        super().take(call)
        self._flush()

    def come(self) -> None:
        self.is_asked = True
        row = self.rows.row(KEY)
        self.homes.session_over(RUNTIME)
        self._change(KEY, self.moves.keep(_session_of(self.here), row), 1)

    def leave(self) -> None:
        self.is_asked = False
        if self.moves.end(RUNTIME):
            self._change(KEY, None)

    def lapse(self) -> None:
        self.is_over = True
        self.send(_WATCHED, "end_lease", self.here)
        self._member(self.membership.tick, self._clock)

    def drain(self) -> None:
        self._member(self.membership.leave, self.now)

    def go(self) -> None:
        self._member(self.membership.go, self.now)
        self.die()

    def die(self) -> None:
        """End the process without notice; its lease ends later by itself."""
        self.send(_WATCHED, "end_lease", self.here)
        self.is_alive = self.is_over = self.is_asked = False
        self._unanswered.clear()
        self._wanted.clear()
        self._begin()

    def start(self) -> None:
        self.is_alive = True
        self.boots += 1
        self.is_over, self.heard, self.reads = False, 0, 0
        self._join()

    # ---- hosting, as in the bus of a node

    def take_lease_answer(self, answer: Call, _: kinds.Holder) -> None:
        self._take_answer(answer, is_lease=True)

    def take_row_answer(self, answer: Call, _: kinds.Holder) -> None:
        self._take_answer(answer, is_lease=False)

    def _take_answer(self, answer: Call, *, is_lease: bool) -> None:
        number = answer.args[0]
        self._unanswered.pop((number, is_lease), None)
        wanted = None if is_lease else self._wanted.pop(number, None)
        match answer.args[1:]:
            case (int(revision),) if wanted is not None:
                self._note_known(revision, is_kept=wanted.value is not None)
            case (value, int(revision)) if wanted is not None:
                self._note_known(revision, is_kept=value is not None)
            case _:
                pass
        self.give(self.membership if is_lease else self.rows, answer)
        self.perform()

    def take_news(self, news: Call, _: kinds.Holder, revision: int) -> None:
        self.heard = revision
        getattr(self, news.name)(*news.args)

    def take_row(
        self, key: str, value: bytes | None, revision: int, *, is_read: bool = False
    ) -> None:
        if key == KEY:
            self._note_known(revision, is_kept=value is not None)
        self.rows.take_row(key, value, revision, is_read=is_read)
        self.perform()
        self.is_current = self.rows.is_current

    def take_read(self, key: str, value: bytes | None, revision: int) -> None:
        self.reads -= 1
        self.take_row(key, value, revision, is_read=True)

    def end_list(self) -> None:
        self.rows.end_list("")
        self.perform()
        self._member(self.membership.end_list, self.now)
        self.is_current = self.rows.is_current

    def _member(self, call: Callable[[float], None], now: float) -> None:
        call(now)
        self.perform()

    def _change(self, key: str, row: kinds.SessionRow | None, ticket: int | None = None) -> None:
        self.rows.change(key, row, ticket)
        self.perform()

    # ---- port of the membership

    @override
    def put_lease(self, lease: PutLease) -> None:
        self._unanswered[lease.number, True] = None
        put = Put(lease.number, lease.row.key, write_row(lease.row), lease.expected)
        self.send(ENGINE, "write", put, self.here, None)

    @override
    def drop_lease(self, key: str, expected: int) -> None:
        self.send(ENGINE, "write", Put(0, key, None, expected), self.here, None)

    @override
    @deferred
    def fence(self, why: str) -> None:
        self._unanswered.clear()
        self._wanted.clear()
        self.is_current, self._known = False, (0, 0)
        self.moves.fence()
        self.is_asked = False
        self.rows.forget()
        self.perform()

    @override
    def add_node(self, row: kinds.NodeRow) -> None:
        self.remove_node(row.holder)

    @override
    @deferred
    def remove_node(self, holder: kinds.Holder) -> None:
        self.homes.node_moved(holder.node, self.now)

    # ---- port of the mirror, and of the sessions that move

    @override
    @deferred
    def apply(self, row: kinds.GroupRow, revision: int) -> None:
        if isinstance(row, kinds.NodeRow):
            self._take_node(row.holder, row, revision)
        elif revision < self._known[1]:
            raise UnsafeError("a node applies an older version of a row than it knows")
        elif isinstance(row, kinds.SessionRow):
            self.moves.take_row(row, self.here)
            self.perform()
            known = self.rows.row(KEY)
            if isinstance(known, kinds.SessionRow) and known.holder != self.here:
                self.homes.session(known, self.now)
            else:
                self.homes.session_over(RUNTIME)

    @override
    @deferred
    def withdraw(self, row: kinds.GroupRow, revision: int, *, is_lost: bool = False) -> None:
        if isinstance(row, kinds.NodeRow):
            self._take_node(row.holder, None, revision)
        else:
            self.moves.take_removal(RUNTIME)
            self.perform()
            self.homes.session_over(RUNTIME)

    def _take_node(self, holder: kinds.Holder, row: kinds.NodeRow | None, revision: int) -> None:
        self._member(partial(self.membership.take_node, holder.node, row, revision), self._clock)

    @override
    def confirm(
        self, key: str, row: kinds.GroupRow | None, revision: int, tickets: tuple[int, ...]
    ) -> None:
        self.is_asked = False

    @override
    def lose(self, key: str, tickets: tuple[int, ...]) -> None:
        self.is_asked = self.is_asked and not tickets

    @override
    def read(self, key: str, revision: int) -> None:
        self.reads += 1
        self.send(_WATCHED, "read", key, revision, self.here)

    @override
    def refuse(self, key: str, reason: kinds.RowRefusal) -> None:
        raise UnsafeError("a node refuses a row that a node has written")

    @override
    @deferred
    def put_row(self, key: str, row: kinds.SessionRow | None) -> None:
        self._change(key, row)

    @override
    def give_up(self, session: GiveUp) -> None:
        self.is_asked = False

    def _flush(self) -> None:
        if not self.is_member:
            return
        for put in self.rows.writes(self.now + GROUP_RETRY):
            self._unanswered[put.number, False] = None
            self._wanted[put.number] = put
            known = _STALE if self.is_over else self._known[0]
            self.send(ENGINE, "write", put, self.here, known)


# --- conditions ----------------------------------------------------------


def _knows_all(node: Node, engine: Engine) -> bool:
    """Return whether a member has received all changes and has nothing to write."""
    has_heard = node.heard == engine.revision and not node.reads
    return node.is_member and has_heard and node.rows.is_settled


def _is_twice(engine: Engine, *nodes: Node) -> bool:
    return sum(_knows_all(node, engine) and node.has_copy for node in nodes) > 1


def _is_open_unheld(node: Node) -> bool:
    return node.has_copy and (node.is_over or not node.is_member)


def _differs(node: Node, engine: Engine) -> bool:
    return _knows_all(node, engine) and node.rows.row(KEY) != engine.row(KEY)


def _is_at_rest(engine: Engine, *nodes: Node) -> bool:
    alive = [node for node in nodes if node.is_alive]
    if any(node.is_asked or not node.is_member for node in alive):
        return False
    session = engine.row(KEY)
    holders = [node.here for node in alive if node.has_copy]
    return not alive or holders == (
        [session.holder] if isinstance(session, kinds.SessionRow) else []
    )


_EVENTS: Final[dict[str, tuple[str, Callable[[Node], bool]]]] = {
    "come": ("the runtime comes to node", lambda node: node.is_member and not node.has_copy),
    "leave": ("the runtime leaves node", lambda node: node.is_member and node.has_copy),
    "lapse": ("the lease is over by the clock of node", lambda node: node.is_member),
    "die": ("the process ends of node", lambda node: node.is_alive),
    "drain": ("the operator drains node", lambda node: node.is_member),
    "go": ("all is drained from node", lambda node: node.membership.state is State.LEAVING),
}


def _event(name: str, call: str, budget: int) -> Event:
    words, when = _EVENTS[call]
    return Event(f"{words} {name}", name, call, when, budget, is_fault=call in {"lapse", "die"})


def _group(
    name: str,
    events: Sequence[Event],
    nodes: Sequence[str] = ("a", "b"),
    channel: int = 1,
    *,
    is_held: bool = True,
) -> plan.Composition:
    """Return a composition of an engine and some nodes.

    Args:
        name: Its name.
        events: The event, the node, and how often it may happen.
        nodes: Names of the nodes.
        channel: Largest number of messages in a channel.
        is_held: Whether the first node has the session at the beginning.
    """
    all_places = (ENGINE, *nodes)
    joins = [Event(f"anew joins node {n}", n, "start", lambda a: a.is_fenced, None) for n in nodes]
    reliable = plan.Medium.RELIABLE
    return plan.Composition(
        name=name,
        places={
            **dict.fromkeys(nodes, partial(Node, nodes=nodes, is_held=is_held)),
            ENGINE: partial(Engine, nodes=nodes, is_held=is_held),
        },
        channels=[
            channel
            for node in nodes
            for channel in (
                *plan.both_ways(node, ENGINE),
                *plan.both_ways(node, ENGINE, reliable, _WATCH),
            )
        ],
        events=(*events, *joins),
        never=(
            Condition(
                "Two nodes have heard all, and have one session (I-M2).", all_places, _is_twice
            ),
            *(
                never
                for node in nodes
                for never in (
                    Condition(
                        f"Node {node} has heard all, and its mirror is not as the engine.",
                        (node, ENGINE),
                        _differs,
                    ),
                    Condition(
                        f"Node {node} is no member by its own clock, and a session is open there.",
                        (node,),
                        _is_open_unheld,
                    ),
                )
            ),
        ),
        ends=(Condition("the session has one node, or is over", all_places, _is_at_rest),),
        bounds=plan.Bounds(losses=1, duplicates=1, channel=channel),
        is_timely=True,
    )


_STARTS: Final = Event(
    "a new process starts of node a", "a", "start", lambda node: not node.is_alive
)

GROUP: Final = attrs.evolve(
    _group(
        "group",
        (_event("a", "come", 2), _event("b", "come", 1), _event("b", "leave", 1)),
        is_held=False,
    ),
    early=1,
)
"""Composition: two nodes take over one session at once, and again; the session moves and ends."""

GROUP_FENCE: Final = _group(
    "group-fence", (_event("b", "come", 1), _event("a", "lapse", 1), _event("a", "leave", 1))
)
"""Composition: a session moves away from a node that finds its lease over."""

GROUP_DEATH: Final = _group(
    "group-death", (_event("b", "come", 1), _event("a", "die", 1), _STARTS), channel=2
)
"""Composition: a node that has a session dies, and starts again with the same id."""

GROUP_LEAVE: Final = _group(
    "group-leave", (_event("b", "come", 1), _event("a", "drain", 1), _event("a", "go", 1), _STARTS)
)
"""Composition: a node that has a session leaves the group, and comes back with the same id."""

GROUP_THREE: Final = _group(
    "group-three",
    (_event("b", "come", 1), _event("c", "come", 1), _event("a", "die", 1)),
    ("a", "b", "c"),
    2,
)
"""Composition: one of three nodes dies with a session; the others take over, or remove the row."""

COMPOSITIONS: Final = (GROUP, GROUP_FENCE, GROUP_DEATH, GROUP_LEAVE, GROUP_THREE)
