"""Which addresses a runtime keeps for hyperties to come, and who may have one again (ALC-02).

An address that is kept is allocated still, but nobody uses it. A hyperty of the same
purpose may have it again; one that names an address must have exactly that.
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
        descriptor: Catalogue address of what uses it; None: of nothing that could be
            known again.
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
        """Note that an address is not in use any more, but may be again."""
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
        """Give out exactly this address; False: it is not kept for that (a hard miss)."""
        if self._kept.get(address) != purpose:
            return False
        del self._kept[address]
        return True

    def forget(self, addresses: Iterable[str]) -> None:
        """Forget addresses that have been given back."""
        for address in addresses:
            self._kept.pop(address, None)

    def forget_all(self) -> None:
        """Forget everything: the node knows none of them any more."""
        self._kept.clear()
