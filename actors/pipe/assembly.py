"""Frames of a link, put together again from the parts that went through a pipe."""

from typing import final

from actors.pipe.errors import PipeError
from actors.pipe.said import MORE, Said
from specs.limits import MAX_FRAME_BYTES

__all__ = ["FrameParts"]


@final
class FrameParts:
    """The parts of the frame that is coming."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def add(self, said: Said) -> bytes | None:
        """Take a part; return the frame if it was the last.

        Raises:
            PipeError: The frame is larger than any may be.
        """
        if len(self._parts) + len(said.rest) > MAX_FRAME_BYTES:
            raise PipeError(f"a frame of more than {MAX_FRAME_BYTES} bytes")
        self._parts += said.rest
        if said.text == MORE:
            return None
        frame = bytes(self._parts)
        self._parts.clear()
        return frame
