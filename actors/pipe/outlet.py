"""The queues at each end of a pipe: what waits to be written, and frames in parts.

`Outlet` is bounded, keeps the order, and is written by one task. `Window` bounds the frames of a
link that are under way; `FrameParts` assembles frames and archives.
"""

from collections import deque
from typing import final

import trio

from actors.pipe.errors import PipeError
from actors.pipe.message import MORE, PipeMessage, write_message
from specs.limits.foreign_code import SANDBOX_UNREAD, SANDBOX_UNREAD_BYTES
from specs.limits.protocol import (
    FRAME_MESSAGES,
    MAX_FRAME_BYTES,
    OUTBOX_BYTES,
    OUTBOX_MESSAGES,
    SANDBOX_WINDOW,
)
from transports.errors import LinkError
from transports.link import Link


@final
class Window:
    """Frames sent and not yet taken at the other end of a pipe."""

    def __init__(self) -> None:
        self._open = SANDBOX_WINDOW
        self._is_closed = False
        self._moved = trio.Event()

    async def enter(self) -> bool:
        """Wait until one more frame may be sent; False: none may any more.

        Not a checkpoint while one may. If cancelled, none is counted.
        """
        while not self._open and not self._is_closed:
            self._moved = trio.Event()
            await self._moved.wait()
        if self._is_closed:
            return False
        self._open -= 1
        return True

    def taken(self) -> None:
        """Note that the other end took a frame."""
        self._open = min(self._open + 1, SANDBOX_WINDOW)
        self._moved.set()

    def close(self) -> None:
        """End all waits."""
        self._is_closed = True
        self._moved.set()


@final
class FrameParts:
    """The parts of the frame that is coming.

    Args:
        most: Bytes it may have.
    """

    def __init__(self, most: int = MAX_FRAME_BYTES) -> None:
        self._most = most
        self._parts = bytearray()

    def add(self, item: PipeMessage) -> bytes | None:
        """Take a part; return the frame if it was the last.

        Raises:
            PipeError: The frame is larger than any may be.
        """
        if len(self._parts) + len(item.rest) > self._most:
            raise PipeError(f"a frame of more than {self._most} bytes")
        self._parts += item.rest
        if item.text == MORE:
            return None
        frame = bytes(self._parts)
        self._parts.clear()
        return frame


@final
class Outlet:
    """The outbound queue of one end of a pipe.

    Attributes:
        is_overrun: Whether that is because the other end left too much unread.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: deque[PipeMessage] = deque()
        self._bytes = 0
        self.is_closed = False
        self.is_overrun = False
        self._is_writing = False
        self._writing = trio.CancelScope()
        self._wake = trio.Event()
        self._room = trio.Event()
        self._line = trio.StrictFIFOLock()

    @property
    def is_full(self) -> bool:
        """True if senders have to wait."""
        return len(self._waiting) >= OUTBOX_MESSAGES or self._bytes >= OUTBOX_BYTES

    @property
    def is_crowded(self) -> bool:
        """Whether half of what may wait at most is waiting: `put` would soon end the pipe."""
        return len(self._waiting) >= SANDBOX_UNREAD // 2 or self._bytes >= SANDBOX_UNREAD_BYTES // 2

    def offer(self, item: PipeMessage) -> bool:
        """Have it written, if there is room; return whether there was."""
        if self.is_closed or self.is_full:
            return False
        self.put(item)
        return True

    def put(self, item: PipeMessage) -> None:
        """Have it written, room or not: for rare messages, and for tasks that have waited.

        If by that more than `SANDBOX_UNREAD` waits, or its bytes, nothing is written any more.
        """
        if self.is_closed:
            return
        self._waiting.append(item)
        self._bytes += len(item)
        self._wake.set()
        if len(self._waiting) > SANDBOX_UNREAD or self._bytes > SANDBOX_UNREAD_BYTES:
            self.is_overrun = True
            self._close()
            self._writing.cancel()

    async def send(self, item: PipeMessage) -> None:
        """Have it written; wait while there is no room.

        Not a checkpoint while there is. If cancelled, it will not be written.
        """
        if not self.is_full and not self._line.locked():
            self.put(item)
            return
        # One at a time: of two that are woken at once either may run first.
        async with self._line:
            while self.is_full and not self.is_closed:
                self._room = trio.Event()
                await self._room.wait()
            self.put(item)

    async def flushed(self) -> None:
        """Wait until all that was put has been written, or nothing is any more."""
        while (self._waiting or self._is_writing) and not self.is_closed:
            self._room = trio.Event()
            await self._room.wait()

    async def run(self) -> None:
        """Write until the link breaks, too much waits or this is cancelled; then nothing waits."""
        try:
            with self._writing:
                while True:
                    await self._write()
        except LinkError:
            # The reader of the same link reports its end.
            pass
        finally:
            self._close()

    def _close(self) -> None:
        self.is_closed = True
        self._waiting.clear()
        self._room.set()

    async def _write(self) -> None:
        if not self._waiting:
            self._wake = trio.Event()
            await self._wake.wait()
        taken = [self._waiting.popleft() for _ in range(min(FRAME_MESSAGES, len(self._waiting)))]
        self._bytes -= sum(map(len, taken))
        self._is_writing = True
        self._room.set()
        await self._link.send_many([write_message(one) for one in taken])
        self._is_writing = False
        self._room.set()
