"""What is known of addresses that were released (I-A1).

What the node made itself it knows again by its name (`fsm.registry.address_names`); of what peers
made a digest is kept, with whose it was the last.
"""

import hashlib
from sys import intern
from typing import Final, Protocol, final

__all__ = ["Mint", "Tombstones"]

_DIGEST: Final = 8
"""Bytes of a tombstone: among 10^6 of them two agree once in 10^7 nodes."""


class Mint(Protocol):
    """Knows the addresses that the node made, now or before."""

    def made(self, address: str) -> bool:
        """Say whether the node made an address."""

    def made_for(self, address: str, owner: str) -> bool:
        """Say whether the node made an address for this runtime."""


@final
class Tombstones:
    """The digests of the released addresses of one domain; about 70 bytes each.

    Args:
        mint: Knows what the node made; None: it makes nothing.
    """

    def __init__(self, mint: Mint | None = None) -> None:
        self._mint = mint
        self._whose: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._whose)

    def __contains__(self, address: str) -> bool:
        return _digest(address) in self._whose

    def is_spent(self, address: str) -> bool:
        """Say whether an address that nobody owns was somebody's, or was made by the node."""
        is_made = self._mint is not None and self._mint.made(address)
        return is_made or address in self

    def was_of(self, address: str, owner: str) -> bool:
        """Say whether a released address was that runtime's, of those it had the last."""
        whose = self._whose.get(_digest(address))
        return self._is_made_for(address, owner) if whose is None else whose == owner

    def bury(self, address: str, owner: str) -> None:
        """Keep whose a released address was, unless its name says so."""
        if not self._is_made_for(address, owner):
            self.keep(address, owner)

    def keep(self, address: str, owner: str) -> None:
        """Keep whose an address is, whatever its name says."""
        self._whose[_digest(address)] = intern(owner)

    def lift(self, address: str) -> None:
        """Forget whose an address was: somebody owns it again."""
        self._whose.pop(_digest(address), None)

    def _is_made_for(self, address: str, owner: str) -> bool:
        return self._mint is not None and self._mint.made_for(address, owner)


def _digest(address: str) -> int:
    return int.from_bytes(hashlib.blake2b(address.encode(), digest_size=_DIGEST).digest())
