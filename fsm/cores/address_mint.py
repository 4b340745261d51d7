"""Names of addresses that a node makes, and knows again without a list of them (I-A1, T3).

A name is a UUID: 90 random bits and, in its last 4 bytes, a keyed digest of them. So a node
can tell, of any address whatsoever, whether it made it; what it made and nobody owns was
released, and needs no tombstone. Nobody gains by forging a digest: an address that looks
made is refused to whoever claims it. A name that a peer made itself looks so once in 2^32.
The key lasts as long as the node: after a restart runtimes may claim what they had (C-44).
"""

import hashlib
from typing import Final, final
from uuid import UUID

from fsm.cores.subscription_terms import entity_of

__all__ = ["ENTROPY", "AddressMint"]

ENTROPY: Final = 12
"""Random bytes in a name."""

_TAG: Final = 4
_TEXT: Final = 36


@final
class AddressMint:
    """Makes names and knows them again.

    Args:
        key: Secret of this node, at most 64 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def name(self, random: bytes) -> str:
        """Return a name made of `ENTROPY` random bytes."""
        head = UUID(bytes=random + bytes(_TAG), version=4).bytes[:ENTROPY]
        return str(UUID(bytes=head + self._tag(head)))

    def made(self, address: str) -> bool:
        """Say whether the name of an address was made here."""
        name = entity_of(address).rpartition("/")[2]
        if len(name) != _TEXT:
            return False
        try:
            raw = UUID(name).bytes
        except ValueError:
            return False
        return self._tag(raw[:ENTROPY]) == raw[ENTROPY:]

    def _tag(self, head: bytes) -> bytes:
        return hashlib.blake2b(head, key=self._key, digest_size=_TAG).digest()
