"""Allocation of a domain's addresses to runtimes, and reuse (MN-10..MN-13, I-A1..I-A7).

A node allocates each address once in its lifetime. A released address is never allocated to another
runtime; only its former owner may claim it, as a runtime does when it restores its data. The node
recognises the addresses that it made itself by their names; of addresses that peers made, it keeps
a digest with the last owner. An address that a connected runtime uses although the node does not
allocate it is bound to the runtime's session: it has an owner, but no state machine, and becomes
free with the end of the session.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from sys import intern
from typing import ClassVar, Final, Protocol
from uuid import UUID

import attrs

from fsm.effects import Refused, RowChanged
from fsm.engine import Entity, Step
from fsm.limits.shares import Share, UserShares, own_user
from fsm.machines.address import ADDRESS, State, Trigger
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import RUNTIME_SCHEME, is_below, runtime_of, scheme_of
from specs.limits import node
from specs.limits.protocol import MAX_ADDRESSES, MAX_DOMAIN_ADDRESSES, MAX_TOMBSTONES
from specs.reply_code import Code
from specs.trace import Op

# Names of allocated addresses, and their reuse.

# ---- names


ENTROPY: Final = 8
"""Number of random bytes in the name of an allocated address."""

_OWNER: Final = 4
_TAG_BYTES: Final = 4
_HEAD: Final = ENTROPY + _OWNER
_VARIANT, _FREE_BITS = 0x80, 0x3F
_TEXT: Final = 36


class AddressMint:
    """Makes the names of allocated addresses, and recognises them without a table.

    Args:
        key: Secret of this node, at most 64 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def name(self, random: bytes, owner: str) -> str:
        """Return a new name (a UUID) for an address that is allocated to a runtime.

        Args:
            random: `ENTROPY` random bytes.
            owner: Address of the runtime.
        """
        chance = UUID(bytes=random + bytes(_OWNER + _TAG_BYTES), version=4).bytes[:ENTROPY]
        head = chance + self._owner_tag(chance, owner)
        return str(UUID(bytes=head + self._tag(head)))

    def is_own(self, address: str) -> bool:
        """Return whether this node itself made the name in an address."""
        return self._raw(address) is not None

    def made_for(self, address: str, owner: str) -> bool:
        """Return whether this node made the name of an address for this runtime.

        Args:
            address: Any address.
            owner: Address of the runtime.
        """
        raw = self._raw(address)
        return raw is not None and raw[ENTROPY:_HEAD] == self._owner_tag(raw[:ENTROPY], owner)

    def _raw(self, address: str) -> bytes | None:
        name = entity_of(address).rpartition("/")[2]
        if len(name) != _TEXT:
            return None
        try:
            raw = UUID(name).bytes
        except ValueError:
            return None
        return raw if self._tag(raw[:_HEAD]) == raw[_HEAD:] else None

    def _owner_tag(self, chance: bytes, owner: str) -> bytes:
        """Return a digest of the owner; two bits have the fixed values of a UUID."""
        digest = hashlib.blake2b(chance + owner.encode(), key=self._key, digest_size=_OWNER)
        first, *rest = digest.digest()
        return bytes([first & _FREE_BITS | _VARIANT, *rest])

    def _tag(self, head: bytes) -> bytes:
        return hashlib.blake2b(head, key=self._key, digest_size=_TAG_BYTES).digest()


# ---- reuse


@attrs.frozen(slots=True)
class Purpose:
    """The use of an allocated address, which decides who may reuse the address.

    Attributes:
        scheme: The scheme of the address, such as `hyperty`.
        descriptor: Catalogue address of the hyperty or object that uses the address; None: the
            hyperty or object cannot be recognised.
    """

    scheme: str
    descriptor: str | None = None


class AddressReuse:
    """Addresses of a runtime that are allocated but not in use, kept for reuse."""

    def __init__(self) -> None:
        self._kept: dict[str, Purpose] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, address: str, purpose: Purpose) -> None:
        """Keep an address that is no longer in use.

        Args:
            address: The address, which stays allocated.
            purpose: The former use of the address.
        """
        self._kept[address] = purpose

    def take_alike(self, purpose: Purpose) -> str | None:
        """Remove and return an address with the same former use, or None (a soft miss)."""
        if purpose.descriptor is None:
            return None
        matches = (address for address, kept in self._kept.items() if kept == purpose)
        address = next(matches, None)
        if address is not None:
            del self._kept[address]
        return address

    def take(self, address: str, purpose: Purpose) -> bool:
        """Remove exactly this address; return False if it is not kept for this use (a hard miss).

        Args:
            address: The address that the hyperty wants.
            purpose: The next use of the address.
        """
        if self._kept.get(address) != purpose:
            return False
        del self._kept[address]
        return True

    def forget(self, addresses: Iterable[str]) -> None:
        """Forget addresses that were released and cannot be reused."""
        for address in addresses:
            self._kept.pop(address, None)


