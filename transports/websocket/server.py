"""The accepting end of a WebSocket: the sans-IO layer of websockets on a Trio stream."""

import codecs
from collections.abc import Sequence
from typing import Final, final

import trio
from typing_extensions import override
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Event, State
from websockets.server import ServerProtocol
from websockets.typing import Origin

from specs.limits.protocol import FRAME_TIMEOUT, MAX_FRAME_BYTES
from transports.errors import CloseReason
from transports.link import Kind, Upgrade
from transports.socket_link import SocketLink

__all__ = ["WebSocketProtocol", "WebSocketServerLink"]

_UTF8: Final = codecs.getincrementaldecoder("utf-8")

_CONTROL: Final = frozenset({Opcode.CLOSE, Opcode.PING, Opcode.PONG})


@final
class WebSocketProtocol(ServerProtocol):
    """The protocol of the library, except that an oversized frame does not close the connection.

    The library would close at once, so that nobody could tell the peer what was wrong (code 413).
    Here the connection stays open for writing, and nothing more is read.

    Args:
        origins: Web origins whose pages may connect, beside peers that are no pages; None: all.

    Attributes:
        is_over_limit: Whether the peer announced more bytes than allowed.
    """

    def __init__(self, origins: frozenset[str] | None = None) -> None:
        allowed = None if origins is None else [None, *map(Origin, sorted(origins))]
        super().__init__(max_size=MAX_FRAME_BYTES, origins=allowed)
        self.is_over_limit = False

    @override
    def recv_frame(self, frame: Frame) -> None:
        # A control frame may come between the parts of a message (RFC 6455 section 5.4), and a
        # peer may leave there: the library would call that a breach of the protocol.
        if frame.opcode is Opcode.CLOSE:
            self.current_size = None
        super().recv_frame(frame)

    @override
    def fail(self, code: CloseCode | int, reason: str = "") -> None:
        # What came in one piece with the handshake is parsed while still connecting.
        if code == CloseCode.MESSAGE_TOO_BIG and self.state in {State.CONNECTING, State.OPEN}:
            self.is_over_limit = True
        else:
            super().fail(code, reason)


@final
class WebSocketServerLink(SocketLink):
    """An accepted WebSocket; a frame is a text message, and binary ones are accepted, too."""

    __slots__ = ("_begun_at", "_parts", "_protocol", "_reader")

    def __init__(
        self, name: str, upgrade: Upgrade, stream: trio.SocketStream, protocol: WebSocketProtocol
    ) -> None:
        super().__init__((Kind.WEBSOCKET, name, upgrade), stream)
        self._protocol: Final = protocol
        self._parts: Final[list[Frame]] = []
        self._reader: codecs.IncrementalDecoder | None = None
        self._begun_at: float | None = None
        self._take_events()
        if not self._parts and not protocol.reader.buffer:
            self._begun_at = None

    @override
    def _wrapped(self, frames: Sequence[bytes]) -> bytes:
        for frame in frames:
            self._protocol.send_text(frame)
        return b"".join(self._protocol.data_to_send())

    @override
    def _goodbye(self, farewell: CloseReason) -> bytes:
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

    @override
    def _frame_due(self) -> float | None:
        return None if self._begun_at is None else self._begun_at + FRAME_TIMEOUT

    @override
    def _ping(self) -> bytes:
        if self._protocol.state is State.OPEN:
            self._protocol.send_ping(b"")
        return b"".join(self._protocol.data_to_send())

    def _take_events(self) -> None:
        events = self._protocol.events_received()
        for event in events:
            if isinstance(event, Frame) and event.opcode not in _CONTROL:
                self._take_part(event)
        self._note_progress(events)
        self._outbox.extend(b"".join(self._protocol.data_to_send()))
        if self._protocol.is_over_limit:
            self._refuse_size()
        elif self._protocol.state is not State.OPEN:
            self._forget_where()
            self._finish(*self._why_over())

    def _forget_where(self) -> None:
        """Free the stack frames that the error of the parser holds.

        They refer to the protocol, and it refers to them: only the cyclic garbage collector, which
        stops the whole process, would free them.
        """
        if self._protocol.parser_exc is not None:
            self._protocol.parser_exc.__traceback__ = None

    def _note_progress(self, events: Sequence[Event]) -> None:
        """Note since when an unfinished message is under way.

        Control frames between its parts are no progress. An incomplete frame waits in the parser,
        except a header that nothing has followed yet.
        """
        if not self._parts and events and not self._protocol.reader.buffer:
            self._begun_at = None
        elif self._begun_at is None or any(map(_ends_message, events)):
            self._begun_at = trio.current_time()

    def _take_part(self, part: Frame) -> None:
        """Assemble a message; its size was limited part by part."""
        self._parts.append(part)
        if self._parts[0].opcode is Opcode.TEXT and not self._is_text_so_far(part):
            self._protocol.fail(CloseCode.INVALID_DATA, "not UTF-8")
            self._parts.clear()
            return
        if not part.fin:
            return
        frame = b"".join(bytes(one.data) for one in self._parts)
        self._parts.clear()
        if self._protocol.state is State.OPEN or self._protocol.close_rcvd is not None:
            self._deliver(frame)

    def _is_text_so_far(self, part: Frame) -> bool:
        """Whether a part continues with UTF-8; a character may end in the next part."""
        if part.fin and len(self._parts) == 1 and bytes(part.data).isascii():
            return True
        reader = self._reader = self._reader or _UTF8()
        try:
            reader.decode(part.data, part.fin)
        except UnicodeDecodeError:
            return False
        return True

    def _why_over(self) -> tuple[str, CloseReason | None]:
        if self._protocol.close_rcvd is not None:
            return "the other end has left", CloseReason.read(self._protocol.close_rcvd.code)
        if isinstance(self._protocol.parser_exc, EOFError):
            return "the connection ended without a farewell", None
        return "the other end broke the WebSocket protocol", None


def _ends_message(event: Event) -> bool:
    return isinstance(event, Frame) and event.fin and event.opcode not in _CONTROL
