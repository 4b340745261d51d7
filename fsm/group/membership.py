"""The membership of a node in its group: its lease, the other members, and who tidies up.

The row of a node is its lease: the engine lets it go `GROUP_LEASE` seconds after it has written
it last. The node counts these seconds from when it sent the renewal, never from when it was
answered: however long the request or the answer took, the engine wrote the row later than that.
So it takes its lease to be over before the engine can have let it run out, and it is asked before
each write (`may_write`), not only by a timer, as a process may have been stopped meanwhile.

A renewal expects the revision of the one before. If another row is there, its id is another
process's. If none is there, its lease has run out, or the engine has lost it. In both cases the
node is fenced: it joins anew with another boot epoch, by which others know that nothing is left
of what it had. A renewal of unknown outcome is made again: if the first one was made after all,
the refusal of the second names the node's own row.

Whether another node is a member is the engine's word alone: no clock of this node decides it.

A group has a bounded number of nodes. The watch brings rows in the order in which they were
written, so all nodes see the same rows before the one of a node that joins. A node that finds as
many others there as a group has is no member: it deletes its row, and tries again when one goes.
"""

import math
from collections.abc import Mapping
from enum import Enum, auto, unique
from hashlib import blake2b
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.engine import Entity, Step
from fsm.group.kinds import Holder, NodeRow, RowRefusal, RowRefusedError, node_key
from fsm.group.row_form import read_row
from fsm.group.rows import (
    Answered,
    Conflicted,
    Current,
    Gap,
    Rejected,
    Unanswered,
    Written,
)
from fsm.machines.group_membership import GROUP_MEMBERSHIP, State, Trigger
from specs.limits.group import GROUP_NODES, GROUP_RENEWAL, GROUP_RETRY


@final
@attrs.frozen(slots=True)
class Join:
    """Become a member: first of all, and again after `Fenced`.

    Attributes:
        boot: The new boot epoch: random, from 1 to 2**63 - 1, as a core has no randomness.
    """

    boot: int


@final
@attrs.frozen(slots=True)
class NodeSeen:
    """A watch has brought a version of the row of a node, newer than the one before.

    Attributes:
        row: None: its lease has run out, or it has left.
        revision: Its revision; of a row that is not there, any from that of its last version on.
    """

    node: str
    row: NodeRow | None
    revision: int


@final
@attrs.frozen(slots=True)
class Leave:
    """The node is going down; it serves its runtimes until `Gone`."""


@final
@attrs.frozen(slots=True)
class Gone:
    """The node serves no runtime any more."""


@final
@attrs.frozen(slots=True)
class Renew:
    """Renew the lease now: the engine answers again, or may have lost the node's row."""


@final
@attrs.frozen(slots=True)
class Tick:
    """The deadline has passed."""


Input: TypeAlias = Join | Answered | NodeSeen | Gap | Current | Leave | Gone | Renew | Tick
"""`Gap` and `Current` are those of a watch that brings the rows of all nodes."""


@final
@attrs.frozen(slots=True)
class PutLease:
    """Write the node's row, which lasts for `GROUP_LEASE`; at once, or not at all.

    Attributes:
        number: Of its answer, which is as that to a `Put` of the mirror.
        expected: The revision that the row must have; 0: there must be none.
    """

    number: int
    row: NodeRow
    expected: int


@final
@attrs.frozen(slots=True)
class DropLease:
    """Delete the node's row; without it the row goes by itself."""

    key: str
    expected: int


@final
@attrs.frozen(slots=True)
class Admitted:
    """The node is a member."""

    holder: Holder


@final
@attrs.frozen(slots=True)
class IdTaken:
    """Another process is a member by this node's id: it waits until that is gone."""

    other: Holder


@final
@attrs.frozen(slots=True)
class GroupFull:
    """The group has `GROUP_NODES` other members: the node waits until one of them is gone."""


@final
@attrs.frozen(slots=True)
class Fenced:
    """The node may be none any more: close all links, write nothing, then `Join` anew.

    Attributes:
        why: Half a sentence.
    """

    why: str


