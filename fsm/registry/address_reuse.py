"""The addresses a runtime keeps for later hyperties, and their reuse (ALC-02).

A kept address is allocated still, but not in use. A hyperty of the same purpose may have it
again; a hyperty that names an address must have exactly that.
"""

from collections.abc import Iterable
from typing import final

import attrs

__all__ = ["AddressReuse", "Purpose"]


@final
@attrs.frozen(slots=True)
class Purpose:
    """What an address is for.

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
