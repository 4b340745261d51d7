"""Membership of a node in its group: its lease, the other members, and who removes void rows.

The engine, the key-value store that the nodes share, has a row for each node. This row is the
node's lease: the engine removes it `GROUP_LEASE` seconds after it was last written. The node counts
these seconds from the time when it sent the renewal, never from the answer, so it considers its
lease over before the engine can have removed it. It checks that before each write (`may_write`),
not only by a timer, since the process may have been suspended meanwhile.

A renewal expects the revision of the previous one. If the row is another process's, that process
has the node's id. If the row is absent, the lease has run out, or the engine has lost it. In both
cases the node is fenced, which means that it stops serving: it joins again with another boot epoch,
by which others know that its earlier rows are void. A renewal of unknown outcome is repeated: if
the first one was made after all, the second one is refused, and the refusal contains the node's own
row.

Only the engine decides whether another node is a member: no clock of this node does.

A group has a limited number of nodes. The watch of the nodes' rows brings them in the order in
which they were written, so all nodes see the same rows before the row of a node that joins. A node
that finds the group full is no member: it deletes its row, and tries again when another node
leaves.
"""

import math
from enum import Enum, auto
from hashlib import blake2b
from typing import Final

import attrs

from fsm.engine import Entity, Step
from fsm.group.kinds import Holder, NodeRow, RowRefusal, RowRefusedError, node_key
from fsm.group.row_form import read_row
from fsm.machines.group_membership import GROUP_MEMBERSHIP, State, Trigger
from specs.limits.group import GROUP_NODES, GROUP_RENEWAL, GROUP_RETRY


@attrs.frozen(slots=True)
class PutLease:
    """Write of the node's row, which expires after `GROUP_LEASE`; made at once or not at all.

    Attributes:
        number: Number of the request, which its answer repeats.
        expected: The revision that the row must have; 0: the row must not exist.
    """

    number: int
    row: NodeRow
    expected: int


class MembershipPort:
    """Callbacks of `MembershipCore` to its host; a method does nothing unless it is overridden.

    No method may call the core: the host does so after the core has returned.
    """

    def step(self, step: Step) -> None:
        """Trace a transition of the membership's state machine."""

    def put_lease(self, lease: PutLease) -> None:
        """Write the node's row; then call `take_written`, `take_conflict` or `take_silence`."""

    def drop_lease(self, key: str, expected: int) -> None:
        """Delete the node's row at once, instead of letting it expire."""

    def admit(self) -> None:
        """Begin to serve runtimes, since the node is a member now."""

    def wait_for_id(self, other: Holder) -> None:
        """Report that this node must wait, since another process uses its id."""

    def wait_for_room(self) -> None:
        """Report that this node must wait, since the group has `GROUP_NODES` other nodes."""

    def fence(self, why: str) -> None:
        """Close all links, stop writing and join again: the node may be no member any more."""

    def add_node(self, row: NodeRow) -> None:
        """Take into account that another node is a member."""

    def remove_node(self, holder: Holder) -> None:
        """Take into account that another node is no member any more: its rows are void."""

    def refuse_row(self, key: str, reason: RowRefusal) -> None:
        """Report the row of another node that is ignored, since the group is full."""


class _Watch(Enum):
    """State of the watch of the nodes' rows, since the node began to join."""

    NOT_BEGUN = auto()
    BEGUN = auto()
    CURRENT = auto()


@attrs.define(slots=True)
class _Place:
    """Progress of a node that joins: its own row as writes and the watch have shown it.

    If a row is written twice with equal content, the watch brings it only once. So a row from the
    watch counts until the watch or a newer refusal says that it is gone. If the row was removed and
    written again while the watch was broken, the watch may not bring it again.

    Attributes:
        came: The revision at which the watch has brought the row; 0: the watch has not brought it.
        written: Time since which the row exists according to the answers to writes; infinity: it
            does not exist.
        least: The lowest valid revision: earlier rows were dropped.
        has_room: Whether the group had room for the node when the row came.
    """

    came: int = 0
    written: float = math.inf
    least: int = 0
    has_room: bool = False


