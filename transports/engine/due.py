"""What a reader of a channel has not been given yet, for all engines."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, TypeVar, final

import trio
from typing_extensions import override

from specs.limits.engine import INBOX_BYTES, INBOX_MESSAGES
from transports.engine.contract import Lose

Item = TypeVar("Item")


@final
class Bell:
    """Wakes the task that waits for anything to happen."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def ring(self) -> None:
        """Wake the task, or let its next wait end at once."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until it rings, or has rung since the last wait."""
        await self._event.wait()
        self._event = trio.Event()


class Due(ABC, Generic[Item]):
    """What a reader has not been given yet."""

    def __init__(self) -> None:
        self.bell: Final = Bell()

    @abstractmethod
    def taken(self) -> Sequence[Item]:
        """Take the next batch; empty: nothing is new."""


@final
class Inbox(Due[bytes]):
    """Payloads, within bounds.

    Args:
        node: Name of the node that gets them.
        lose: Is given what finds no room; None: nobody is.
    """

    def __init__(self, node: str, lose: Lose | None) -> None:
        super().__init__()
        self.node: Final = node
        self._lose: Final = lose
        self._payloads: Final = deque[bytes]()
        self._bytes = 0

    def came(self, payload: bytes) -> None:
        """Take a payload, if there is room."""
        size = self._bytes + len(payload)
        if len(self._payloads) < INBOX_MESSAGES and size <= INBOX_BYTES:
            self._payloads.append(payload)
            self._bytes = size
            self.bell.ring()
        elif self._lose is not None:
            self._lose(payload)

    @override
    def taken(self) -> Sequence[bytes]:
        batch = list(self._payloads)
        self._payloads.clear()
        self._bytes = 0
        return batch
