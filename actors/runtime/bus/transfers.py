"""Memory and permits that all hyperties of a process share to transfer large bodies (P2P-21)."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from fsm.bus.chunks import TransferBudget
from specs.limits import transfer


class Permits:
    """Permits to transfer with peers; a slow peer delays only its own transfers.

    Args:
        most: Number of permits.
        each: Number of permits that one peer may use.
    """

    def __init__(self, most: int, each: int) -> None:
        self._all: Final = trio.Semaphore(most)
        self._each: Final = each
        self._permits: Final[dict[str, trio.Semaphore]] = {}
        self._users: Final[Counter[str]] = Counter()

    @property
    def are_free(self) -> bool:
        """True if no transfer has a permit or waits for one."""
        return not self._users

    @asynccontextmanager
    async def of(self, peer: str) -> AsyncIterator[None]:
        """Wait for a permit for a peer; the permit is free again when the context is left.

        Args:
            peer: Address of the peer.

        If cancelled, the permit is free again.
        """
        permits = self._permits.setdefault(peer, trio.Semaphore(self._each))
        self._users[peer] += 1
        try:
            async with permits, self._all:
                yield
        finally:
            self._users[peer] -= 1
            if not self._users[peer]:
                del self._users[peer], self._permits[peer]


class Transfers:
    """Memory and permits of the transfers of large bodies in one process.

    Args:
        limit: Maximum size of a body in bytes.

    Attributes:
        limit: Maximum size of a body in bytes.
        arriving: Memory of the bodies that peers send.
        held: Memory of the bodies of answers that peers have not read yet.
        reading: Permits; each requested chunk of an answer takes one.
        sending: Permits; each body that is sent ahead of its message takes one.
    """

    def __init__(self, limit: int = transfer.TRANSFER_BYTES) -> None:
        self.limit: Final = limit
        self.arriving: Final = TransferBudget(limit)
        self.held: Final = TransferBudget(limit)
        self.reading: Final = Permits(transfer.READING, transfer.PEER_READING)
        self.sending: Final = Permits(transfer.SENDING, transfer.PEER_ARRIVING)