class MembershipCore:
    """Membership of one node in its group: its lease and its knowledge of the other members.

    Args:
        node: Id of the node.
        port: The host.
        address: Base URL at which others reach it by HTTP; empty: none.

    Attributes:
        node: Id of the node.
        boot: Its boot epoch; 0 before it has joined.
        is_turned_away: Whether the node is no member because the group is full.
    """

    def __init__(self, node: str, port: MembershipPort, address: str = "") -> None:
        self.node = node
        self._port: Final = port
        self.boot = 0
        self.address: Final = address
        self._entity = Entity(GROUP_MEMBERSHIP, node)
        self._revision = 0
        self._until = -math.inf
        self._number = 0
        self._sent: float | None = None
        self._next = math.inf
        self._taken: Holder | None = None
        self._watch = _Watch.NOT_BEGUN
        self._place = _Place()
        self.is_turned_away = False
        self.others: Final = dict[str, NodeRow]()
        self._dead: dict[Holder, None] = {}

    @property
    def state(self) -> State | None:
        """The state of the membership; None before `join` was called."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def holder(self) -> Holder:
        """This process of the node, as rows name it."""
        return Holder(self.node, self.boot)

    @property
    def _has_lease(self) -> bool:
        return self._entity.state in {State.MEMBER, State.LEAVING}

    def may_write(self, now: float) -> bool:
        """Return whether the lease certainly still runs; called before each write.

        Args:
            now: Seconds on the host's clock, read immediately before the call.
        """
        return self._has_lease and now < self._until

    def is_live(self, holder: Holder) -> bool:
        """Return whether a process, of this node or another, is a member."""
        if holder.node == self.node:
            return self._has_lease and holder.boot == self.boot
        row = self.others.get(holder.node)
        return row is not None and row.holder == holder

    def takes_in(self, sender: Holder) -> bool:
        """Return whether messages from a process of another node may be accepted.

        A message that was under way for longer than a lease could arrive after later messages of
        the same runtime that other nodes sent. So messages from a process that lost its lease are
        refused, and a process without a lease accepts none. The last `GROUP_NODES` processes that
        lost their leases are remembered.

        Args:
            sender: The process that sent them.
        """
        return self._has_lease and sender not in self._dead

    def tidies(self, key: str) -> bool:
        """Return whether this member, and no other, must remove a given void row.

        All members that know the same members agree on one of them; the rows are distributed
        evenly.

        Args:
            key: Key of the row, whose holder is no member.
        """
        if not self._has_lease:
            return False
        return self.node == min((self.node, *self.others), key=lambda node: _weight(node, key))

    def deadline(self) -> float:
        """Return the time at which `tick` must be called."""
        renewal = self._next if self._sent is None else math.inf
        return min(renewal, self._until) if self._has_lease else renewal

    # ---- the lease

    def join(self, boot: int, now: float) -> None:
        """Write the node's row to become a member, for the first time or again after `fence`.

        Args:
            boot: The new boot epoch: random, from 1 to 2**63 - 1; the host makes it.
            now: Seconds on the host's clock.
        """
        self.boot, self._taken, self._watch = boot, None, _Watch.NOT_BEGUN
        self._place = _Place()
        self._begin()
        self._port.step(self._entity.step(Trigger.JOIN, f"boot {boot}"))
        self._put(now)

    def renew(self, now: float) -> None:
        """Renew the lease now: the shared store answers again, or may have lost the node's row."""
        if self._next < math.inf:
            self._next = now
        self.tick(now)

    def tick(self, now: float) -> None:
        """Renew the lease, or fence the node, if the time for that has come."""
        if self._has_lease and now >= self._until:
            self._fence("its lease was not renewed in time")
            return
        is_due = self._sent is None and now >= self._next
        if is_due and self.is_turned_away and len(self.others) >= GROUP_NODES:
            self._next = now + GROUP_RENEWAL
        elif is_due:
            self._put(now)

    def take_written(self, number: int, revision: int, now: float) -> None:
        """Take the result of `put_lease`: the row was written, with a revision."""
        if (sent := self._end_write(number)) is not None:
            self._take_written(revision, sent, now)
        self.tick(now)

    def take_conflict(self, number: int, value: bytes | None, revision: int, now: float) -> None:
        """Take the result of `put_lease`: refused, since the row has another revision or is absent.

        Args:
            number: Number of the write.
            value: Value of the present row; None: there is none.
            revision: Its revision.
            now: Seconds on the host's clock.
        """
        if self._end_write(number) is not None:
            self._take_refused(self._read(value), revision, now)
        self.tick(now)

    def take_silence(self, number: int, now: float) -> None:
        """Take the result of `put_lease`: the write failed, or its outcome is unknown."""
        if self._end_write(number) is not None:
            self._next = now + GROUP_RETRY
        self.tick(now)

    def _end_write(self, number: int) -> float | None:
        """Return when the answered write was sent, or None if a later write replaced it."""
        if number != self._number:
            return None
        sent, self._sent = self._sent, None
        return sent

    def leave(self, now: float) -> None:
        """Announce that the node is shutting down; it serves its runtimes until `go` is called."""
        if self._entity.state is State.MEMBER:
            self._port.step(self._entity.step(Trigger.LEAVE))
            # The row is written at once; if a write is under way, after that write.
            self._next = now
        self.tick(now)

    def go(self, now: float) -> None:
        """End the lease for good: the node no longer serves any runtime."""
        if self._entity.state not in {None, State.LEFT}:
            had_lease = self._has_lease
            self._rest()
            self._port.step(self._entity.step(Trigger.GO))
            if had_lease:
                self._port.drop_lease(node_key(self.node), self._revision)
        self.tick(now)

    def _begin(self) -> None:
        """Reset the lease: the node has no row yet."""
        self._revision, self._until = 0, -math.inf
        self._place.written = math.inf

    def _put(self, now: float) -> None:
        self.is_turned_away = False
        self._number += 1
        self._sent = now
        row = NodeRow(self.holder, self.address, self._entity.state is State.LEAVING)
        self._port.put_lease(PutLease(self._number, row, self._revision))

    def _read(self, value: bytes | None) -> NodeRow | None:
        try:
            row = None if value is None else read_row(node_key(self.node), value)
        except RowRefusedError:
            return None
        return row if isinstance(row, NodeRow) else None

    def _take_written(self, revision: int, sent: float, now: float) -> None:
        self._note(revision, sent)
        self._next = sent + GROUP_RENEWAL
        is_leaving = self._entity.state is State.LEAVING
        term = GROUP_MEMBERSHIP.patience(State.LEAVING if is_leaving else State.MEMBER)
        self._until = sent + term
        self._look(now)
        self._anew(sent, now)

    def _note(self, revision: int, sent: float) -> None:
        self._revision = revision
        if self._entity.state is State.JOINING:
            self._place.written = min(self._place.written, sent)

    def _anew(self, sent: float, now: float) -> None:
        """Replace the row of a joining node if no watch brings it within a renewal period."""
        place = self._place
        is_due = self._watch is _Watch.CURRENT and place.written + GROUP_RENEWAL <= sent
        if not is_due or place.came or self._entity.state is not State.JOINING:
            return
        self._port.drop_lease(node_key(self.node), self._revision)
        self._place = _Place(least=self._revision + 1)
        self._begin()
        self._put(now)

    def _admit(self, now: float) -> None:
        """Become a member if the node's row exists and has not expired."""
        if self._place.written == math.inf or self._until <= now:  # or the row is renewed first
            return
        self._port.step(self._entity.step(Trigger.ADMIT, f"revision {self._revision}"))
        self._place = _Place()
        self._port.admit()

    def _take_refused(self, row: NodeRow | None, revision: int, now: float) -> None:
        if row is not None and row.holder == self.holder and revision > self._revision:
            # The row was written by a renewal whose answer was lost.
            self._note(revision, now)
            self._put(now)
            return
        if self._has_lease:
            self._fence("its lease has run out" if row is None else _OTHERS)
            return
        self._next = now + GROUP_RENEWAL
        self._begin()
        if self._place.came <= revision:
            # The row from the watch is gone; a refusal may be older than the watch.
            self._place = _Place(least=self._place.least)
        if row is not None and row.holder != self._taken:
            self._taken = row.holder
            self._port.wait_for_id(row.holder)

    def _fence(self, why: str) -> None:
        self._port.step(self._entity.step(Trigger.FENCE, why))
        self._rest()
        self._port.fence(why)

    def _rest(self) -> None:
        """Stop all timers, and ignore the answer to a write under way."""
        self._sent, self._next, self._until = None, math.inf, -math.inf
        self._number += 1

    # ---- the members

    def take_node(self, node: str, row: NodeRow | None, revision: int, now: float) -> None:
        """Take a version of the row of a node, newer than the previous one.

        Args:
            node: Id of the node.
            row: The row; None: the lease has run out, or the node has left.
            revision: Its revision; for an absent row, any revision not below its last one.
            now: Seconds on the host's clock.
        """
        if node == self.node:
            self._take_own(row, revision, now)
        elif row is not None:
            self._add(row)
        elif (known := self.others.pop(node, None)) is not None:
            if self.is_turned_away:
                self._next = now
            self._remove(known)
        self.tick(now)

    def begin_watch(self, now: float) -> None:
        """Wait for the rows of all nodes to come, since a watch begins."""
        self._watch = _Watch.BEGUN
        self._look(now)
        self.tick(now)

    def end_list(self, now: float) -> None:
        """Take into account that the watch has brought all rows that existed when it began."""
        if self._watch is _Watch.BEGUN:
            self._watch = _Watch.CURRENT
        self._look(now)
        self.tick(now)

    def _add(self, row: NodeRow) -> None:
        node = row.holder.node
        known = self.others.get(node)
        # A node that joins must know all members, and also other nodes that join.
        most = GROUP_NODES - 1 if self._has_lease else 2 * GROUP_NODES
        if known is None and len(self.others) >= most:
            self._port.refuse_row(node_key(node), RowRefusal.TOO_MANY)
            return
        self.others[node] = row
        self._dead.pop(row.holder, None)  # it may return: all rows were read again
        if known == row:
            return
        if known is not None and known.holder != row.holder:
            self._remove(known)
        self._port.add_node(row)

    def _remove(self, known: NodeRow) -> None:
        if not known.is_leaving:  # a leaving node had sent everything before it gave up its lease
            self._dead[known.holder] = None
            if len(self._dead) > GROUP_NODES:
                del self._dead[next(iter(self._dead))]
        self._port.remove_node(known.holder)

    def _take_own(self, row: NodeRow | None, revision: int, now: float) -> None:
        is_own = row is not None and row.holder == self.holder
        if self._entity.state is State.JOINING:
            if row is None and self._taken is not None:
                self._next = now
            if is_own and revision < self._place.least:
                return
            self._place.came = revision if is_own else 0
            self._place.has_room = is_own and self._place.has_room
            self._look(now)
        elif self._has_lease and revision >= self._revision and not is_own:
            self._fence("its lease has run out" if row is None else _OTHERS)

    def _look(self, now: float) -> None:
        """Admit or turn away a joining node once all rows older than its own are known."""
        place = self._place
        is_joining = self._entity.state is State.JOINING
        if not is_joining or self._watch is not _Watch.CURRENT or not place.came:
            return
        if place.has_room or len(self.others) < GROUP_NODES:
            place.has_room = True
            self._admit(now)
        elif not self.is_turned_away:
            self._port.drop_lease(node_key(self.node), max(place.came, self._revision))
            self._rest()
            self._begin()
            self.is_turned_away = True
            self._next = now + GROUP_RENEWAL
            self._port.wait_for_room()


_OTHERS: Final = "another process has its id"


def _weight(node: str, key: str) -> bytes:
    return blake2b(f"{node} {key}".encode(), digest_size=8).digest()
