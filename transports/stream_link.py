"""A link over a byte stream: each frame behind its length (Unix sockets, TCP)."""

from collections.abc import Sequence
from typing import Final, final

import trio
from typing_extensions import override

from specs.limits.protocol import MAX_FRAME_BYTES
from transports.errors import Farewell
from transports.link import Kind, Upgrade
from transports.socket_link import SocketLink

__all__ = ["StreamLink"]

_HEAD: Final = 4
"""Bytes of a frame's length, big-endian."""

_FAREWELL: Final = 0xFFFF_0000
"""A length from here up is none, but a farewell with its code in the low half."""


@final
class StreamLink(SocketLink):
    """Frames with a length in front; at the end a farewell, so that a break shows."""

    __slots__ = ("_buffer",)

    def __init__(self, names: tuple[Kind, str, Upgrade], stream: trio.SocketStream) -> None:
        super().__init__(names, stream)
        self._buffer: Final = bytearray()

    @override
    def _wrapped(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(
            part for frame in frames for part in (len(frame).to_bytes(_HEAD, "big"), frame)
        )

    @override
    def _goodbye(self, farewell: Farewell) -> bytes:
        return (_FAREWELL | farewell.value).to_bytes(_HEAD, "big")

    @override
    def _take(self, data: bytes) -> None:
        if not data:
            self._finish("the connection ended without a farewell")
            return
        self._buffer.extend(data)
        while len(self._buffer) >= _HEAD and self._take_one():
            pass

    def _take_one(self) -> bool:
        """Take one frame or farewell from the buffer; say whether to look for another."""
        size = int.from_bytes(self._buffer[:_HEAD], "big")
        if size >= _FAREWELL:
            self._finish("the other end has left", Farewell.read(size & 0xFFFF))
            return False
        if size > MAX_FRAME_BYTES:
            self._refuse_size()
            return False
        end = _HEAD + size
        if len(self._buffer) < end:
            return False
        self._deliver(bytes(self._buffer[_HEAD:end]))
        del self._buffer[:end]
        return True
