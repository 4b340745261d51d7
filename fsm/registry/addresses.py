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
decides only; the host changes the tables. Where several nodes serve a domain, each knows the
offers of all, and whichever has the session decides; the row of the address is changed by
compare-and-set, so an offer that one node takes back is taken at no other.

`AddressReuse` keeps addresses of a runtime for later hyperties (ALC-02). A kept address is
allocated still, but not in use. A hyperty of the same purpose may have it again; a hyperty that
names an address must have exactly that.
"""

import hashlib
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Final, TypeAlias, assert_never, final
from uuid import UUID

import attrs

from fsm.effects import Refused
from fsm.sync.subscriptions import entity_of
from specs.limits.group import GROUP_OBSERVERS_BYTES
from specs.reply_code import Code

__all__ = [
    "ENTROPY",
    "NEVER_OFFERED",
    "AddressMint",
    "AddressOffers",
    "AddressReuse",
    "Move",
    "Offer",
    "OfferInput",
    "Offers",
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
_NOT_YET: Final = Refused(
    Code.UNAVAILABLE, "the owner is at another node, whose offer is not known at this one yet"
)


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
@attrs.frozen(slots=True)
class Offers:
    """All that is known of the offers of one address, for the other nodes of its domain.

    Attributes:
        open: The offer that can be taken; None: there is none.
        over: Number of the last offer that cannot be taken any more.
        moved_from: Runtime that had the address before the last offer that was taken; None: none
            was taken.
        observers: Observers in that runtime, as the new owner reports them.
    """

    open: Offer | None = None
    over: int = 0
    moved_from: str | None = None
    observers: tuple[str, ...] = ()


NEVER_OFFERED: Final = Offers()


def _some_of(observers: tuple[str, ...]) -> tuple[str, ...]:
    """Return as many as a row can name: the path of a runtime needs one."""
    sizes = accumulate(len(one.encode()) for one in observers)
    return tuple(
        one for one, size in zip(observers, sizes, strict=True) if size <= GROUP_OBSERVERS_BYTES
    )


def _is_nowhere_else(_: str) -> bool:
    return False


@final
class AddressOffers:
    """The offers of one node's addresses.

    Memory is bounded by the allocated addresses: a released address is forgotten.

    Args:
        owner_of: Returns the owner of exactly this address.
        is_elsewhere: Returns whether a runtime has its session at another node of the domain:
            its offers become known later than its messages.
    """

    def __init__(
        self,
        owner_of: Callable[[str], str | None],
        is_elsewhere: Callable[[str], bool] = _is_nowhere_else,
    ) -> None:
        self._owner_of = owner_of
        self._is_elsewhere = is_elsewhere
        self._open: dict[str, Offer] = {}
        self._over: dict[str, int] = {}
        self._moved: dict[str, tuple[str, tuple[str, ...]]] = {}

    def __len__(self) -> int:
        return len(self._open.keys() | self._over.keys() | self._moved.keys())

    def is_moved(self, address: str) -> bool:
        """Return whether an address was transferred to its present owner."""
        return address in self._moved

    def of(self, address: str) -> Offers:
        """Return all that is known of the offers of an address."""
        moved_from, observers = self._moved.get(address, (None, ()))
        return Offers(self._open.get(address), self._over.get(address, 0), moved_from, observers)

    def mirror(self, address: str, known: Offers) -> None:
        """Know of the offers of an address what another node has decided.

        Args:
            address: The address.
            known: All that is known of its offers.
        """
        self.released(address)
        if known.open is not None:
            self._open[address] = known.open
        if known.over:
            self._over[address] = known.over
        if known.moved_from is not None:
            self._moved[address] = known.moved_from, known.observers

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
        if offer != Offer(address, owner, by, taking.number, taking.delegate):
            return _NOT_YET if self._is_coming(taking, owner) else _NO_OFFER
        return Move(address, owner, by, taking.number)

    def _is_coming(self, taking: Take, owner: str) -> bool:
        """Return whether the offer may have been made at another node, and be known here soon."""
        offer = self._open.get(taking.address)
        newest = max(self._over.get(taking.address, 0), 0 if offer is None else offer.number)
        return taking.number > newest and self._is_elsewhere(owner)

    def moved(self, move: Move, observers: tuple[str, ...] = ()) -> None:
        """Note that an address was moved.

        Args:
            move: The move.
            observers: Observers in the runtime that had it, which other nodes must know.
        """
        self._end(move.address, move.number)
        self._moved[move.address] = move.old, _some_of(observers)

    def released(self, address: str) -> None:
        """Note that an address has no owner any more."""
        self._open.pop(address, None)
        self._over.pop(address, None)
        self._moved.pop(address, None)

    def gone(self, runtime: str) -> list[str]:
        """Note that a session is over: offers to it can no longer be taken.

        Returns:
            The addresses that were offered to it.
        """
        offered = [address for address, offer in self._open.items() if offer.to == runtime]
        for address in offered:
            self._end(address, self._open[address].number)
        return offered

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
