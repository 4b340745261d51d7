"""Who owns which address of a domain (MN-10..MN-13, I-A1..I-A7).

An address is allocated once in the life of a node; a released one leaves a
tombstone. Addresses of other domains that a connected runtime uses are bound to its
session: owned like the others, but not the node's to allocate, so without a machine.
"""

import math
from collections.abc import Iterable
from typing import TypeAlias, assert_never, final

import attrs

from fsm.cores.effects import RowChanged
from fsm.cores.refused import Refused
from fsm.engine import Entity, Step
from fsm.machines.address import ADDRESS, Trigger
from specs.limits import MAX_ADDRESSES
from specs.reply_code import Code
from specs.trace import Op

__all__ = [
    "Allocate",
    "Allocated",
    "AllocationCore",
    "Bind",
    "Claim",
    "Effect",
    "Free",
    "FreeBlock",
    "Freed",
    "Input",
    "Release",
]


@final
@attrs.frozen(slots=True)
class Allocate:
    """A runtime asks for addresses (M-18).

    Attributes:
        owner: The runtime.
        addresses: Fresh ones, as many as it asked for; made by the host, because
            randomness is not the core's.
        key: Names them together, within this owner.
    """

    owner: str
    addresses: tuple[str, ...]
    key: str | None = None


@final
@attrs.frozen(slots=True)
class Claim:
    """A runtime names an address of this domain that it made itself (C-44)."""

    owner: str
    address: str


@final
@attrs.frozen(slots=True)
class Bind:
    """A runtime uses an address of another domain (MN-13)."""

    owner: str
    address: str


@final
@attrs.frozen(slots=True)
class FreeBlock:
    """Free what was allocated under a key, or one address (M-19, C-46)."""

    owner: str
    key: str


@final
@attrs.frozen(slots=True)
class Free:
    """Free addresses, all or none (M-20)."""

    owner: str
    addresses: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Release:
    """The owner's session is over: nothing of it stays (I-A7)."""

    owner: str
    why: str


Input: TypeAlias = Allocate | Claim | Bind | FreeBlock | Free | Release


@final
@attrs.frozen(slots=True)
class Allocated:
    """What was asked for is allocated."""

    addresses: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Freed:
    """These are free of their owner now; none of them, if all were unknown."""

    addresses: tuple[str, ...]


Effect: TypeAlias = Step | RowChanged | Allocated | Freed | Refused


@final
class AllocationCore:
    """The allocation table of one domain.

    Memory grows with what lives and, by about 100 bytes each, with the tombstones.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._entities: dict[str, Entity] = {}
        self._keys: dict[str, str] = {}
        self._of: dict[str, dict[str, None]] = {}
        self._tombstones: set[str] = set()

    def owner_of(self, address: str) -> str | None:
        """Return who owns an address or the nearest one above it."""
        owners = self._owners
        slash = "/"
        while slash and not address.endswith("/"):
            owner = owners.get(address)
            if owner is not None:
                return owner
            address, slash, _ = address.rpartition("/")
        return None

    def owned_by(self, owner: str) -> tuple[str, ...]:
        """Return what a runtime owns, oldest first."""
        return tuple(self._of.get(owner, ()))

    def is_tombstone(self, address: str) -> bool:
        """Say whether an address was allocated once and released."""
        return address in self._tombstones

    def __len__(self) -> int:
        return len(self._owners)

    def deadline(self) -> float:
        """Return when to be fed again: never, addresses live as long as sessions."""
        return math.inf

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Decide; `now` is not looked at."""
        del now
        match happened:
            case Allocate(owner, addresses, key):
                return self._allocate(owner, addresses, key)
            case Claim(owner, address):
                return self._claim(owner, address)
            case Bind(owner, address):
                return self._bind(owner, address)
            case FreeBlock(owner, key):
                return self._free_block(owner, key)
            case Free(owner, addresses):
                return self._free(owner, addresses)
            case Release(owner, why):
                return self._drop(owner, self.owned_by(owner), why)
            case _:
                assert_never(happened)

    def _allocate(self, owner: str, addresses: tuple[str, ...], key: str | None) -> list[Effect]:
        if not self._has_room(owner, len(addresses)):
            return [Refused(Code.TOO_LARGE, f"a session holds at most {MAX_ADDRESSES} addresses")]
        if any(one in self._owners or one in self._tombstones for one in addresses):
            return [Refused(Code.CONFLICT, "an address of that name was allocated before")]
        why = "create" if key is None else f"create key={key}"
        effects = self._take(owner, addresses, why)
        if key is not None:
            self._keys.update(dict.fromkeys(addresses, key))
        return [*effects, Allocated(addresses)]

    def _claim(self, owner: str, address: str) -> list[Effect]:
        held = self._owners.get(address)
        if held == owner:
            return []
        if held is not None or address in self._tombstones:
            return [Refused(Code.FORBIDDEN, "the address is or was somebody else's")]
        if not self._has_room(owner, 1):
            return [Refused(Code.TOO_LARGE, f"a session holds at most {MAX_ADDRESSES} addresses")]
        return self._take(owner, (address,), "claimed by path")

    def _bind(self, owner: str, address: str) -> list[Effect]:
        held = self.owner_of(address)
        if held == owner:
            return []
        if held is not None:
            return [Refused(Code.UNAUTHENTICATED, "the address is bound to another session")]
        if not self._has_room(owner, 1):
            return [Refused(Code.TOO_LARGE, f"a session holds at most {MAX_ADDRESSES} addresses")]
        self._note(owner, address)
        return [_row(Op.ADD, address, owner)]

    def _free_block(self, owner: str, key: str) -> list[Effect]:
        block = tuple(one for one in self._of.get(owner, ()) if self._keys.get(one) == key)
        if block:
            return [*self._drop(owner, block, "delete by key"), Freed(block)]
        return self._free(owner, (key,))

    def _free(self, owner: str, addresses: tuple[str, ...]) -> list[Effect]:
        if any(self._owners.get(one, owner) != owner for one in addresses):
            return [Refused(Code.FORBIDDEN, "not the owner")]
        mine = tuple(one for one in dict.fromkeys(addresses) if one in self._owners)
        return [*self._drop(owner, mine, "delete by list"), Freed(mine)]

    def _has_room(self, owner: str, wanted: int) -> bool:
        return len(self._of.get(owner, ())) + wanted <= MAX_ADDRESSES

    def _take(self, owner: str, addresses: tuple[str, ...], why: str) -> list[Effect]:
        effects: list[Effect] = []
        for address in addresses:
            entity = self._entities[address] = Entity(ADDRESS, address)
            self._note(owner, address)
            effects += [
                entity.step(Trigger.ALLOCATE, why),
                _row(Op.ADD, address, owner),
            ]
        return effects

    def _note(self, owner: str, address: str) -> None:
        self._owners[address] = owner
        self._of.setdefault(owner, {})[address] = None

    def _drop(self, owner: str, addresses: Iterable[str], why: str) -> list[Effect]:
        effects: list[Effect] = []
        held = self._of.get(owner, {})
        for address in addresses:
            del self._owners[address], held[address]
            self._keys.pop(address, None)
            entity = self._entities.pop(address, None)
            if entity is not None:
                self._tombstones.add(address)
                effects.append(entity.step(Trigger.RELEASE, why))
            effects.append(_row(Op.DEL, address, owner))
        if not held:
            self._of.pop(owner, None)
        return effects


def _row(op: Op, address: str, owner: str) -> RowChanged:
    return RowChanged(op, "alloc", address, owner, "address-allocation")
