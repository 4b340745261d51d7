"""Child objects of a data object, as runtimes and hyperties hold them (SYN-24, I-D10, M-48..M-50).

Each child has one writer, its creator, and each message of a creator has a greater id than all its
earlier ones (MSG-03). So a message that is newer than the last one of its creator is applied, even
if earlier ones were lost; any other message is late, or a repeat. The order between different
creators does not matter. Two sets with the same children at the same versions have equal digests:
the digest of a set is the sum of the digests of its members, so updating it takes constant time.

A hyperty has a copy of the children that detects its own gaps (SYN-24). The reporter's runtime has
all children, and publishes a sign of them: their number and digest. If a copy had that sign at an
earlier time, the copy is ahead of the reporter's runtime; but if the same sign is repeated, the
reporter's runtime lacks a message. Otherwise a message may be under way; if it has not come after a
pause, the copy reads the object. Messages that came during the read are applied on top of its
result.

A reporter's runtime publishes no sign of children that it never received. So after a child of
another creator arrives, a sign must follow in time; if none comes, the object is read. A reporter
that publishes no versions of children publishes no signs at all: then the copy relies on the
received messages.

A copy knows more about its own hyperty's children than the reporter does: if the reporter's runtime
lacks them, the copy sends them again, a few times; then it accepts the reporter's state.

An object may have a window: the newest children, which it keeps. The reporter's runtime alone
decides which children leave the window, and reports their names; so all copies remove the same
children. It counts the children of the object. A copy that agrees with the reporter's runtime knows
from that count how many children it has never had, because they left the window meanwhile.
"""

import math
from collections import Counter, deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Final, Protocol

import attrs

from fsm.effects import Refused
from fsm.sync.value.json import json_size, unsendable
from fsm.sync.value.value import without_attribute
from specs.bodies.object import ChildrenEnded, ChildrenSign, ChildWindow
from specs.child import RESOURCES, split_name
from specs.jsonvalue import Json, JsonObject, freeze
from specs.limits import sync
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import CHILDREN_OF_CREATOR, QUIET, REASSERTIONS, REPEAT_LAST
from specs.message import MessageType
from specs.reply_code import Code


@attrs.frozen(slots=True)
class ChildOp:
    """Operation of a creator on its own child: create, update or delete.

    Attributes:
        act: The kind of operation.
        name: Name of the child: `creator#number`.
        version: Id of the message; a creator's later messages have greater ids.
        value: The new value; None if the child is deleted.
        removes: Dotted path of the single attribute that an update removes from the value, if any.
        base: Version of the child from which the attribute is removed.
    """

    act: MessageType
    name: str
    creator: str
    number: int
    version: int
    value: Json = None
    removes: str | None = None
    base: int = 0


_DIGEST_BYTES: Final = 8
ENTRY: Final = 64
"""Number of bytes that a child adds to the whole object in addition to its value (our choice)."""

_DIGESTS: Final = 1 << (8 * _DIGEST_BYTES)
_LATE: Final = Refused(Code.CONFLICT, "this was said before, or something later was")


@attrs.frozen(slots=True)
class Kept:
    """Stored state of one child: creator, value, version and size.

    Attributes:
        value: Its value, frozen: readers get it without a copy.
        version: Id of the message that wrote it.
        size: Number of bytes that it counts for.
    """

    creator: str
    value: Json = attrs.field(converter=freeze)
    version: int
    size: int


@attrs.define
class _Creator:
    """Counts of one creator's children, and the id of its last message.

    Attributes:
        said: Id of its last message that was applied.
        number: The greatest number of its children.
        ended: The greatest number of its children that the reporter's end has removed; those up to
            this number do not come back.
    """

    said: int = 0
    number: int = 0
    ended: int = 0
    count: int = 0
    size: int = 0