@final
@attrs.frozen(slots=True)
class Left:
    """The node is none of the group any more."""


@final
@attrs.frozen(slots=True)
class NodeCame:
    """Another node is a member."""

    row: NodeRow


@final
@attrs.frozen(slots=True)
class NodeGone:
    """Another node is none any more: what it held has no holder."""

    holder: Holder


NodeNews: TypeAlias = NodeCame | NodeGone | Rejected
"""What has become of another node; a further one is not known if the group has too many."""

Effect: TypeAlias = (
    Step | PutLease | DropLease | Admitted | IdTaken | GroupFull | Fenced | Left | NodeNews
)


@final
@unique
class _Watch(Enum):
    """What the watch of the rows of nodes has brought since the node joined."""

    NOT_BEGUN = auto()
    BEGUN = auto()
    CURRENT = auto()


@final
@attrs.define(slots=True)
class _Place:
    """What is known of a node's own row while the node joins.

    The watch brings a row that is written again with the same content once. So what it has brought
    counts until the row is gone, by the watch or by a refusal that is newer. If the row went and
    was written again while the watch was broken, it may be brought no more.

    Attributes:
        came: The revision with which the watch has brought it; 0: it is not there, by the watch.
        written: Since when it is there, by the answers to its writes; infinity: it is not.
        least: The lowest revision that counts: earlier ones were dropped.
        has_room: Whether the group had room for it when it came.
    """

    came: int = 0
    written: float = math.inf
    least: int = 0
    has_room: bool = False


