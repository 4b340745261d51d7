"""What the bodies in chunks of all hyperties of one process share (P2P-21)."""

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
    """Memory and turns of the transfers of one process.

    Args:
        limit: Bytes that a body may have.

    Attributes:
        limit: The same.
        arriving: Memory of the bodies that peers send.
        held: Memory of the bodies of answers that peers have not read yet.
        reading: A permit for each chunk of an answer that is asked for.
    """

    def __init__(self, limit: int = TRANSFER_BYTES) -> None:
        self.limit: Final = limit
        self.arriving: Final = TransferBudget(limit)
        self.held: Final = TransferBudget(limit)
        self.reading: Final = trio.Semaphore(READING)
        self._sending: Final = trio.Semaphore(SENDING)
        self._turns: Final[dict[str, trio.Semaphore]] = {}
        self._users: Final[Counter[str]] = Counter()

    @asynccontextmanager
    async def turn(self, receiver: str) -> AsyncIterator[None]:
        """Wait for a turn to send a body to a receiver, and have it while the context is open.

        A receiver that takes its time holds up what goes to itself.

        Args:
            receiver: Address of the receiver.

        If cancelled, the turn is another body's.
        """
        turns = self._turns.setdefault(receiver, trio.Semaphore(PEER_ARRIVING))
        self._users[receiver] += 1
        try:
            async with turns, self._sending:
                yield
        finally:
            self._users[receiver] -= 1
            if not self._users[receiver]:
                del self._users[receiver], self._turns[receiver]