class ChildSet:
    """All children of one object, with limits of number and size, per creator and in total.

    With a window, the oldest children leave instead: `trim` removes them.

    Attributes:
        size: Number of bytes that all children count for.
        window: The children that the object keeps; None: all.
    """

    def __init__(self, window: ChildWindow | None = None) -> None:
        self._kept: dict[str, Kept] = {}
        self._creators: dict[str, _Creator] = {}
        self.size = 0
        self.window = window
        self._digest = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def find(self, name: str) -> Kept | None:
        """Return the state of the child with a name, or None."""
        return self._kept.get(name)

    def names_of(self, creator: str) -> list[str]:
        """Return the names of one creator's children."""
        return [name for name, kept in self._kept.items() if kept.creator == creator]

    @property
    def sign(self) -> ChildrenSign:
        """The checksum of the set: the number of children and their digest."""
        return ChildrenSign(len(self._kept), f"{self._digest:016x}")

    def fits_beside(self, data: JsonObject) -> bool:
        """Return whether one message can contain these children and their object's value."""
        if not self._kept:
            return True  # a value alone has its own limit
        entry = ENTRY if self.window is None else 2 * ENTRY
        return self.size + entry * len(self._kept) + json_size(data) <= sync.VALUE_BYTES

    def shown(self) -> JsonObject:
        """Return all children in the form of a `read` answer: value and version by name."""
        return {
            name: {"value": kept.value, "version": kept.version}
            for name, kept in self._kept.items()
        }

    # --- single children ----------------------------------------------------------------------

    def take(self, op: ChildOp) -> Refused | bool:
        """Apply the operation of a creator; return True if the set changed, False if it is late."""
        creator = self._creators.get(op.creator, _Creator())
        child = self._kept.get(op.name)
        if op.version <= creator.said:
            is_again = child is not None and child.version == op.version
            return _LATE if op.act is MessageType.CREATE and not is_again else False
        if op.removes is not None:
            if child is None or child.version != op.base:
                # An earlier message is missing: the digest shows that, as the version stays.
                return False
            op = attrs.evolve(op, value=without_attribute(child.value, op.removes))
        refusal = self.refusal(op)
        if refusal is not None:
            return refusal
        self._note_creator(op)
        if op.act is MessageType.DELETE:
            return self._drop(op.name)
        self._put(op.name, Kept(op.creator, op.value, op.version, _size(op.name, op.value)))
        return True

    def refusal(self, op: ChildOp) -> Refused | None:
        """Return why an operation is not allowed, or None if it may be applied or sent."""
        creator = self._creators.get(op.creator, _Creator())
        if op.act is MessageType.DELETE:
            return None
        child = self._kept.get(op.name)
        # A creator that does not know whether its child was created creates it again.
        if op.act is MessageType.CREATE and op.number <= creator.number and child is None:
            return Refused(Code.CONFLICT, "the numbers of children only grow")
        if child is None and op.number <= creator.ended:
            return Refused(Code.GONE, "the child was removed from the object")
        if _depth(op.value) > sync.CHILD_DEPTH:
            return Refused(Code.TOO_LARGE, f"its value is nested deeper than {sync.CHILD_DEPTH}")
        flaw = unsendable(op.value)
        if flaw is not None:
            return Refused(Code.TOO_LARGE, flaw.why)
        counts = None if self.window is not None else (len(self._kept), self.size)
        return _no_room(op, child, creator, counts)

    def _note_creator(self, op: ChildOp) -> None:
        creator = self._creators.pop(op.creator, None) or _Creator()
        creator.said = op.version
        creator.number = max(creator.number, op.number)
        self._creators[op.creator] = creator
        self._forget_idle(op.creator)

    def _forget_idle(self, but: str = "") -> None:
        """Forget the creators without children that have been silent for longest."""
        while len(self._creators) > sync.CREATORS_KEPT:
            silent = (who for who, each in self._creators.items() if not each.count and who != but)
            idle = next(silent, None)
            if idle is None:
                return
            del self._creators[idle]

    def _put(self, name: str, kept: Kept) -> None:
        former = self._kept.get(name)
        if former is not None:
            self._count(name, former, -1)
        self._kept[name] = kept
        self._count(name, kept, 1)

    def _drop(self, name: str) -> bool:
        former = self._kept.pop(name, None)
        if former is not None:
            self._count(name, former, -1)
        return former is not None

    def _count(self, name: str, kept: Kept, sign: int) -> None:
        creator = self._creators.setdefault(kept.creator, _Creator())
        creator.count += sign
        creator.size += sign * kept.size
        self.size += sign * kept.size
        self._digest = (self._digest + sign * _digest(name, kept.version)) % _DIGESTS

    # --- removal by the reporter's end -------------------------------------------------------

    def end(self, name: str) -> bool:
        """Remove a child for good, without its creator; return whether it was in the set."""
        creator, number = split_name(name) or ("", 0)
        counts = self._creators.setdefault(creator, _Creator())
        counts.ended = max(counts.ended, number)
        is_present = self._drop(name)
        self._forget_idle()
        return is_present

    def last_ended(self) -> dict[str, int]:
        """Return by creator the last number that the reporter's end has removed."""
        return {who: counts.ended for who, counts in self._creators.items() if counts.ended}

    def trim(self, children: int = 0, size: int = 0) -> list[str]:
        """Remove the oldest children that exceed the window; return their names, in order.

        Args:
            children: Number of children that may exceed the window.
            size: Number of bytes that they may exceed it by.
        """
        window, ended = self.window, list[str]()
        if window is None:
            return ended
        while len(self._kept) > window.last + children or self.size > window.bytes + size:
            oldest = next(iter(self._kept))
            self.end(oldest)
            ended.append(oldest)
        return ended

    # --- the whole set ---------------------------------------------------------------------

    def become(self, others: "dict[str, Kept]") -> list[str]:
        """Replace all children; return the names of those that are new, changed or removed.

        Messages of a creator that are part of these children are then ignored, and later ones
        are applied.
        """
        for creator in self._creators.values():
            creator.said = 0
        changed = [name for name in self._kept if name not in others]
        for name in changed:
            self._drop(name)
        for name, kept in others.items():
            former = self._kept.get(name)
            if former is None or former.version != kept.version:
                self._put(name, kept)
                changed.append(name)
            creator = self._creators[kept.creator]
            creator.said = max(creator.said, kept.version)
            creator.number = max(creator.number, (split_name(name) or ("", 0))[1])
        if self.window is not None:
            # All copies have the order of the reporter's end.
            self._kept = {name: self._kept[name] for name in others}
        return changed


