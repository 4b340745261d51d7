"""Allocated addresses: their names, their transfer to another session, and their reuse.

`AddressMint` makes names that a node recognises without a list of them (I-A1, T3). A name is a
UUID: 60 random bits, a keyed digest of these bits and of the runtime it was made for, and in
its last 4 bytes a keyed digest of all that. So a node knows of any address whether it made
the address, and for which runtime. An address that the node made and that has no owner was
released; it needs no tombstone. A forged digest gains nothing: an address that looks made by
the node is refused to every runtime but the one it was made for. A name that a peer made
itself looks so once in 2^32. The key lasts as long as the node: after a restart runtimes may
claim the addresses they had (C-44).

`AddressOffers` is the node's part in a transfer between two sessions (SYN-26, I-D1). An owner
offers an address to one other session, and may take the offer back. That session takes the
address, unless the offer is over. Offers of an address have rising numbers: an offer that is
over is never open again, so a message that comes late, or twice, changes nothing. The core
decides only; the host changes the tables.

`AddressReuse` keeps addresses of a runtime for later hyperties (ALC-02). A kept address is
allocated still, but not in use. A hyperty of the same purpose may have it again; a hyperty that
names an address must have exactly that.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, assert_never, final
from uuid import UUID

import attrs

from fsm.effects import Refused
from fsm.sync.subscriptions import entity_of
from specs.reply_code import Code

__all__ = [
    "ENTROPY",
    "AddressMint",
    "AddressOffers",
    "AddressReuse",
    "Move",
    "Offer",
    "OfferInput",
    "Purpose",
    "Take",
    "Withdraw",
]


# ---- names


ENTROPY: Final = 8
"""Random bytes in a name."""

_OWNER: Final = 4
_TAG: Final = 4
_HEAD: Final = ENTROPY + _OWNER
_VARIANT, _FREE_BITS = 0x80, 0x3F
_TEXT: Final = 36


@final
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
        chance = UUID(bytes=random + bytes(_OWNER + _TAG), version=4).bytes[:ENTROPY]
        head = chance + self._owner_tag(chance, owner)
        return str(UUID(bytes=head + self._tag(head)))

    def made(self, address: str) -> bool:
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
        return hashlib.blake2b(head, key=self._key, digest_size=_TAG).digest()


# ---- transfer


_NOT_YOURS: Final = Refused(Code.FORBIDDEN, "the session does not own it")
_OVER: Final = Refused(Code.CONFLICT, "that offer is over")
_NO_OFFER: Final = Refused(Code.FORBIDDEN, "it is not offered to this session")
_TAKEN: Final = Refused(Code.GONE, "another session has it now")
_UNKNOWN: Final = Refused(Code.NOT_FOUND, "it has no owner")


@final
@attrs.frozen(slots=True)
class Offer:
    """An owner offers an address to another session.

    Attributes:
        by: The owner.
        to: The other session's runtime.
        number: Higher than that of each earlier offer of this address.
        delegate: The hyperty for which the other session takes it.
    """

    address: str
    by: str
    to: str
    number: int
    delegate: str


@final
@attrs.frozen(slots=True)
class Withdraw:
    """An owner takes back its offers up to a number, also one that is still under way."""

    address: str
    by: str
    number: int


@final
@attrs.frozen(slots=True)
class Take:
    """A session takes an address that was offered to it, for the delegate of the offer."""

    address: str
    by: str
    number: int
    delegate: str


OfferInput: TypeAlias = Offer | Withdraw | Take


@final
@attrs.frozen(slots=True)
class Move:
    """The address is to be moved; the host calls `moved` when it is."""

    address: str
    old: str
    new: str
    number: int


@final
class AddressOffers:
    """The offers of one node's addresses.

    Memory is bounded by the allocated addresses: a released address is forgotten.

    Args:
        owner_of: Returns the owner of exactly this address.
    """

    def __init__(self, owner_of: Callable[[str], str | None]) -> None:
        self._owner_of = owner_of
        self._open: dict[str, Offer] = {}
        self._over: dict[str, int] = {}
        self._moved: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._open.keys() | self._over.keys() | self._moved.keys())

    def is_moved(self, address: str) -> bool:
        """Return whether an address was transferred to its present owner."""
        return address in self._moved

    def feed(self, happened: OfferInput) -> Move | Refused | None:
        """Decide on an input; None: the tables stand as the input wants them."""
        match happened:
            case Offer():
                return self._offer(happened)
            case Withdraw():
                return self._withdraw(happened)
            case Take():
                return self._take(happened)
            case _:
                assert_never(happened)

    def _offer(self, offer: Offer) -> Refused | None:
        address = offer.address
        if self._owner_of(address) != offer.by:
            return _NOT_YOURS
        held = self._open.get(address)
        if offer.number <= self._over.get(address, 0):
            return _OVER
        if held is not None and held != offer and held.number >= offer.number:
            return _OVER
        self._open[address] = offer
        return None

    def _withdraw(self, back: Withdraw) -> Refused | None:
        owner = self._owner_of(back.address)
        if owner != back.by:
            return _UNKNOWN if owner is None else _TAKEN
        self._end(back.address, back.number)
        return None

    def _take(self, taking: Take) -> Move | Refused | None:
        address, by = taking.address, taking.by
        owner, offer = self._owner_of(address), self._open.get(address)
        if owner == by:
            return None
        if owner is None:
            return _UNKNOWN
        if offer is None or offer != Offer(address, owner, by, taking.number, taking.delegate):
            return _NO_OFFER
        return Move(address, owner, by, taking.number)

    def moved(self, move: Move) -> None:
        """Note that an address was moved."""
        self._end(move.address, move.number)
        self._moved[move.address] = None

    def released(self, address: str) -> None:
        """Note that an address has no owner any more."""
        self._open.pop(address, None)
        self._over.pop(address, None)
        self._moved.pop(address, None)

    def gone(self, runtime: str) -> None:
        """Note that a session is over: offers to it can no longer be taken."""
        for address, offer in list(self._open.items()):
            if offer.to == runtime:
                self._end(address, offer.number)

    def _end(self, address: str, number: int) -> None:
        self._over[address] = max(number, self._over.get(address, 0))
        held = self._open.get(address)
        if held is not None and held.number <= number:
            del self._open[address]


# ---- reuse


@final
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


@final
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

    def forget_all(self) -> None:
        """Forget all addresses: the node no longer knows them."""
        self._kept.clear()
