"""The children of one data object at one place (SYN-24, I-D10, M-48..M-50).

Each child has one writer, its creator, and each message of a creator has an id greater than
all before (MSG-03). So a message that is newer than the last one of its creator counts,
for any earlier loss; any other is late, or a repeat. No place needs to know the order
between different creators, and places that have the same children at the same versions are
alike: the digest of a set is the sum of digests of its members, so that it costs the same
however many there are.

A hyperty has a copy that finds its own gaps (SYN-24). The reporter's end has all children, and
publishes a sign of them. A copy that has had the state of the sign before is ahead of it; but if
the same sign is repeated, the reporter's end lacks something. Otherwise a message may be under way;
if it has not come after a pause, the object is read. Messages that came during the read are applied
on top of its result.

A reporter's end gives no signs of children that it never had. So after a child of another
creator a sign must come in time, or the object is read. A reporter that gives no versions of
children gives no signs at all: then what was heard counts.

Of its own children a copy knows better: if the reporter's end does not show them, it sends
them again, a few times; then the reporter's end counts for them, too.
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
from specs.bodies.object import ChildrenSign
from specs.child import RESOURCES, split_name
from specs.jsonvalue import Json, JsonObject, freeze
from specs.limits import sync
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import CHILDREN_OF_CREATOR, QUIET, REASSERTIONS, REPEAT_LAST
from specs.message import MessageType
from specs.reply_code import Code


@attrs.frozen(slots=True)
class ChildOp:
    """One operation of a creator on a child of its own.

    Attributes:
        act: Create, update or delete.
        name: The child: `creator#number`.
        version: Id of the message that said it: of one creator the greater is the later.
        value: Its new value; None, if it is deleted.
        removes: The one attribute that an update removes from the value, if any: dotted path.
        base: Version of the child that the attribute is removed from.
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
_ENTRY: Final = 64
"""Bytes around one child where the whole object shows it (ours)."""

_DIGESTS: Final = 1 << (8 * _DIGEST_BYTES)
_LATE: Final = Refused(Code.CONFLICT, "this was said before, or something later was")


@attrs.frozen(slots=True)
class Kept:
    """One child.

    Attributes:
        value: Its value, frozen: readers get it as it is.
        version: Id of the message that wrote it.
        size: Bytes it counts for.
    """

    creator: str
    value: Json = attrs.field(converter=freeze)
    version: int
    size: int


@attrs.define
class _Creator:
    """The state of one creator.

    Attributes:
        said: Id of its last message that counted.
        number: The greatest number of a child of its own.
    """

    said: int = 0
    number: int = 0
    count: int = 0
    size: int = 0