def children_in(shown: JsonObject | None, window: ChildWindow | None = None) -> dict[str, Kept]:
    """Read the children from a read answer: a dictionary of value and version by name.

    Entries that are no children are left out, and so are children beyond the limits of an object.
    An entry without a version gets version 0, so that any later operation is applied.

    Args:
        shown: The dictionary.
        window: The window of the object, which is its limit; None: it has none.
    """
    children: dict[str, Kept] = {}
    most, space = sync.CHILDREN_OF_OBJECT, sync.CHILDREN_BYTES
    if window is not None:
        most, space = window.last, window.bytes
    for name, entry in (shown or {}).items():
        parts, value = split_name(name), entry.get("value") if isinstance(entry, dict) else None
        size = _size(name, value)
        if parts is None or not isinstance(entry, dict) or size > space:
            continue
        if len(children) == most:
            break
        version = entry.get("version")
        kept = Kept(parts[0], value, version if isinstance(version, int) else 0, size)
        children[name], space = kept, space - size
    return children


def whole_in(counts: Json, name: str) -> int:
    """Return a whole number of an object in JSON; 0: it has none of that name."""
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) and value >= 0 else 0


def _no_room(
    op: ChildOp, former: Kept | None, creator: _Creator, counts: tuple[int, int] | None
) -> Refused | None:
    """Return a refusal that names the limit that a child would exceed, or None.

    Args:
        op: The operation.
        former: The child before the operation, if it exists.
        creator: Counts of its creator.
        counts: Number and size of all children; None: the object has a window, and others leave.
    """
    size_after, known = _size(op.name, op.value), 0 if former is None else former.size
    more, added = size_after - known, 1 if former is None else 0
    bounds = [(size_after - len(op.name), sync.CHILD_BYTES, "a child of more than {} bytes")]
    if counts is not None:
        count, size = counts
        bounds += [
            (creator.count + added, sync.CHILDREN_OF_CREATOR, "more than {} children of a creator"),
            (creator.size + more, sync.CREATOR_BYTES, "more than {} bytes of a creator"),
            (count + added, sync.CHILDREN_OF_OBJECT, "more than {} children"),
            (size + more, sync.CHILDREN_BYTES, "more than {} bytes of children"),
        ]
    for wanted, bound, name in bounds:
        if wanted > bound:
            return Refused(
                Code.TOO_LARGE, f"no object has {name.format(bound)}, this would be {wanted}"
            )
    return None