@final
class MembershipCore:
    """The membership of one node.

    Args:
        node: Its id.
        address: Base URL at which others reach it over HTTP; empty: none.

    Attributes:
        node: As above.
        boot: Its boot epoch; 0 before it has joined.
        is_turned_away: Whether it is no member because the group has as many as it may have.
    """

    def __init__(self, node: str, address: str = "") -> None:
        self.node = node
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
        self._others: dict[str, NodeRow] = {}
        self._dead: dict[Holder, None] = {}

    @property
    def state(self) -> State | None:
        """The state of the membership; None before it was joined."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def holder(self) -> Holder:
        """This process of the node, as it is named in rows."""
        return Holder(self.node, self.boot)

    @property
    def others(self) -> Mapping[str, NodeRow]:
        """The other members, by id."""
        return self._others

    @property
    def _has_lease(self) -> bool:
        return self._entity.state in {State.MEMBER, State.LEAVING}

    def may_write(self, now: float) -> bool:
        """Return whether the lease runs for sure: asked before each write, and each turn.

        Args:
            now: Seconds on the host's clock, read last.
        """
        return self._has_lease and now < self._until

    def is_live(self, holder: Holder) -> bool:
        """Return whether a process of a node is a member."""
        if holder.node == self.node:
            return self._has_lease and holder.boot == self.boot
        other = self._others.get(holder.node)
        return other is not None and other.holder == holder

    def takes_in(self, sender: Holder) -> bool:
        """Return whether messages of a process of another node may be taken in.

        What was under way for longer than a lease comes after what the same runtimes have sent by
        other nodes since: nothing is taken in from a process that lost its lease, nor by one that
        has none. The last `GROUP_NODES` that lost theirs are known.

        Args:
            sender: The process that sent them.
        """
        return self._has_lease and sender not in self._dead

    def tidies(self, key: str) -> bool:
        """Return whether this member, and no other, removes what belongs to no node.

        All members that know the same members agree on one, and each has its share.

        Args:
            key: Key of a row.
        """
        if not self._has_lease:
            return False
        return self.node == min((self.node, *self._others), key=lambda one: _weight(one, key))

    def deadline(self) -> float:
        """Return when a `Tick` is due."""
        renewal = self._next if self._sent is None else math.inf
        return min(renewal, self._until) if self._has_lease else renewal

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case Join(boot):
                return self._join(boot, now)
            case Written() | Conflicted() | Unanswered():
                effects = self._answered(happened, now)
            case NodeSeen():
                effects = self._seen(happened, now)
            case Gap() | Current():
                effects = self._watched(happened, now)
            case Leave() | Gone():
                effects = self._left(happened, now)
            case Renew() | Tick():
                if isinstance(happened, Renew) and self._next < math.inf:
                    self._next = now
                effects = []
            case _:
                assert_never(happened)
        return [*effects, *self._timed(now)]

    # ---- the lease

    def _join(self, boot: int, now: float) -> list[Effect]:
        self.boot, self._taken, self._watch = boot, None, _Watch.NOT_BEGUN
        self._place = _Place()
        self._begin()
        step = self._entity.step(Trigger.JOIN, f"boot {boot}")
        return [step, self._put(now)]

    def _begin(self) -> None:
        """Expect that no row of this node is there."""
        self._revision, self._until = 0, -math.inf
        self._place.written = math.inf

    def _put(self, now: float) -> PutLease:
        self.is_turned_away = False
        self._number += 1
        self._sent = now
        row = NodeRow(self.holder, self.address, self._entity.state is State.LEAVING)
        return PutLease(self._number, row, self._revision)

    def _answered(self, answer: Answered, now: float) -> list[Effect]:
        if answer.number != self._number or self._sent is None:
            return []
        sent, self._sent = self._sent, None
        match answer:
            case Written(_, revision):
                return self._written(revision, sent, now)
            case Conflicted(_, value, revision):
                return self._refused(self._read(value), revision, now)
            case Unanswered():
                self._next = now + GROUP_RETRY
                return []
            case _:
                assert_never(answer)

    def _read(self, value: bytes | None) -> NodeRow | None:
        try:
            row = None if value is None else read_row(node_key(self.node), value)
        except RowRefusedError:
            return None
        return row if isinstance(row, NodeRow) else None

    def _written(self, revision: int, sent: float, now: float) -> list[Effect]:
        self._note(revision, sent)
        self._next = sent + GROUP_RENEWAL
        is_leaving = self._entity.state is State.LEAVING
        term = GROUP_MEMBERSHIP.patience(State.LEAVING if is_leaving else State.MEMBER)
        self._until = sent + term
        return self._look(now) or self._anew(sent, now)

    def _note(self, revision: int, sent: float) -> None:
        self._revision = revision
        if self._entity.state is State.JOINING:
            self._place.written = min(self._place.written, sent)

    def _anew(self, sent: float, now: float) -> list[Effect]:
        """Write the row anew if no watch has brought it for as long as it takes to renew it."""
        place = self._place
        is_due = self._watch is _Watch.CURRENT and place.written + GROUP_RENEWAL <= sent
        if not is_due or place.came or self._entity.state is not State.JOINING:
            return []
        dropped = DropLease(node_key(self.node), self._revision)
        self._place = _Place(least=self._revision + 1)
        self._begin()
        return [dropped, self._put(now)]

    def _admitted(self, now: float) -> list[Effect]:
        """Return that the node is a member, if its row is there, and lasts."""
        if self._place.written == math.inf or self._until <= now:  # or the row is renewed first
            return []
        step = self._entity.step(Trigger.ADMIT, f"revision {self._revision}")
        self._place = _Place()
        return [step, Admitted(self.holder)]

    def _refused(self, row: NodeRow | None, revision: int, now: float) -> list[Effect]:
        if row is not None and row.holder == self.holder and revision > self._revision:
            # Written by a renewal whose answer was lost.
            self._note(revision, now)
            return [self._put(now)]
        if self._has_lease:
            return self._fence("its lease has run out" if row is None else _OTHERS)
        self._next = now + GROUP_RENEWAL
        self._begin()
        if self._place.came <= revision:
            # What the watch has brought is gone; a refusal may be older than that.
            self._place = _Place(least=self._place.least)
        if row is None or row.holder == self._taken:
            return []
        self._taken = row.holder
        return [IdTaken(row.holder)]

    def _timed(self, now: float) -> list[Effect]:
        if self._has_lease and now >= self._until:
            return self._fence("its lease was not renewed in time")
        is_due = self._sent is None and now >= self._next
        if is_due and self.is_turned_away and len(self._others) >= GROUP_NODES:
            self._next = now + GROUP_RENEWAL
            is_due = False
        return [self._put(now)] if is_due else []

    def _fence(self, why: str) -> list[Effect]:
        is_leaving = self._entity.state is State.LEAVING
        step = self._entity.step(Trigger.FENCE, why)
        self._rest()
        return [step, Fenced(why), *([Left()] if is_leaving else [])]

    def _rest(self) -> None:
        """Await nothing: the answer of a write that is under way does not count."""
        self._sent, self._next, self._until = None, math.inf, -math.inf
        self._number += 1

    def _left(self, happened: Leave | Gone, now: float) -> list[Effect]:
        if isinstance(happened, Leave):
            if self._entity.state is not State.MEMBER:
                return []
            step = self._entity.step(Trigger.LEAVE)
            # Others are told at once; what is under way is told with the next renewal.
            self._next = now
            return [step]
        if self._entity.state in {None, State.LEFT}:
            return []
        dropped: list[Effect] = []
        if self._has_lease:
            dropped = [DropLease(NodeRow(self.holder).key, self._revision)]
        self._rest()
        return [self._entity.step(Trigger.GO), *dropped, Left()]

    # ---- the members

    def _seen(self, seen: NodeSeen, now: float) -> list[Effect]:
        if seen.node == self.node:
            return self._seen_own(seen, now)
        known = self._others.get(seen.node)
        if seen.row is None:
            self._others.pop(seen.node, None)
            if known is not None and self.is_turned_away:
                self._next = now
            return self._gone(known)
        # A node that joins has to know of the members also beside the rows of others that join.
        most = GROUP_NODES - 1 if self._has_lease else 2 * GROUP_NODES
        if known is None and len(self._others) >= most:
            return [Rejected(node_key(seen.node), RowRefusal.TOO_MANY)]
        self._others[seen.node] = seen.row
        self._dead.pop(seen.row.holder, None)  # all rows were read again
        if known == seen.row:
            return []
        is_same = known is not None and known.holder == seen.row.holder
        return [*self._gone(None if is_same else known), NodeCame(seen.row)]

    def _gone(self, known: NodeRow | None) -> list[Effect]:
        if known is None:
            return []
        if not known.is_leaving:  # else it had sent all before it gave its lease up
            self._dead[known.holder] = None
            if len(self._dead) > GROUP_NODES:
                del self._dead[next(iter(self._dead))]
        return [NodeGone(known.holder)]

    def _seen_own(self, seen: NodeSeen, now: float) -> list[Effect]:
        is_own = seen.row is not None and seen.row.holder == self.holder
        if self._entity.state is State.JOINING:
            if seen.row is None and self._taken is not None:
                self._next = now
            if is_own and seen.revision < self._place.least:
                return []
            self._place.came = seen.revision if is_own else 0
            self._place.has_room = is_own and self._place.has_room
            return self._look(now)
        is_old = seen.revision < self._revision
        if not self._has_lease or is_old or is_own:
            return []
        return self._fence("its lease has run out" if seen.row is None else _OTHERS)

    def _watched(self, happened: Gap | Current, now: float) -> list[Effect]:
        if isinstance(happened, Gap):
            self._watch = _Watch.BEGUN
        elif self._watch is _Watch.BEGUN:
            self._watch = _Watch.CURRENT
        return self._look(now)

    def _look(self, now: float) -> list[Effect]:
        """Look whether the group has room for this node, once all rows before its own are known."""
        place = self._place
        is_joining = self._entity.state is State.JOINING
        if not is_joining or self._watch is not _Watch.CURRENT or not place.came:
            return []
        if place.has_room or len(self._others) < GROUP_NODES:
            place.has_room = True
            return self._admitted(now)
        if self.is_turned_away:
            return []
        dropped = DropLease(node_key(self.node), max(place.came, self._revision))
        self._rest()
        self._begin()
        self.is_turned_away = True
        self._next = now + GROUP_RENEWAL
        return [dropped, GroupFull()]


_OTHERS: Final = "another process has its id"


def _weight(node: str, key: str) -> bytes:
    return blake2b(f"{node} {key}".encode(), digest_size=8).digest()
