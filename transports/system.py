"""The network that opens and accepts links over real sockets."""

import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, assert_never

import trio
from typing_extensions import override

from specs.limits.protocol import DIAL_TIMEOUT
from transports import link as links
from transports import sockets
from transports.errors import DialError, ListenError
from transports.socket_link import RawLink, StreamLink
from transports.tls import AcceptedStream, TlsStream, begin_tls, client_context, dial_error
from transports.urls import WebSocketUrl, read_websocket_url
from transports.webrtc.process import WebRtcProcess
from transports.websocket.client import DialledStream, WebSocketDial, shake_hands
from transports.websocket.server import open_websocket_listener


class _StreamListener(links.Listener):
    """Listener for links over TCP or Unix sockets, which need no handshake."""

    __slots__ = ("_kind", "_listener", "_network", "_tls")

    def __init__(
        self,
        address: str,
        kind: links.Kind,
        listener: trio.SocketListener,
        network: "SystemNetwork",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(address)
        self._kind: Final = kind
        self._listener: Final = listener
        self._network: Final = network
        self._tls: Final = tls

    @override
    async def accept(self) -> links.Link:
        stream = await sockets.next_stream(self._listener)
        accepted = stream if self._tls is None else TlsStream(stream, self._tls)
        return self._network.wrap(self._kind, "in", accepted)


class SystemNetwork(links.Network):
    """Links over real sockets; made by `open_system_network`."""

    is_system = True

    def __init__(self, nursery: trio.Nursery, tls: ssl.SSLContext | None, shared: str) -> None:
        self._readers: Final = nursery
        self._tls = tls
        self._shared: Final = shared
        self._numbers: Final = itertools.count(1)
        self._webrtc: Final = WebRtcProcess(nursery)

    @override
    def negotiate(self, terms: links.ChannelTerms) -> AbstractAsyncContextManager[links.ChannelEnd]:
        return self._webrtc.negotiate(terms)

    def name(self, kind: links.Kind, direction: str) -> str:
        """Return a unique name of a link; `direction` is `in` (accepted) or `out` (dialled)."""
        return f"{kind}-{next(self._numbers)}-{direction}"

    @override
    async def dial(
        self,
        kind: links.Kind,
        address: str,
        subprotocol: str | None = links.PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> links.Link:
        with trio.move_on_after(DIAL_TIMEOUT):
            return await self._open(kind, address, subprotocol, tls)
        raise DialError(address, f"no answer within {DIAL_TIMEOUT:g} s")

    async def _open(
        self, kind: links.Kind, address: str, subprotocol: str | None, tls: ssl.SSLContext | None
    ) -> links.Link:
        match kind:
            case links.Kind.WEBSOCKET:
                return await self._dial_websocket(address, subprotocol, tls)
            case links.Kind.TCP | links.Kind.STREAM:
                stream = await sockets.dial_tcp(address)
            case links.Kind.UNIX:
                stream = await sockets.dial_unix(address)
            case links.Kind.WEBRTC:
                raise DialError(address, "a data channel is negotiated, not dialled")
            case _:
                assert_never(kind)
        return self.wrap(
            kind, "out", stream if tls is None else await begin_tls(stream, tls, address)
        )

    def wrap(self, kind: links.Kind, direction: str, stream: AcceptedStream) -> links.Link:
        """Make a link of a connection that needs no handshake; `direction` as for `name`."""
        names = (kind, self.name(kind, direction), links.Upgrade())
        return RawLink(names, stream) if kind is links.Kind.STREAM else StreamLink(names, stream)

    async def _dial_websocket(
        self, address: str, subprotocol: str | None, tls: ssl.SSLContext | None
    ) -> links.Link:
        try:
            url = read_websocket_url(address)
        except ValueError as exc:
            raise DialError(address, str(exc)) from exc
        plain = await sockets.dial_tcp(url.authority)
        stream: DialledStream = plain
        if tls is not None or url.scheme == "wss":
            stream = await self._begin_tls(plain, url, tls)
        dial = WebSocketDial(url, subprotocol, self.name(links.Kind.WEBSOCKET, "out"), stream)
        link: links.Link = await self._readers.start(shake_hands, dial)
        if subprotocol is not None and link.upgrade.subprotocol != subprotocol:
            await trio.aclose_forcefully(link)
            raise DialError(address, f"the server does not speak {subprotocol}")
        return link

    async def _begin_tls(
        self, stream: trio.SocketStream, url: WebSocketUrl, tls: ssl.SSLContext | None
    ) -> DialledStream:
        """Begin TLS on a connection; the server has to prove that it is the expected one.

        Raises:
            DialError: The server does not prove that.
        """
        if tls is None:
            tls = self._tls = self._tls or client_context()
        encrypted = trio.SSLStream(stream, tls, server_hostname=url.host, https_compatible=True)
        try:
            await encrypted.do_handshake()
        except BaseException as exc:
            await trio.aclose_forcefully(stream)
            if isinstance(exc, trio.BrokenResourceError | ssl.SSLError):
                raise dial_error(url.server + url.target, exc) from exc
            raise
        return encrypted

    @override
    def listen(
        self,
        kind: links.Kind,
        where: str,
        paths: links.ServedPaths = links.DEFAULT_PATHS,
        gate: links.Gate = links.EVERYBODY,
    ) -> AbstractAsyncContextManager[links.Listener]:
        match kind:
            case links.Kind.WEBSOCKET:
                return self._listen_websocket(where, paths, gate)
            case links.Kind.TCP | links.Kind.STREAM:
                return self._listen_tcp(kind, where, gate)
            case links.Kind.UNIX:
                return self._listen_unix(where, gate)
            case links.Kind.WEBRTC:
                raise ListenError(where, "a data channel is negotiated, not listened for")
            case _:
                assert_never(kind)

    @asynccontextmanager
    async def _listen_websocket(
        self, where: str, paths: links.ServedPaths, gate: links.Gate
    ) -> AsyncIterator[links.Listener]:
        if where == self._shared:
            socket, address = sockets.bind_shared(where), where
        else:
            socket, address = await sockets.bind_tcp(where)
        async with (
            socket,
            open_websocket_listener(
                socket,
                f"ws://{address}" if gate.tls is None else f"wss://{address}",
                paths,
                gate,
                lambda: self.name(links.Kind.WEBSOCKET, "in"),
            ) as listener,
        ):
            yield listener

    @asynccontextmanager
    async def _listen_tcp(
        self, kind: links.Kind, where: str, gate: links.Gate
    ) -> AsyncIterator[links.Listener]:
        socket, address = await sockets.bind_tcp(where)
        async with socket:
            yield _StreamListener(address, kind, socket, self, gate.tls)

    @asynccontextmanager
    async def _listen_unix(self, path: str, gate: links.Gate) -> AsyncIterator[links.Listener]:
        with sockets.bind_unix(path) as socket:
            await trio.lowlevel.checkpoint()
            yield _StreamListener(path, links.Kind.UNIX, socket, self, gate.tls)


@asynccontextmanager
async def open_system_network(
    tls: ssl.SSLContext | None = None, shared: str = ""
) -> AsyncIterator[SystemNetwork]:
    """Open the network of the operating system while the context is open.

    Args:
        tls: TLS context for `wss:` URLs; None: the authorities of the operating system are
            trusted.
        shared: Address at which other processes listen for WebSockets, too (`reserve_tcp`); empty:
            none.

    Links must be closed before: when the context is left, also if cancelled, dialled WebSockets are
    not read any more, and their peers see a break.
    """
    async with sockets.open_background() as nursery:
        yield SystemNetwork(nursery, tls, shared)
