"""The transfer of an address between two sessions: the node's part in it (SYN-26, I-D1).

An owner offers an address to one other session, and may take the offer back. That session
takes the address, unless the offer is over. Offers of an address have rising numbers: an
offer that is over is never open again, so a message that comes late, or twice, changes
nothing. The core decides only; the host changes the tables.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.effects import Refused
from specs.reply_code import Code

__all__ = ["AddressOffers", "Move", "Offer", "OfferInput", "Take", "Withdraw"]

_NOT_YOURS: Final = Refused(Code.FORBIDDEN, "the session does not own it")
_OVER: Final = Refused(Code.CONFLICT, "that offer is over")
_NO_OFFER: Final = Refused(Code.FORBIDDEN, "it is not offered to this session")
_TAKEN: Final = Refused(Code.GONE, "somebody else has it now")
_UNKNOWN: Final = Refused(Code.NOT_FOUND, "nobody has it")


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
