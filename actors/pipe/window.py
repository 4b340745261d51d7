"""How many frames of a link may be on their way through a pipe: who sends more waits."""

from typing import final

import trio

from specs.limits.protocol import ROOM_WINDOW

__all__ = ["Window"]


@final
class Window:
    """Frames sent and not yet taken at the other end of a pipe."""

    def __init__(self) -> None:
        self._open = ROOM_WINDOW
        self._is_closed = False
        self._moved = trio.Event()

    async def enter(self) -> bool:
        """Wait until one more frame may be sent; False: none may any more.

        Not a checkpoint while one may. Cancelled: none is counted.
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
