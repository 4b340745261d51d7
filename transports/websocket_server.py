"""The accepting end of a WebSocket: the sans-IO layer of websockets on a Trio stream."""

from collections.abc import Sequence
from typing import Final, final

import trio
from typing_extensions import override
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from specs.limits import MAX_FRAME_BYTES
from transports.errors import Farewell
from transports.link import Kind, Upgrade
from transports.socket_link import SocketLink

__all__ = ["WebSocketProtocol", "WebSocketServerLink"]

_CONTROL: Final = frozenset({Opcode.CLOSE, Opcode.PING, Opcode.PONG})


@final
class WebSocketProtocol(ServerProtocol):
    """The library's protocol; but what is said to an oversized frame is left to the layer above.

    The library would close at once, so that nobody could tell the peer in its
    own words (code 413) what was wrong. Here the connection stays open for
    writing, and nothing more is read.

    Attributes:
        is_over_limit: Whether the peer announced more bytes than allowed.
    """

    def __init__(self) -> None:
        super().__init__(max_size=MAX_FRAME_BYTES)
        self.is_over_limit = False

    @override
    def fail(self, code: CloseCode | int, reason: str = "") -> None:
        # What came in one piece with the handshake is parsed while still connecting.
        if code == CloseCode.MESSAGE_TOO_BIG and self.state in {State.CONNECTING, State.OPEN}:
            self.is_over_limit = True
        else:
            super().fail(code, reason)


@final
class WebSocketServerLink(SocketLink):
    """A WebSocket that was accepted. A frame is a text message; binary ones are taken too."""

    __slots__ = ("_parts", "_protocol")

    def __init__(
        self, name: str, upgrade: Upgrade, stream: trio.SocketStream, protocol: WebSocketProtocol
    ) -> None:
        super().__init__((Kind.WEBSOCKET, name, upgrade), stream)
        self._protocol: Final = protocol
        self._parts: Final[list[Frame]] = []
        self._take_events()

    @override
    def _wrapped(self, frames: Sequence[bytes]) -> bytes:
        for frame in frames:
            self._protocol.send_text(frame)
        return b"".join(self._protocol.data_to_send())

    @override
    def _goodbye(self, farewell: Farewell) -> bytes:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(farewell.value, farewell.reason)
        return b"".join(self._protocol.data_to_send())

    @override
    def _take(self, data: bytes) -> None:
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._take_events()

    def _take_events(self) -> None:
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode not in _CONTROL:
                self._take_part(event)
        self._outbox.extend(b"".join(self._protocol.data_to_send()))
        if self._protocol.is_over_limit:
            self._refuse_size()
        elif self._protocol.state is not State.OPEN:
            self._finish(*self._why_over())

    def _take_part(self, part: Frame) -> None:
        """Put a message together; its size was limited part by part as it came."""
        self._parts.append(part)
        if not part.fin:
            return
        frame = b"".join(bytes(one.data) for one in self._parts)
        is_text = self._parts[0].opcode is Opcode.TEXT
        self._parts.clear()
        if is_text and not frame.isascii() and not _is_utf8(frame):
            self._protocol.fail(CloseCode.INVALID_DATA, "not UTF-8")
        elif self._protocol.state is State.OPEN or self._protocol.close_rcvd is not None:
            self._inbox.append(frame)

    def _why_over(self) -> tuple[str, Farewell | None]:
        if self._protocol.close_rcvd is not None:
            return "the other end has left", Farewell.read(self._protocol.close_rcvd.code)
        if isinstance(self._protocol.parser_exc, EOFError):
            return "the connection ended without a farewell", None
        return "the other end broke the WebSocket protocol", None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
