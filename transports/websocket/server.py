"""Listener for WebSocket links, and the links that it accepts.

Each handshake runs in a task of its own, with a time limit. A link combines the protocol objects of
the library `websockets`, which do no I/O, with a Trio stream.
"""

import codecs
import math
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from operator import attrgetter
from typing import Final

import attrs
import trio
from typing_extensions import override
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import Event, State
from websockets.server import ServerProtocol
from websockets.typing import Origin, Subprotocol

from specs.limits import protocol as limits
from specs.reply_code import TurnedAway
from transports import link as links
from transports.errors import CloseReason, LinkClosedError
from transports.socket_link import SocketLink
from transports.sockets import next_streams, open_background
from transports.tls import AcceptedStream, TlsStream
from transports.urls import own_origin, read_target

_UTF8: Final = codecs.getincrementaldecoder("utf-8")

_DATA: Final = attrgetter("data")

_CONTROL: Final = frozenset({Opcode.CLOSE, Opcode.PING, Opcode.PONG})


class WebSocketProtocol(ServerProtocol):
    """The library's protocol object, except that an oversized frame does not close the connection.

    The library would close at once, so that the peer could not be notified of its error (code 413).
    Here the connection stays open for writing, and nothing more is read.

    Args:
        origins: Web origins whose pages may connect, besides peers that are no pages; None: all.

    Attributes:
        is_over_limit: Whether the peer announced more bytes than allowed.
    """

    def __init__(self, origins: frozenset[str] | None = None) -> None:
        allowed = None if origins is None else [None, *map(Origin, sorted(origins))]
        super().__init__(max_size=limits.MAX_FRAME_BYTES, origins=allowed)
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


class WebSocketServerLink(SocketLink):
    """An accepted WebSocket; a frame is a text message, and binary ones are accepted, too."""

    __slots__ = ("_begun_at", "_parts", "_protocol", "_reader")

    def __init__(
        self, name: str, upgrade: links.Upgrade, stream: AcceptedStream, protocol: WebSocketProtocol
    ) -> None:
        super().__init__((links.Kind.WEBSOCKET, name, upgrade), stream)
        self._protocol: Final = protocol
        self._parts: Final[list[Frame]] = []
        self._reader: codecs.IncrementalDecoder | None = None
        self._begun_at: float | None = None
        self._take_events()
        if not self._parts and not protocol.reader.buffer:
            self._begun_at = None

    @override
    def _wrap(self, frames: Sequence[bytes]) -> bytes:
        # A server does not mask: what is written depends on no state of the connection.
        return b"".join([Frame(Opcode.TEXT, frame).serialize(mask=False) for frame in frames])

    @override
    def _goodbye(self, close_reason: CloseReason) -> bytes:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(close_reason.value, close_reason.reason)
        return b"".join(self._protocol.data_to_send())

    @override
    def _take(self, data: bytes) -> None:
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._take_events()

    @property
    @override
    def frame_due(self) -> float | None:
        return None if self._begun_at is None else self._begun_at + limits.FRAME_TIMEOUT

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
        elif self._protocol.state is not State.OPEN and not self._is_awaited:
            self._forget_traceback()
            self._finish(*self._why_over())

    @property
    def _is_awaited(self) -> bool:
        """Whether this end has sent a close frame and waits for that of the peer."""
        protocol = self._protocol
        has_ended = protocol.close_rcvd is not None or protocol.parser_exc is not None
        return self._has_left and protocol.state is State.CLOSING and not has_ended

    def _forget_traceback(self) -> None:
        """Free the stack frames that the error of the parser holds.

        They refer to the protocol, and it refers to them: only the cyclic garbage collector, which
        stops the whole process, would free them.
        """
        if self._protocol.parser_exc is not None:
            self._protocol.parser_exc.__traceback__ = None

    def _note_progress(self, events: Sequence[Event]) -> None:
        """Update the time at which the unfinished message of the peer has begun.

        Control frames between the frames of a message do not count as progress. An incomplete frame
        waits in the parser, except a header without content.
        """
        if not self._parts and events and not self._protocol.reader.buffer:
            self._begun_at = None
        elif self._begun_at is None or any(map(_ends_message, events)):
            self._begun_at = trio.current_time()

    def _take_part(self, part: Frame) -> None:
        """Add a WebSocket frame to the unfinished message; deliver a complete message."""
        self._parts.append(part)
        if self._parts[0].opcode is Opcode.TEXT and not self._is_text_so_far(part):
            self._protocol.fail(CloseCode.INVALID_DATA, "not UTF-8")
            self._parts.clear()
            return
        if not part.fin:
            return
        frame = b"".join(map(_DATA, self._parts))
        self._parts.clear()
        is_open = self._protocol.state is State.OPEN or self._has_left
        if is_open or self._protocol.close_rcvd is not None:
            self._deliver(frame)

    def _is_text_so_far(self, part: Frame) -> bool:
        """Return whether a frame continues the message with valid UTF-8."""
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


