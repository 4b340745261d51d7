"""Memory and permits that the hyperties of one process share for bodies in chunks (P2P-21)."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

import trio

from fsm.bus.chunks import TransferBudget
from specs.limits.transfer import PEER_ARRIVING, READING, SENDING, TRANSFER_BYTES

__all__ = ["Transfers"]


@final
class Transfers:
    """Memory and permits of the transfers of one process.

    Args:
        limit: Bytes that a body may have.

    Attributes:
        limit: Bytes that a body may have.
        arriving: Memory of the bodies that peers send.
        held: Memory of the bodies of answers that peers have not read yet.
        reading: Permits; each requested chunk of an answer holds one.
    """

    def __init__(self, limit: int = TRANSFER_BYTES) -> None:
        self.limit: Final = limit
        self.arriving: Final = TransferBudget(limit)
        self.held: Final = TransferBudget(limit)
        self.reading: Final = trio.Semaphore(READING)
        self._sending: Final = trio.Semaphore(SENDING)
        self._permits: Final[dict[str, trio.Semaphore]] = {}
        self._users: Final[Counter[str]] = Counter()

    @asynccontextmanager
    async def permit(self, receiver: str) -> AsyncIterator[None]:
        """Wait for a permit to send a body to a receiver; the context holds it.

        A slow receiver delays only bodies for itself.

        Args:
            receiver: Address of the receiver.

        If cancelled, the permit is free again.
        """
        permits = self._permits.setdefault(receiver, trio.Semaphore(PEER_ARRIVING))
        self._users[receiver] += 1
        try:
            async with permits, self._sending:
                yield
        finally:
            self._users[receiver] -= 1
            if not self._users[receiver]:
                del self._users[receiver], self._permits[receiver]
