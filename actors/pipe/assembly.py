"""Frames of a link, and archives, put together again from the parts that went through a pipe.

How many frames of a link may be on their way through a pipe: who sends more waits.
"""

from typing import final

import trio

from actors.pipe.errors import PipeError
from actors.pipe.said import MORE, Said
from specs.limits.protocol import MAX_FRAME_BYTES, ROOM_WINDOW

__all__ = ["FrameParts", "Window"]


@final
class Window:
    """Frames sent and not yet taken at the other end of a pipe."""

    def __init__(self) -> None:
        self._open = ROOM_WINDOW
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
        self._open = min(self._open + 1, ROOM_WINDOW)
        self._moved.set()

    def close(self) -> None:
        """Let nobody wait any more."""
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

    def add(self, said: Said) -> bytes | None:
        """Take a part; return the frame if it was the last.

        Raises:
            PipeError: The frame is larger than any may be.
        """
        if len(self._parts) + len(said.rest) > self._most:
            raise PipeError(f"a frame of more than {self._most} bytes")
        self._parts += said.rest
        if said.text == MORE:
            return None
        frame = bytes(self._parts)
        self._parts.clear()
        return frame