_SERVED: Final = limits.PENDING_HANDSHAKES + 256
"""Connections that are handled at once: more than handshakes, so that others can be refused."""

_COME_LATER: Final = b"Too many connections from your host; come back later.\n"

_TOO_FAST: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s"
) % (len(_COME_LATER), _COME_LATER)
"""The answer to a host that connects too often, before it has sent anything."""


class _WebSocketListener(links.Listener):
    """Listener whose handshakes are done elsewhere: a bounded queue of ready links."""

    __slots__ = ("_places", "_ready")

    def __init__(
        self, address: str, ready: "trio.MemoryReceiveChannel[links.Link]", places: trio.Semaphore
    ) -> None:
        super().__init__(address)
        self._ready: Final = ready
        self._places: Final = places

    @override
    async def accept(self) -> links.Link:
        try:
            link = await self._ready.receive()
        except (trio.ClosedResourceError, trio.EndOfChannel) as exc:
            raise LinkClosedError(self.address) from exc
        self._places.release()
        return link


@attrs.frozen
class _HandshakeServer:
    """Accepts connections of a listening socket, asks the gate, and runs the handshakes."""

    paths: links.ServedPaths
    gate: links.Gate
    name: Callable[[], str]
    ready: "trio.MemorySendChannel[links.Link]"
    places: trio.Semaphore

    async def serve(
        self,
        listener: trio.SocketListener,
        nursery: trio.Nursery,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections until cancelled; refuse those that the gate does not admit.

        If cancelled, connections in a handshake stay with the nursery.
        """
        task_status.started()
        while True:
            # A link that would only wait here is not accepted: the system keeps them meanwhile,
            # and accepted links have the processor for themselves.
            async with self.places:
                pass
            # Nor are more than can be served at once: the oldest has some time for its handshake.
            while not (room := self._room(len(nursery.child_tasks))):  # noqa: ASYNC110
                await trio.sleep(limits.ACCEPT_REST)
            for stream in await next_streams(listener, room):
                self._meet(stream, nursery)

    def _room(self, served: int) -> int:
        return min(limits.ACCEPT_BATCH, max(0, _SERVED - served), self.gate.room())

    def _meet(self, stream: trio.SocketStream, nursery: trio.Nursery) -> None:
        tls = self.gate.tls
        guest = self.gate.knock(_host(stream))
        if guest is None and tls is None and len(nursery.child_tasks) < limits.PENDING_HANDSHAKES:
            nursery.start_soon(_turn_away, stream)
        elif guest is None:
            # A handshake of TLS would cost more than the answer is worth.
            stream.socket.close()
        else:
            origins = self._origins(stream)
            greeted = stream if tls is None else TlsStream(stream, tls)
            nursery.start_soon(self._greet, greeted, guest, origins)

    def _origins(self, stream: trio.SocketStream) -> frozenset[str] | None:
        """Return the web origins whose pages may connect, including the listener's own origin."""
        gate = self.gate
        if gate.origins is None:
            return None
        host, port, *_ = stream.socket.getsockname()
        return gate.origins | {own_origin(host, port, is_encrypted=gate.tls is not None)}

    async def _greet(
        self, stream: AcceptedStream, guest: links.Guest, origins: frozenset[str] | None
    ) -> None:
        """Run the handshake of a connection, and queue its link, or close the connection."""
        is_handed_over = False
        try:
            with guest.staying() as staying, suppress(trio.BrokenResourceError):
                staying.deadline = guest.until
                link = await self._handshake(stream, origins)
                if link is not None:
                    link.guest = guest
                    staying.deadline = math.inf  # from here on it is not the peer that is slow
                    await self.places.acquire()
                    self.ready.send_nowait(link)
                    is_handed_over = True
            if staying.cancelled_caught:
                late = TurnedAway.MADE_ROOM if guest.is_expelled else TurnedAway.TOO_LATE
                self.gate.turned_away(late)
        finally:
            if not is_handed_over:
                guest.settle()
                await trio.aclose_forcefully(stream)

    async def _handshake(
        self, stream: AcceptedStream, origins: frozenset[str] | None
    ) -> links.Link | None:
        protocol = WebSocketProtocol(origins)
        request = await _read_request(stream, protocol)
        if request is None:
            self.gate.turned_away(TurnedAway.BAD_REQUEST)
            unwritten = protocol.data_to_send() or []
            garbage = protocol.reject(HTTPStatus.BAD_REQUEST, "This is no HTTP request.\n")
            await _hang_up(stream, b"".join(unwritten) or garbage.serialize())
            return None
        upgrade, response = self._judge(protocol, request)
        protocol.send_response(response)
        answer = b"".join(protocol.data_to_send())
        if upgrade is None or response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            is_foreign = response.status_code == HTTPStatus.FORBIDDEN
            why = TurnedAway.ORIGIN if is_foreign else TurnedAway.BAD_REQUEST
            self.gate.turned_away(why)
            await _hang_up(stream, answer)
            return None
        await stream.send_all(answer)
        for head in (request, response):  # the protocol keeps both as long as it lives
            head.headers.clear()
        return WebSocketServerLink(self.name(), upgrade, stream, protocol)

    def _judge(
        self, protocol: WebSocketProtocol, request: Request
    ) -> tuple[links.Upgrade | None, Response]:
        """Return the upgrade that a request asks for (None: refused), and the HTTP response."""
        if len(request.headers.get_all("Host")) != 1:
            return None, protocol.reject(HTTPStatus.BAD_REQUEST, "There must be one Host.\n")
        try:
            upgrade = read_target(request.path, None)
        except ValueError:
            return None, protocol.reject(HTTPStatus.BAD_REQUEST, "The query is too long.\n")
        if upgrade.path not in self.paths:
            return None, protocol.reject(HTTPStatus.NOT_FOUND, "Nothing is served here.\n")
        # Credentials of a browser come with the origin of the page (S10).
        is_hidden = "Cookie" in request.headers and "Origin" not in request.headers
        if protocol.origins is not None and is_hidden:
            return None, protocol.reject(HTTPStatus.FORBIDDEN, "Cookies come with an Origin.\n")
        wanted = self.paths[upgrade.path]
        protocol.available_subprotocols = None if wanted is None else [Subprotocol(wanted)]
        return attrs.evolve(upgrade, subprotocol=wanted), protocol.accept(request)


def _host(stream: trio.SocketStream) -> str:
    """Return the host of a connection's peer; empty: the peer has disconnected already."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return ""


async def _turn_away(stream: trio.SocketStream) -> None:
    """Send a peer the answer that its host connects too often, and close the connection."""
    try:
        with trio.move_on_after(limits.GOODBYE_TIMEOUT), suppress(trio.BrokenResourceError):
            await _hang_up(stream, _TOO_FAST)
    finally:
        await trio.aclose_forcefully(stream)


async def _read_request(stream: AcceptedStream, protocol: WebSocketProtocol) -> Request | None:
    """Read the HTTP request of a peer; None: the request is invalid. Later data stays buffered."""
    while not protocol.events:
        data = await stream.receive_some(limits.READ_BYTES)
        if not data:
            return None
        protocol.receive_data(bytes(data))
        if protocol.handshake_exc is not None:
            return None
    first = protocol.events.pop(0)
    return first if isinstance(first, Request) else None


async def _hang_up(stream: AcceptedStream, last_words: bytes) -> None:
    """Write an answer, close the writing side, and wait until the peer disconnects."""
    await stream.send_all(last_words)
    await stream.send_eof()
    while await stream.receive_some(limits.READ_BYTES):
        pass


@asynccontextmanager
async def open_websocket_listener(
    listener: trio.SocketListener,
    address: str,
    paths: links.ServedPaths,
    gate: links.Gate,
    name: Callable[[], str],
) -> AsyncIterator[links.Listener]:
    """Accept WebSockets on a listening socket while the context is open.

    When the context is left, also if cancelled, unfinished handshakes and links that nobody has
    accepted are closed by force.

    Args:
        listener: The listening socket; its creator closes it.
        address: Address that peers dial.
        paths: Served paths, with their subprotocols.
        gate: Admits connections.
        name: Returns a new name for each link.
    """
    if not isinstance(gate, links.Everybody):
        # Accepted sockets inherit it: of a peer that has to wait, no more is kept than this.
        listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.SOCKET_BYTES)
    send, receive = trio.open_memory_channel[links.Link](limits.LINK_BACKLOG)
    places = trio.Semaphore(limits.LINK_BACKLOG)
    handshakes = _HandshakeServer(paths, gate, name, send, places)
    try:
        async with open_background() as nursery:
            await nursery.start(handshakes.serve, listener, nursery)
            yield _WebSocketListener(address, receive, places)
    finally:
        send.close()
        with suppress(trio.EndOfChannel):
            while True:
                await trio.aclose_forcefully(receive.receive_nowait())
        receive.close()