def _size(name: str, value: Json) -> int:
    return json_size(value) + len(name)


def _depth(value: Json) -> int:
    level: list[Json] = [value]
    for depth in range(sync.CHILD_DEPTH + 1):
        inner: list[Json] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        if not inner and not any(isinstance(each, dict | list) for each in level):
            return depth
        level = inner
    return sync.CHILD_DEPTH + 1


def _digest(name: str, version: int) -> int:
    text = f"{name} {version}".encode()
    return int.from_bytes(blake2b(text, digest_size=_DIGEST_BYTES).digest())


# ---- the copy at a hyperty


_SIGNS: Final = 256
"""Number of earlier checksums that a copy remembers, to recognise outdated ones (our choice)."""

_HEARD: Final = 1000
"""Number of child operations kept while a read is under way; older ones are dropped (our choice).
"""


class ChildrenPort(Protocol):
    """Callbacks of `ChildrenCopyCore` to its host; none of them may call the copy."""

    def changed(self, name: str) -> None:
        """Tell the hyperty that a child was added, changed or removed."""

    def read(self, number: int) -> None:
        """Read the whole object (M-41), since the copy lacks children or has deleted ones.

        Args:
            number: Number of the read, for `read_failed`.
        """

    def say_again(self, act: MessageType, name: str) -> None:
        """Send an operation of the own hyperty again, since the reporter's runtime lacks it.

        The new message has a version of its own; the host passes it to `take`.
        """