class ChildSet:
    """All children of one object; bounded in number and size, per creator and together.

    Attributes:
        size: Bytes that all children count for.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._creators: dict[str, _Creator] = {}
        self.size = 0
        self._digest = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def find(self, name: str) -> Kept | None:
        """Return a child; None: there is none of this name."""
        return self._kept.get(name)

    def names_of(self, creator: str) -> list[str]:
        """Return the children of one creator."""
        return [name for name, kept in self._kept.items() if kept.creator == creator]

    @property
    def sign(self) -> ChildrenSign:
        """The sign of the set: which children there are, in few words."""
        return ChildrenSign(len(self._kept), f"{self._digest:016x}")

    def fits_beside(self, data: JsonObject) -> bool:
        """Return whether one message can hold these children beside the value of their object."""
        if not self._kept:
            return True  # a value alone has its own limit
        return self.size + _ENTRY * len(self._kept) + json_size(data) <= sync.VALUE_BYTES

    def shown(self) -> JsonObject:
        """Return all children as the whole object shows them, without their resource."""
        return {
            name: {"value": kept.value, "version": kept.version}
            for name, kept in self._kept.items()
        }

    # --- one by one -----------------------------------------------------------------------

    def take(self, op: ChildOp) -> Refused | bool:
        """Apply the operation of a creator; return whether it is new, a late one is not."""
        creator = self._creators.get(op.creator, _Creator())
        there = self._kept.get(op.name)
        if op.version <= creator.said:
            is_again = there is not None and there.version == op.version
            return _LATE if op.act is MessageType.CREATE and not is_again else False
        if op.removes is not None:
            if there is None or there.version != op.base:
                # Something is missing here: the digest shows it, as the version stays.
                return False
            op = attrs.evolve(op, value=without_attribute(there.value, op.removes))
        refusal = self.refusal(op)
        if refusal is not None:
            return refusal
        self._note_creator(op)
        if op.act is MessageType.DELETE:
            return self._drop(op.name)
        self._put(op.name, Kept(op.creator, op.value, op.version, _size(op.name, op.value)))
        return True

    def refusal(self, op: ChildOp) -> Refused | None:
        """Return why an operation may not be done, before it is sent."""
        creator = self._creators.get(op.creator, _Creator())
        if op.act is MessageType.DELETE:
            return None
        there = self._kept.get(op.name)
        # A creator that does not know whether its child was created sends it again.
        if op.act is MessageType.CREATE and op.number <= creator.number and there is None:
            return Refused(Code.CONFLICT, "the numbers of children only grow")
        if _depth(op.value) > sync.CHILD_DEPTH:
            return Refused(Code.TOO_LARGE, f"its value is nested deeper than {sync.CHILD_DEPTH}")
        flaw = unsendable(op.value)
        if flaw is not None:
            return Refused(Code.TOO_LARGE, flaw.why)
        return _no_room(op, there, creator, len(self._kept), self.size)

    def _note_creator(self, op: ChildOp) -> None:
        creator = self._creators.pop(op.creator, None) or _Creator()
        creator.said = op.version
        creator.number = max(creator.number, op.number)
        self._creators[op.creator] = creator
        if len(self._creators) > sync.CREATORS_KEPT:
            idle = next((who for who, each in self._creators.items() if not each.count), None)
            self._creators.pop(idle or "", None)

    def _put(self, name: str, kept: Kept) -> None:
        there = self._kept.get(name)
        if there is not None:
            self._count(name, there, -1)
        self._kept[name] = kept
        self._count(name, kept, 1)

    def _drop(self, name: str) -> bool:
        there = self._kept.pop(name, None)
        if there is not None:
            self._count(name, there, -1)
        return there is not None

    def _count(self, name: str, kept: Kept, sign: int) -> None:
        creator = self._creators.setdefault(kept.creator, _Creator())
        creator.count += sign
        creator.size += sign * kept.size
        self.size += sign * kept.size
        self._digest = (self._digest + sign * _digest(name, kept.version)) % _DIGESTS

    # --- all at once ----------------------------------------------------------------------

    def become(self, others: "dict[str, Kept]") -> list[str]:
        """Have exactly these children from now on; return which are new, changed or gone.

        How far each creator has come is then what these show: what is later counts.
        """
        for creator in self._creators.values():
            creator.said = 0
        found = [name for name in self._kept if name not in others]
        for name in found:
            self._drop(name)
        for name, kept in others.items():
            there = self._kept.get(name)
            if there is None or there.version != kept.version:
                self._put(name, kept)
                found.append(name)
            creator = self._creators[kept.creator]
            creator.said = max(creator.said, kept.version)
            creator.number = max(creator.number, (split_name(name) or ("", 0))[1])
        return found


def children_in(shown: JsonObject | None) -> dict[str, Kept]:
    """Read the children of one resource that the whole object shows.

    What is none is left out; so is what is beyond the bounds of an object. Where no version
    is given, any later operation counts.
    """
    found: dict[str, Kept] = {}
    room = sync.CHILDREN_BYTES
    for name, entry in (shown or {}).items():
        read, value = split_name(name), entry.get("value") if isinstance(entry, dict) else None
        size = _size(name, value)
        if read is None or not isinstance(entry, dict) or size > room:
            continue
        if len(found) == sync.CHILDREN_OF_OBJECT:
            break
        version = entry.get("version")
        kept = Kept(read[0], value, version if isinstance(version, int) else 0, size)
        found[name], room = kept, room - size
    return found


def _no_room(
    op: ChildOp, there: Kept | None, creator: _Creator, count: int, size: int
) -> Refused | None:
    """Return the bound that a child would break; None: none."""
    fresh, known = _size(op.name, op.value), 0 if there is None else there.size
    more, one = fresh - known, 1 if there is None else 0
    bounds = (
        (fresh - len(op.name), sync.CHILD_BYTES, "a child of more than {} bytes"),
        (creator.count + one, sync.CHILDREN_OF_CREATOR, "more than {} children of one creator"),
        (creator.size + more, sync.CREATOR_BYTES, "more than {} bytes of one creator"),
        (count + one, sync.CHILDREN_OF_OBJECT, "more than {} children"),
        (size + more, sync.CHILDREN_BYTES, "more than {} bytes of children"),
    )
    for wanted, bound, what in bounds:
        if wanted > bound:
            return Refused(Code.TOO_LARGE, f"no object has {what.format(bound)}")
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
"""Signs of its own past by which a copy knows that it is not behind (ours)."""

_HEARD: Final = 1000
"""Changes during a read is under way that are kept; then the oldest go (ours)."""


class ChildrenPort(Protocol):
    """What a copy of children asks of its host; no method calls the copy."""

    def changed(self, name: str) -> None:
        """Show that a child came, changed or went."""

    def read(self, number: int) -> None:
        """Read the whole object (M-41): some are missing, or too many are there.

        Args:
            number: Number of the read, for `read_failed`.
        """

    def say_again(self, act: MessageType, name: str) -> None:
        """Send an operation of the own hyperty again, which the reporter's end lacks.

        The new message has a version of its own; the host passes it to `take`.
        """


class ChildrenCopyCore:
    """A copy of the children of one object.

    Args:
        keeper: The hyperty of this copy: the one creator whose children the copy knows best.
        port: The host.

    Attributes:
        children: All of them; not to be changed.
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
        self._note()

    def deadline(self) -> float:
        """Return when `time_over` is due; infinity: never."""
        return min(self._due, self._sign_by)

    # --- inputs: `now` is the time on the host's clock ------------------------------------

    def take(self, op: ChildOp, now: float, *, is_reported: bool = False) -> None:
        """Take an operation of a creator; also one of the own hyperty, once it is sent.

        Args:
            op: The operation.
            now: Seconds on the host's clock.
            is_reported: Whether the reporter's end vouches for it: the creator was not heard here.
        """
        is_own = op.creator == self._keeper
        if is_reported and is_own:
            # Of its own children a copy takes nobody's word but its hyperty's.
            return
        if self._heard is not None:
            self._heard.append(op)
        if is_own and op.act is MessageType.DELETE:
            self._deleted[op.name] = None
            if len(self._deleted) > CHILDREN_OF_CREATOR:
                self._deleted.pop(next(iter(self._deleted)))
        # One more than fits here the reporter's end has refused, too.
        taken = self.children.take(op)
        if taken is not False and not (is_own or is_reported):
            self._sign_by = min(self._sign_by, now + QUIET)
        self._note()
        self._settle()
        if taken is True:
            self._port.changed(op.name)

    def doubt(self, now: float) -> None:
        """Read at once: messages may have been missed, and no sign will show it."""
        self._due, self._is_check = min(self._due, now), False
        self._is_doubted = True

    # --- signs ----------------------------------------------------------------------------

    def _note(self) -> None:
        """Remember the present state of the copy, the newest last."""
        self._number += 1
        sign = self.children.sign
        self._past.pop(sign, None)
        self._past[sign] = self._number
        if len(self._past) > _SIGNS:
            del self._past[next(iter(self._past))]

    def hear_sign(self, sign: ChildrenSign, now: float) -> None:
        """Take the sign of its children that the reporter's end has published."""
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

    def _settle(self) -> None:
        """End the wait if the missing children have come."""
        if self._missed == self.children.sign:
            self._sign_by = math.inf
        if self._missed in {None, self.children.sign}:
            self._missed = None
            if self._heard is None and not self._is_doubted:
                self._due = math.inf

    # --- reads ----------------------------------------------------------------------------

    def time_over(self, now: float) -> None:
        """Do what is due."""
        if now < self.deadline():
            return
        # While it is a check, nothing but the silence of the reporter asks for it.
        self._is_check |= now < self._due
        self._sign_by = math.inf
        self._reads += 1
        self._heard = deque(maxlen=_HEARD)
        self._pause = min(2 * self._pause, REPEAT_LAST)
        # Without an answer, it is read again.
        self._due = now + REPEAT_LAST
        self._port.read(self._reads)

    def read_failed(self, read: int, now: float) -> None:
        """Repeat a read later."""
        if read == self._reads and self._heard is not None:
            self._heard = None
            if self._is_check:
                self._sign_by = now + self._pause
            else:
                self._due = now + self._pause

    def become(self, shown: JsonObject | None, now: float) -> None:
        """Take the whole object with all its children.

        Args:
            shown: As `childrenObjects` has them; None: the object did not say.
            now: Seconds on the host's clock.
        """
        since, self._heard = self._heard or (), None
        is_check, self._is_check = self._is_check, False
        self._due, self._is_doubted = math.inf, False
        if shown is None:
            # Its reporter has none, or too many to show them.
            self._due = math.inf if self._missed is None else now + self._pause
            return
        resource = shown.get(RESOURCES)
        there = children_in(resource if isinstance(resource, dict) else None)
        if is_check and not all(kept.version for kept in there.values()):
            return
        self._missed = None
        again = self._find_unknown(there, {op.name for op in since})
        for name in self.children.become(there):
            self._port.changed(name)
        for op in since:
            # What was read may be newer; where it is not, this may be said to be new.
            new = op if op.act is MessageType.DELETE else attrs.evolve(op, act=MessageType.UPDATE)
            if self.children.take(new) is True:
                self._port.changed(op.name)
        self._note()
        for act, name in again:
            self._port.say_again(act, name)

    def _find_unknown(
        self, there: dict[str, Kept], since: AbstractSet[str]
    ) -> list[tuple[MessageType, str]]:
        """Keep, and return, operations of the keeper that the reporter's end does not show."""
        again: list[tuple[MessageType, str]] = []
        for name in self.children.names_of(self._keeper):
            mine, theirs = self.children.find(name), there.get(name)
            is_known = theirs is not None and mine is not None and theirs.version >= mine.version
            if mine is None or is_known or name in since:
                continue
            if self._may_again(name):
                there[name] = mine
                again.append((MessageType.UPDATE, name))
        for name in [name for name in self._deleted if name in there and name not in since]:
            if self._may_again(name):
                del there[name]
                again.append((MessageType.DELETE, name))
        return again

    def _may_again(self, name: str) -> bool:
        self._again[name] += 1
        return self._again[name] <= REASSERTIONS
