"""The owners of the addresses of a domain (MN-10..MN-13, I-A1..I-A7).

An address is allocated once in the life of a node. A released address is never allocated
again; only its former owner may claim it, as a runtime does that restores its store. The
node recognises the addresses it made by their names (`fsm.registry.allocation`); of
addresses made by peers it keeps a digest with the last owner. An address that the node does
not allocate, but that a connected runtime uses, is bound to the session of that runtime: it
has an owner like the others, no machine, and is free after the session.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from sys import intern
from typing import Final, Protocol
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

# Allocated addresses: their names and their reuse.

# ---- names


ENTROPY: Final = 8
"""Random bytes in a name."""

_OWNER: Final = 4
_TAG_BYTES: Final = 4
_HEAD: Final = ENTROPY + _OWNER
_VARIANT, _FREE_BITS = 0x80, 0x3F
_TEXT: Final = 36


class AddressMint:
    """Makes names of addresses and recognises them.

    Args:
        key: Secret of this node, at most 64 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def name(self, random: bytes, owner: str) -> str:
        """Return a name for an address of a runtime.

        Args:
            random: `ENTROPY` random bytes.
            owner: Address of the runtime.
        """
        chance = UUID(bytes=random + bytes(_OWNER + _TAG_BYTES), version=4).bytes[:ENTROPY]
        head = chance + self._owner_tag(chance, owner)
        return str(UUID(bytes=head + self._tag(head)))

    def is_own(self, address: str) -> bool:
        """Return whether this node made the name of an address."""
        return self._raw(address) is not None

    def made_for(self, address: str, owner: str) -> bool:
        """Return whether this node made the name of an address for a runtime.

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
        """Return the digest of the owner; two of its bits belong to the UUID's form."""
        drawn = hashlib.blake2b(chance + owner.encode(), key=self._key, digest_size=_OWNER)
        first, *rest = drawn.digest()
        return bytes([first & _FREE_BITS | _VARIANT, *rest])

    def _tag(self, head: bytes) -> bytes:
        return hashlib.blake2b(head, key=self._key, digest_size=_TAG_BYTES).digest()


# ---- reuse


@attrs.frozen(slots=True)
class Purpose:
    """The purpose of an address.

    Attributes:
        scheme: Its scheme, such as `hyperty`.
        descriptor: Catalogue address of the hyperty or object that uses it; None: its user
            cannot be recognised.
    """

    scheme: str
    descriptor: str | None = None


class AddressReuse:
    """The addresses that are kept, oldest first."""

    def __init__(self) -> None:
        self._kept: dict[str, Purpose] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, address: str, purpose: Purpose) -> None:
        """Keep an address that is no longer in use.

        Args:
            address: The address, which stays allocated.
            purpose: What it was used for.
        """
        self._kept[address] = purpose

    def take_alike(self, purpose: Purpose) -> str | None:
        """Give out an address of the same purpose; None: there is none (a soft miss)."""
        if purpose.descriptor is None:
            return None
        alike = (address for address, kept in self._kept.items() if kept == purpose)
        address = next(alike, None)
        if address is not None:
            del self._kept[address]
        return address

    def take(self, address: str, purpose: Purpose) -> bool:
        """Give out exactly this address; False: it is not kept for that purpose (a hard miss).

        Args:
            address: The address that the hyperty names.
            purpose: What it is to be used for.
        """
        if self._kept.get(address) != purpose:
            return False
        del self._kept[address]
        return True

    def forget(self, addresses: Iterable[str]) -> None:
        """Forget addresses that have been given back."""
        for address in addresses:
            self._kept.pop(address, None)


@attrs.frozen(slots=True)
class Allocated:
    """The requested addresses are allocated."""

    addresses: tuple[str, ...]


class AllocationPort(Protocol):
    """What the table asks of its host; no method changes the table."""

    def step(self, step: Step) -> None:
        """Trace a step of an address."""

    def row_changed(self, row: RowChanged) -> None:
        """Trace an owner that an address has got or lost."""

    def taken(self, addresses: tuple[str, ...]) -> None:
        """Note that these have an owner from now on."""

    def freed(self, addresses: tuple[str, ...]) -> None:
        """Note that these addresses have no owner now; empty, if all were unknown."""


