"""Frames of a link, and archives, put together again from the parts that went through a pipe."""

from typing import final

from actors.pipe.errors import PipeError
from actors.pipe.said import MORE, Said
from specs.limits.protocol import MAX_FRAME_BYTES

__all__ = ["FrameParts"]


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
