"""Allocated addresses: their names and their reuse.

`AddressMint` makes names that a node recognises without a list of them (I-A1, T3). A name is a
UUID: 60 random bits, a keyed digest of these bits and of the runtime it was made for, and in
its last 4 bytes a keyed digest of all that. So a node knows of any address whether it made
the address, and for which runtime. An address that the node made and that has no owner was
released; it needs no tombstone. A forged digest gains nothing: an address that looks made by
the node is refused to every runtime but the one it was made for. A name that a peer made
itself looks so once in 2^32. The key lasts as long as the node: after a restart runtimes may
claim the addresses they had (C-44).

`AddressReuse` keeps addresses of a runtime for later hyperties (ALC-02). A kept address is
allocated still, but not in use. A hyperty of the same purpose may have it again; a hyperty that
names an address must have exactly that.
"""

import hashlib
from collections.abc import Iterable
from typing import Final
from uuid import UUID

import attrs

from fsm.sync.subscriptions import entity_of

# ---- names


ENTROPY: Final = 8
"""Random bytes in a name."""

_OWNER: Final = 4
_TAG: Final = 4
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
