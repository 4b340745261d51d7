"""A link that is a byte stream and nothing else: for protocols that are not ours."""

from collections.abc import Sequence
from contextlib import suppress
from typing import final

from typing_extensions import override

from transports.errors import Farewell
from transports.socket_link import SocketLink

__all__ = ["RawLink"]


@final
class RawLink(SocketLink):
    """Bytes as they come, at most `READ_BYTES` at once; hanging up is all the farewell there is."""

    __slots__ = ()

    @property
    @override
    def host(self) -> str:
        with suppress(OSError):
            return str(self._stream.socket.getpeername()[0])
        return ""

    @override
    def _wrapped(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(frames)

    @override
    def _goodbye(self, farewell: Farewell) -> bytes:
        return b""

    @override
    def _take(self, data: bytes) -> None:
        if data:
            self._deliver(data)
        else:
            self._finish("the other end has hung up", Farewell.DONE)