@attrs.frozen(slots=True)
class Allocated:
    """The successful result of an allocation: the addresses that a runtime now owns."""

    addresses: tuple[str, ...]


class AllocationPort(Protocol):
    """Calls of `AllocationCore` to its host; none of them changes the table."""

    def step(self, step: Step) -> None:
        """Trace a state machine transition of an address."""

    def row_changed(self, row: RowChanged) -> None:
        """Trace that an address has got or lost an owner."""

    def taken(self, addresses: tuple[str, ...]) -> None:
        """Handle that addresses have an owner from now on."""

    def freed(self, addresses: tuple[str, ...]) -> None:
        """Handle that addresses have no owner any more; the list may be empty."""


MIRROR: Final = "group"
"""The writer that traces name for changes that another node of the domain decided."""

_DIGEST: Final = 8
"""Bytes of a tombstone's digest: with 10^6 tombstones, two are equal on 1 of 10^7 nodes."""


class Tombstones:
    """Remembers the released addresses of one domain and their last owners.

    Each tombstone is a digest of the address, and takes about 70 bytes.

    Args:
        mint: Recognises the addresses that the node made; None: the node makes no addresses.
    """

    def __init__(self, mint: AddressMint | None = None) -> None:
        self._mint = mint
        self._whose: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._whose)

    def __contains__(self, address: str) -> bool:
        return _digest(address) in self._whose

    def is_spent(self, address: str) -> bool:
        """Return whether a free address was in use before, or was made by the node."""
        is_made = self._mint is not None and self._mint.is_own(address)
        return is_made or address in self

    def was_of(self, address: str, owner: str) -> bool:
        """Return whether a released address had this runtime as its last owner.

        Args:
            address: The address, which has no owner.
            owner: Address of the runtime.
        """
        owners = self._whose.get(_digest(address))
        return self._is_made_for(address, owner) if owners is None else owners == owner

    def bury(self, address: str, owner: str) -> None:
        """Remember the last owner of a released address, unless its name shows the owner.

        Args:
            address: The address.
            owner: Address of the runtime that owned it.
        """
        if not self._is_made_for(address, owner):
            self.keep(address, owner)

    def keep(self, address: str, owner: str) -> None:
        """Remember the last owner of a released address, even if its name shows another owner.

        Args:
            address: The address.
            owner: Address of the runtime that owned it.
        """
        self._whose[_digest(address)] = intern(owner)

    def lift(self, address: str) -> None:
        """Forget the last owner of an address that is in use again."""
        self._whose.pop(_digest(address), None)

    def _is_made_for(self, address: str, owner: str) -> bool:
        return self._mint is not None and self._mint.made_for(address, owner)


def _digest(address: str) -> int:
    return int.from_bytes(hashlib.blake2b(address.encode(), digest_size=_DIGEST).digest())


_EACH: Final = Share(node.USER_ADDRESSES, node.USER_ADDRESS_BYTES)
_TOGETHER: Final = Share(MAX_DOMAIN_ADDRESSES, node.DOMAIN_ADDRESS_BYTES)


def _cost(address: str) -> int:
    return node.ADDRESS_COST + len(address)


_TOO_MANY: Final = Refused(Code.TOO_LARGE, f"a session holds at most {MAX_ADDRESSES} addresses")
_FULL: Final = Refused(
    Code.UNAVAILABLE, f"all {MAX_DOMAIN_ADDRESSES} addresses of the domain are taken"
)
_NO_CLAIMS: Final = Refused(
    Code.TOO_LARGE, "too many claimed addresses were released; have one allocated instead"
)


