"""The children of one data object at one place (SYN-24, I-D10, M-48..M-50).

Each child has one writer, its creator, and each message of a creator has an id greater than
all before (MSG-03). So a message that is newer than the last one of its creator counts,
for any earlier loss; any other is late, or a repeat. No place needs to know the order
between different creators, and places that have the same children at the same versions are
alike: the digest of a set is the sum of digests of its members, so that it costs the same
however many there are.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

import attrs

from fsm.effects import Refused
from fsm.sync.value.json import json_size, unsendable
from fsm.sync.value.value import without_attribute
from specs.bodies.object import ChildrenSign
from specs.child import named
from specs.jsonvalue import Json, JsonObject, frozen
from specs.limits import sync
from specs.message import Message, MessageType
from specs.reply_code import Code

_ACTS: Final = frozenset({MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE})


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


def op_in(message: Message) -> ChildOp | None:
    """Return the operation in a message; None: its sender may not do it (I-D10).

    The sender must be the creator in the child's name; a router has checked the sender.
    """
    act, name = message.type, message.body.get("resource")
    found = named(name) if isinstance(name, str) else None
    if act not in _ACTS or found is None or found[0] != message.from_:
        return None
    creator, number = found
    removes, base = message.body.get("attribute"), message.body.get("version")
    if act is not MessageType.DELETE:
        value = message.body.get("value")
        return ChildOp(act, str(name), creator, number, message.id, value)
    if isinstance(removes, str) and isinstance(base, int):
        update = MessageType.UPDATE
        return ChildOp(update, str(name), creator, number, message.id, removes=removes, base=base)
    return ChildOp(act, str(name), creator, number, message.id)


def op_of(name: str, version: int, value: Json = None) -> ChildOp | None:
    """Return the operation that the object of a child reports; None: its name is none.

    Args:
        name: The child.
        version: Id of the creator's message.
        value: Its value; None: it is deleted.
    """
    found, act = named(name), MessageType.DELETE if value is None else MessageType.UPDATE
    return None if found is None else ChildOp(act, name, *found, version, value)


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
    value: Json = attrs.field(converter=frozen)
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
    """All children of one object; bounded in number and size, per creator and together."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._creators: dict[str, _Creator] = {}
        self._size = 0
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
    def size(self) -> int:
        """Bytes that all children count for."""
        return self._size

    @property
    def sign(self) -> ChildrenSign:
        """The sign of the set: which children there are, in few words."""
        return ChildrenSign(len(self._kept), f"{self._digest:016x}")

    def fits_beside(self, data: JsonObject) -> bool:
        """Return whether one message can hold these children beside the value of their object."""
        if not self._kept:
            return True  # a value alone has its own limit
        return self._size + _ENTRY * len(self._kept) + json_size(data) <= sync.VALUE_BYTES

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
        return _no_room(op, there, creator, len(self._kept), self._size)

    def _note_creator(self, op: ChildOp) -> None:
        creator = self._creators.pop(op.creator, None) or _Creator()
        creator.said = op.version
        creator.number = max(creator.number, op.number)
        self._creators[op.creator] = creator
        if len(self._creators) > sync.CREATORS_KEPT:
            idle = next((who for who, one in self._creators.items() if not one.count), None)
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
        self._size += sign * kept.size
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
            creator.number = max(creator.number, (named(name) or ("", 0))[1])
        return found


def children_in(shown: JsonObject | None) -> dict[str, Kept]:
    """Read the children of one resource that the whole object shows.

    What is none is left out; so is what is beyond the bounds of an object. Where no version
    is given, any later operation counts.
    """
    found: dict[str, Kept] = {}
    room = sync.CHILDREN_BYTES
    for name, entry in (shown or {}).items():
        read, value = named(name), entry.get("value") if isinstance(entry, dict) else None
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
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner and not any(isinstance(one, dict | list) for one in level):
            return depth
        level = inner
    return sync.CHILD_DEPTH + 1


def _digest(name: str, version: int) -> int:
    text = f"{name} {version}".encode()
    return int.from_bytes(blake2b(text, digest_size=_DIGEST_BYTES).digest())