MIRROR: Final = "group"
"""The writer of rows that another node of the domain has decided on."""

_DIGEST: Final = 8
"""Bytes of a tombstone: among 10^6 of them two agree once in 10^7 nodes."""


class Tombstones:
    """The digests of the released addresses of one domain; about 70 bytes each.

    Args:
        mint: Recognises the addresses that the node made; None: it makes none.
    """

    def __init__(self, mint: AddressMint | None = None) -> None:
        self._mint = mint
        self._whose: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._whose)

    def __contains__(self, address: str) -> bool:
        return _digest(address) in self._whose

    def is_spent(self, address: str) -> bool:
        """Return whether an address without an owner had one, or was made by the node."""
        is_made = self._mint is not None and self._mint.is_own(address)
        return is_made or address in self

    def was_of(self, address: str, owner: str) -> bool:
        """Return whether a released address had this runtime as its last owner.

        Args:
            address: The address, which has no owner.
            owner: Address of the runtime.
        """
        whose = self._whose.get(_digest(address))
        return self._is_made_for(address, owner) if whose is None else whose == owner

    def bury(self, address: str, owner: str) -> None:
        """Keep the last owner of a released address, unless its name contains the owner.

        Args:
            address: The address.
            owner: Address of the runtime that owned it.
        """
        if not self._is_made_for(address, owner):
            self.keep(address, owner)

    def keep(self, address: str, owner: str) -> None:
        """Keep the last owner of an address, also if its name contains another.

        Args:
            address: The address.
            owner: Address of the runtime that owned it.
        """
        self._whose[_digest(address)] = intern(owner)

    def lift(self, address: str) -> None:
        """Forget the last owner of an address: it has an owner again."""
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
    """The allocation table of one domain.

    Memory grows with the addresses in use, and by about 70 bytes with each claimed address that
    was released, up to `MAX_TOMBSTONES` of them; then no more addresses can be claimed.

    Args:
        port: The host.
        mint: Recognises the addresses that the node made, which only the runtime they were
            made for can claim; None: the node makes none.
        user_of: Returns the user of a runtime: all sessions of one user share its limits.
    """

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
        """Return the owner of an address or of the nearest address above it."""
        owners = self._owners
        slash = "/"
        while slash and not address.endswith("/"):
            owner = owners.get(address)
            if owner is not None:
                return owner
            address, slash, _ = address.rpartition("/")
        return None

    def block_of(self, address: str) -> str | None:
        """Return the key under which an address was allocated; None: there is none."""
        owner = self._owners.get(address)
        return None if owner is None else self._of[owner][address]

    def is_bound(self, address: str) -> bool:
        """Return whether an address was bound, and not allocated."""
        return address in self._bound

    def owned_by(self, owner: str) -> tuple[str, ...]:
        """Return the addresses of a runtime, oldest first."""
        return tuple(self._of.get(owner, ()))

    def is_tombstone(self, address: str) -> bool:
        """Return whether an address was allocated once and released."""
        return address not in self._owners and self._tombstones.is_spent(address)

    def __len__(self) -> int:
        return len(self._owners)

    def deadline(self) -> float:
        """Return infinity: addresses live as long as sessions, and no time passes for them."""
        return math.inf

    # ---- taken

    def allocate(
        self, owner: str, addresses: tuple[str, ...], key: str | None = None
    ) -> Allocated | Refused:
        """Allocate fresh addresses, which the host makes: a core has no randomness (M-18).

        Args:
            key: Names them together, within this owner.
        """
        full = self._full(owner, addresses)
        if full is not None:
            return full
        if any(address in self._owners or address in self._tombstones for address in addresses):
            return Refused(Code.CONFLICT, "an address of that name was allocated before")
        self._take(owner, addresses, "create" if key is None else f"create key={key}", key)
        return Allocated(addresses)

    def claim(self, owner: str, addresses: tuple[str, ...]) -> Refused | None:
        """Give a runtime addresses of this domain that it made itself; all or none (C-44)."""
        fresh = tuple(address for address in addresses if self._owners.get(address) != owner)
        again = frozenset(each for each in fresh if self._is_back(each, owner))
        new = tuple(each for each in fresh if each not in again)
        if any(each in self._owners or self.is_tombstone(each) for each in new):
            return Refused(Code.FORBIDDEN, "the address belongs or belonged to another session")
        full = self._full(owner, fresh)
        if full is not None:
            return full
        if new and len(self._tombstones) >= MAX_TOMBSTONES:
            return _NO_CLAIMS
        self._take(owner, new, "claimed by path", None)
        self._take_back(owner, tuple(each for each in fresh if each in again))
        return None

    def _is_back(self, address: str, owner: str) -> bool:
        return address not in self._owners and self._tombstones.was_of(address, owner)

    def _take_back(self, owner: str, addresses: tuple[str, ...]) -> None:
        """Give a runtime the released addresses that it had."""
        for address in addresses:
            self._tombstones.lift(address)
            self._note(owner, address, None)
            entity = Entity.restore(ADDRESS, address, State.RELEASED)
            self._port.step(entity.step(Trigger.RECLAIM))
            self._row(Op.ADD, address, owner)
        if addresses:
            self._port.taken(addresses)

    def bind(self, owner: str, address: str) -> Refused | None:
        """Let a runtime use an address that the node does not allocate (MN-13, C-43)."""
        held = self.owner_of(address)
        if held == owner:
            return None
        if held is not None:
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
        if len(self._owners) + len(wanted) > MAX_DOMAIN_ADDRESSES:
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
        """Give an address the owner that another node has decided on; that counted it.

        The address has its history in the trace of the node that gave it to its first owner.

        Args:
            key: As of `allocate`.
            is_bound: Whether it was bound, and not allocated.
        """
        held = self._owners.get(address)
        if held == owner:
            return
        if held is None:
            self._tombstones.lift(address)
            self._mirrored[address] = None
        else:
            self._forget(held, address)
            self._row(Op.DEL, address, held, MIRROR)
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

    # ---- freed

    def free_block(self, owner: str, key: str) -> Refused | None:
        """Free the addresses allocated under a key, or one address (M-19, C-46)."""
        block = tuple(self._blocks.get((owner, key), ()))
        if not block:
            return self.free(owner, (key,))
        self._drop(owner, block, "delete by key")
        self._port.freed(block)
        return None

    def free(self, owner: str, addresses: tuple[str, ...]) -> Refused | None:
        """Free addresses, all or none (M-20)."""
        if any(self._owners.get(address, owner) != owner for address in addresses):
            return Refused(Code.FORBIDDEN, "not the owner")
        mine = tuple(each for each in dict.fromkeys(addresses) if each in self._owners)
        self._drop(owner, mine, "delete by list")
        self._port.freed(mine)
        return None

    def release(self, owner: str, why: str) -> None:
        """Release all addresses of a runtime: its session is over (I-A7)."""
        self._drop(owner, self.owned_by(owner), why)

    def yield_to(self, runtime: str) -> None:
        """Free addresses below a runtime's own that others have bound: it has a session now."""
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
        held = self._of[owner]
        self._shares.take(owner, -1, -_cost(address))
        key = held.pop(address)
        if not held:
            del self._of[owner]
        if key is not None:
            block = self._blocks[owner, key]
            del block[address]
            if not block:
                del self._blocks[owner, key]
        del self._owners[address]

    def _unbind(self, address: str) -> None:
        del self._bound[address]
        beside = self._components.get(runtime_of(address), {})
        beside.pop(address, None)
        if not beside:
            self._components.pop(runtime_of(address), None)

    def _row(self, op: Op, address: str, owner: str, writer: str = "address-allocation") -> None:
        self._port.row_changed(RowChanged(op, "alloc", address, owner, writer))