class AllocationCore:
    """The table of a domain's addresses and the runtimes that own them.

    Memory grows with the addresses in use, and by about 70 bytes for each released address that a
    peer made. After `most_released` such addresses, runtimes can claim no further addresses.

    Args:
        port: The host.
        mint: Recognises the addresses that the node made, which only their first owner can claim;
            None: the node makes no addresses.
        user_of: Returns the user of a runtime: limits apply to all sessions of a user together.

    Attributes:
        most: Maximum number of addresses with an owner.
        most_released: Maximum number of remembered addresses that peers made and released.
    """

    most: ClassVar[int] = MAX_DOMAIN_ADDRESSES
    most_released: ClassVar[int] = MAX_TOMBSTONES

    def __init__(
        self,
        port: AllocationPort,
        mint: AddressMint | None = None,
        user_of: Callable[[str], str] = own_user,
    ) -> None:
        self._port = port
        self._shares = UserShares("addresses", _EACH, _TOGETHER, user_of)
        self._owners: dict[str, str] = {}
        self._bound: dict[str, None] = {}
        self._mirrored: dict[str, None] = {}
        self._of: dict[str, dict[str, str | None]] = {}
        self._blocks: dict[tuple[str, str], dict[str, None]] = {}
        self._components: dict[str, dict[str, None]] = {}
        self._tombstones = Tombstones(mint)

    def owner_of(self, address: str) -> str | None:
        """Return the runtime that owns an address or the nearest owned address above, or None."""
        owners = self._owners
        slash = "/"
        while slash and not address.endswith("/"):
            owner = owners.get(address)
            if owner is not None:
                return owner
            address, slash, _ = address.rpartition("/")
        return None

    def block_of(self, address: str) -> str | None:
        """Return the common key of the addresses that were allocated with this address, or None."""
        owner = self._owners.get(address)
        return None if owner is None else self._of[owner][address]

    def is_bound(self, address: str) -> bool:
        """Return whether an address is bound to a session although the node did not allocate it."""
        return address in self._bound

    def owned_by(self, owner: str) -> tuple[str, ...]:
        """Return the addresses that a runtime owns, oldest first."""
        return tuple(self._of.get(owner, ()))

    def is_tombstone(self, address: str) -> bool:
        """Return whether an address was allocated before and is released."""
        return address not in self._owners and self._tombstones.is_spent(address)

    def __len__(self) -> int:
        return len(self._owners)

    def deadline(self) -> float:
        """Return infinity, since addresses are released with sessions and never by a timer."""
        return math.inf

    # ---- addresses that get an owner

    def allocate(
        self, owner: str, addresses: tuple[str, ...], key: str | None = None
    ) -> Allocated | Refused:
        """Allocate new addresses, whose names the caller has made, to a runtime (M-18).

        Args:
            owner: Address of the runtime.
            key: Common key to free all the addresses at once, unique within the owner.
        """
        full = self._full(owner, addresses)
        if full is not None:
            return full
        if any(address in self._owners or address in self._tombstones for address in addresses):
            return Refused(Code.CONFLICT, "an address of that name was allocated before")
        self._take(owner, addresses, "create" if key is None else f"create key={key}", key)
        return Allocated(addresses)

    def claim(self, owner: str, addresses: tuple[str, ...]) -> Refused | None:
        """Make a runtime the owner of addresses that it chose itself, all or none (C-44)."""
        fresh = tuple(address for address in addresses if self._owners.get(address) != owner)
        returning = frozenset(each for each in fresh if self._is_back(each, owner))
        made = tuple(each for each in fresh if each not in returning)
        if any(each in self._owners or self.is_tombstone(each) for each in made):
            return Refused(Code.FORBIDDEN, "the address belongs or belonged to another session")
        full = self._full(owner, fresh)
        if full is not None:
            return full
        if made and len(self._tombstones) >= self.most_released:
            return _NO_CLAIMS
        self._take(owner, made, "claimed by path", None)
        self._take_back(owner, tuple(each for each in fresh if each in returning))
        return None

    def _is_back(self, address: str, owner: str) -> bool:
        return address not in self._owners and self._tombstones.was_of(address, owner)

    def _take_back(self, owner: str, addresses: tuple[str, ...]) -> None:
        """Make a runtime the owner of addresses again that it owned before their release."""
        for address in addresses:
            self._tombstones.lift(address)
            self._note(owner, address, None)
            entity = Entity.restore(ADDRESS, address, State.RELEASED)
            self._port.step(entity.step(Trigger.RECLAIM))
            self._row(Op.ADD, address, owner)
        if addresses:
            self._port.taken(addresses)

    def bind(self, owner: str, address: str) -> Refused | None:
        """Bind an address that the node does not allocate to a runtime's session (MN-13, C-43)."""
        owned_by = self.owner_of(address)
        if owned_by == owner:
            return None
        if owned_by is not None:
            return Refused(Code.UNAUTHENTICATED, "the address is bound to another session")
        full = self._full(owner, (address,))
        if full is not None:
            return full
        self._note(owner, address, None)
        self._enter(address)
        self._row(Op.ADD, address, owner)
        self._port.taken((address,))
        return None

    def _enter(self, address: str) -> None:
        self._bound[address] = None
        if scheme_of(address) == RUNTIME_SCHEME:
            self._components.setdefault(runtime_of(address), {})[address] = None

    def _full(self, owner: str, wanted: tuple[str, ...]) -> Refused | None:
        if len(self._of.get(owner, ())) + len(wanted) > MAX_ADDRESSES:
            return _TOO_MANY
        if len(self._owners) + len(wanted) > self.most:
            return _FULL
        return self._shares.refusal(owner, len(wanted), sum(map(_cost, wanted)))

    def _take(self, owner: str, addresses: tuple[str, ...], why: str, key: str | None) -> None:
        for address in addresses:
            self._note(owner, address, key)
            self._port.step(Entity(ADDRESS, address).step(Trigger.ALLOCATE, why))
            self._row(Op.ADD, address, owner)
        if addresses:
            self._port.taken(addresses)

    def _note(self, owner: str, address: str, key: str | None) -> None:
        self._owners[address] = owner
        self._shares.take(owner, 1, _cost(address))
        self._of.setdefault(owner, {})[address] = key
        if key is not None:
            self._blocks.setdefault((owner, key), {})[address] = None

    # ---- by other nodes of the domain

    def mirror(
        self, owner: str, address: str, key: str | None = None, *, is_bound: bool = False
    ) -> None:
        """Copy the owner of an address that another node of the domain has decided.

        The state machine transitions of the address are traced by the node that allocated it.

        Args:
            owner: Address of the runtime.
            key: The key, as in `allocate`.
            is_bound: Whether the address was bound, not allocated.
        """
        former = self._owners.get(address)
        if former == owner:
            return
        if former is None:
            self._tombstones.lift(address)
            self._mirrored[address] = None
        else:
            self._forget(former, address)
            self._row(Op.DEL, address, former, MIRROR)
        self._note(owner, address, key)
        if is_bound:
            self._enter(address)
        self._row(Op.ADD, address, owner, MIRROR)
        self._port.taken((address,))

    def mirror_gone(self, address: str) -> None:
        """Free an address that another node of the domain has released."""
        owner = self._owners.get(address)
        if owner is not None:
            self._drop(owner, (address,), "another node released it")
            self._port.freed((address,))

    # ---- addresses that lose their owner

    def free_block(self, owner: str, key: str) -> Refused | None:
        """Release the addresses allocated with a key, or the address that `key` is (M-19, C-46)."""
        block = tuple(self._blocks.get((owner, key), ()))
        if not block:
            return self.free(owner, (key,))
        self._drop(owner, block, "delete by key")
        self._port.freed(block)
        return None

    def free(self, owner: str, addresses: tuple[str, ...]) -> Refused | None:
        """Release addresses of a runtime, all or none (M-20)."""
        if any(self._owners.get(address, owner) != owner for address in addresses):
            return Refused(Code.FORBIDDEN, "not the owner")
        owned = tuple(each for each in dict.fromkeys(addresses) if each in self._owners)
        self._drop(owner, owned, "delete by list")
        self._port.freed(owned)
        return None

    def release(self, owner: str, why: str) -> None:
        """Release all addresses of a runtime whose session has ended (I-A7)."""
        self._drop(owner, self.owned_by(owner), why)

    def yield_to(self, runtime: str) -> None:
        """Free addresses below a runtime that others have bound, since it now has a session."""
        for address in tuple(self._components.get(runtime_of(runtime), ())):
            owner = self._owners[address]
            if owner != runtime and is_below(address, runtime):
                self._drop(owner, (address,), "its runtime came")
                self._port.freed((address,))

    def _drop(self, owner: str, addresses: Iterable[str], why: str) -> None:
        for address in addresses:
            self._forget(owner, address)
            is_mirrored = address in self._mirrored
            self._mirrored.pop(address, None)
            if address in self._bound:
                self._unbind(address)
            else:
                self._tombstones.bury(address, owner)
                if not is_mirrored:
                    entity = Entity.restore(ADDRESS, address, State.ALLOCATED)
                    self._port.step(entity.step(Trigger.RELEASE, why))
            self._row(Op.DEL, address, owner)

    def _forget(self, owner: str, address: str) -> None:
        owned = self._of[owner]
        self._shares.take(owner, -1, -_cost(address))
        key = owned.pop(address)
        if not owned:
            del self._of[owner]
        if key is not None:
            block = self._blocks[owner, key]
            del block[address]
            if not block:
                del self._blocks[owner, key]
        del self._owners[address]

    def _unbind(self, address: str) -> None:
        del self._bound[address]
        bound = self._components.get(runtime_of(address), {})
        bound.pop(address, None)
        if not bound:
            self._components.pop(runtime_of(address), None)

    def _row(self, op: Op, address: str, owner: str, writer: str = "address-allocation") -> None:
        self._port.row_changed(RowChanged(op, "alloc", address, owner, writer))