class ChildrenCopyCore:
    """Copy of one object's children at a hyperty, which detects lost messages and reads them again.

    Args:
        keeper: The hyperty that has this copy; its own children are known best here.
        port: The host.

    Attributes:
        children: All children; to be read only.
        missed: Number of children that left the window before this copy had them.
    """

    def __init__(self, keeper: str, port: ChildrenPort) -> None:
        self.children: Final = ChildSet()
        self._keeper = keeper
        self._port = port
        self._past: dict[ChildrenSign, int] = {}
        self._number = 0
        self._latest = 0
        self._missed: ChildrenSign | None = None
        self._due = math.inf
        self._sign_by = math.inf
        self._is_check = False
        self._is_doubted = False
        self._pause = READ_PAUSE
        self._reads = 0
        self._heard: deque[ChildOp] | None = deque(maxlen=_HEARD)
        self._deleted: dict[str, None] = {}
        self._again: Counter[str] = Counter()
        self.missed = 0
        # Of an object with a window: the children so far, as of the last agreement with the
        # reporter's end; children that are new since then; those that are new, and that have ended,
        # since the begin of a read.
        self._created: int | None = None
        self._fresh = 0
        self._unread: set[str] = set()
        self._ended: deque[str] = deque(maxlen=_HEARD)
        self._note()

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called; infinity: never."""
        return min(self._due, self._sign_by)

    # --- inputs: `now` is the time on the host's clock ------------------------------------

    def take(self, op: ChildOp, now: float, *, is_reported: bool = False) -> None:
        """Apply a received operation of a creator, or one that the own hyperty has just sent.

        Args:
            op: The operation.
            now: Seconds on the host's clock.
            is_reported: Whether the operation came from the reporter's runtime, not from the
                creator.
        """
        is_own = op.creator == self._keeper
        if is_reported and is_own:
            # A copy relies on its hyperty alone for the children of that hyperty.
            return
        if self._heard is not None:
            self._heard.append(op)
        if is_own and op.act is MessageType.DELETE:
            self._deleted[op.name] = None
            if len(self._deleted) > CHILDREN_OF_CREATOR:
                self._deleted.pop(next(iter(self._deleted)))
        is_new = op.name not in self.children
        # A child that does not fit here was refused by the reporter's runtime, too.
        result = self.children.take(op)
        # Reports of what has left the window may be lost; the copy does not grow without them.
        trimmed = self.children.trim(sync.CHILDREN_OF_OBJECT, sync.CHILDREN_BYTES)
        if result is not False and not (is_own or is_reported):
            self._sign_by = min(self._sign_by, now + QUIET)
        self._note()
        self._settle()
        if result is True:
            self._fresh += is_new
            if is_new and self._heard is not None and len(self._unread) < _HEARD:
                self._unread.add(op.name)
            self._port.changed(op.name)
        for name in trimmed:
            self._port.changed(name)

    def doubt(self, now: float) -> None:
        """Schedule a read at once, since messages may be lost that no checksum will reveal."""
        self._due, self._is_check = min(self._due, now), False
        self._is_doubted = True

    # --- signs ----------------------------------------------------------------------------

    def _note(self) -> None:
        """Remember the present checksum of the copy as the newest of its earlier ones."""
        self._number += 1
        sign = self.children.sign
        self._past.pop(sign, None)
        self._past[sign] = self._number
        if len(self._past) > _SIGNS:
            del self._past[next(iter(self._past))]

    def hear_sign(self, sign: ChildrenSign, now: float) -> None:
        """Compare the reporter's checksum of the children with the copy; read if needed."""
        self._sign_by, self._is_check = math.inf, False
        number = self._past.get(sign, 0)
        is_ahead = number > self._latest
        self._latest = max(self._latest, number)
        if sign == self.children.sign:
            self._missed, self._pause = None, READ_PAUSE
            self._is_doubted = False
            self._again.clear()
        elif is_ahead:
            self._missed = None
        else:
            self._missed = sign
            if self._heard is None:
                self._due = min(self._due, now + self._pause)
        self._settle()

    def end(self, name: str) -> None:
        """Remove a child, as the reporter's end has removed it."""
        self._deleted.pop(name, None)
        self._ended.append(name)
        if self.children.end(name):
            self._port.changed(name)

    def take_ended(self, report: ChildrenEnded, now: float) -> None:
        """Remove the children that the reporter's end has removed, also those of the own hyperty.

        Args:
            report: Their names, with the checksum and the counts of the reporter's end.
            now: Seconds on the host's clock.
        """
        for name in report.ended:
            self.end(name)
        self._note()
        self.hear_sign(ChildrenSign(report.count, report.digest), now)
        if self.children.sign == ChildrenSign(report.count, report.digest):
            self._agree(report.created, report.gone)

    def _agree(self, created: int | None, gone: int | None, fresh: int = 0) -> None:
        """Count the children that were created since the last agreement, and that this copy lacked.

        Args:
            created: Number of children of the object so far; None: it has no window.
            gone: The greatest number of a child that has left the window.
            fresh: Number of children that this copy has before the reporter's end has them.
        """
        if created is None or gone is None:
            return
        if self._created is not None:
            lacking = created - self._created - (self._fresh - fresh)
            # What its creator has deleted is not missed.
            self.missed += max(0, min(lacking, gone - self._created))
        self._created, self._fresh = created, fresh

    def _settle(self) -> None:
        """Cancel the scheduled read if the missing children have arrived."""
        if self._missed == self.children.sign:
            self._sign_by = math.inf
        if self._missed in {None, self.children.sign}:
            self._missed = None
            if self._heard is None and not self._is_doubted:
                self._due = math.inf

    # --- reads ----------------------------------------------------------------------------

    def time_over(self, now: float) -> None:
        """Read the object if a checksum or lost messages did not come before a deadline."""
        if now < self.deadline():
            return
        # A check is needed only because the reporter was silent.
        self._is_check |= now < self._due
        self._sign_by = math.inf
        self._reads += 1
        self._ended.clear()
        self._unread.clear()
        self._heard = deque(maxlen=_HEARD)
        self._pause = min(2 * self._pause, REPEAT_LAST)
        # Without an answer, the object is read again.
        self._due = now + REPEAT_LAST
        self._port.read(self._reads)

    def read_failed(self, read: int, now: float) -> None:
        """Schedule another read after a pause, since a read failed."""
        if read == self._reads and self._heard is not None:
            self._heard = None
            if self._is_check:
                self._sign_by = now + self._pause
            else:
                self._due = now + self._pause

    def become(self, shown: JsonObject | None, now: float) -> None:
        """Replace the children by those of a read answer, then apply the later operations.

        Args:
            shown: The value of `childrenObjects`; None: the object has no such field.
            now: Seconds on the host's clock.
        """
        later_ops, self._heard = self._heard or (), None
        is_check, self._is_check = self._is_check, False
        self._due, self._is_doubted = math.inf, False
        if shown is None:
            # Its reporter has no children, or too many to show them.
            self._due = math.inf if self._missed is None else now + self._pause
            if self.children.window is not None:
                # They are read in pages.
                self._due = now + (self._pause if self._reads else 0.0)
            return
        resource, window = shown.get(RESOURCES), self.children.window
        children = children_in(resource if isinstance(resource, dict) else None, window)
        if is_check and not all(kept.version for kept in children.values()):
            return
        self._missed = None
        repeats = self._find_unknown(children, {op.name for op in later_ops})
        self._fresh += sum(name not in self.children for name in children)
        for name in self.children.become(children):
            self._port.changed(name)
        if isinstance(counts := shown.get("window"), dict):
            fresh = len(self._unread - children.keys())
            self._agree(whole_in(counts, "created"), whole_in(counts, "gone"), fresh)
        for op in later_ops:
            # The read child may be newer; if it is not, this operation may count as new.
            newer = op if op.act is MessageType.DELETE else attrs.evolve(op, act=MessageType.UPDATE)
            if self.children.take(newer) is True:
                self._port.changed(op.name)
        for name in self._ended:
            if self.children.end(name):
                self._port.changed(name)
        self._note()
        for act, name in repeats:
            self._port.say_again(act, name)

    def _find_unknown(
        self, children: dict[str, Kept], since: AbstractSet[str]
    ) -> list[tuple[MessageType, str]]:
        """Return own operations to send again, which a read answer lacks, and add them to it."""
        repeats: list[tuple[MessageType, str]] = []
        for name in self.children.names_of(self._keeper):
            mine, theirs = self.children.find(name), children.get(name)
            is_known = theirs is not None and mine is not None and theirs.version >= mine.version
            if mine is None or is_known or name in since:
                continue
            if theirs is None and self.children.window is not None:
                # Its creation was acknowledged, so it has left the window meanwhile.
                continue
            if self._may_again(name):
                children[name] = mine
                repeats.append((MessageType.UPDATE, name))
        for name in [name for name in self._deleted if name in children and name not in since]:
            if self._may_again(name):
                del children[name]
                repeats.append((MessageType.DELETE, name))
        return repeats

    def _may_again(self, name: str) -> bool:
        self._again[name] += 1
        return self._again[name] <= REASSERTIONS
