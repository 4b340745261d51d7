"""The network of the operating system: real sockets."""

import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, assert_never, final

import trio
from typing_extensions import override

from specs.limits.protocol import DIAL_TIMEOUT
from transports.background import open_background
from transports.errors import DialError
from transports.gate import EVERYBODY, Gate
from transports.link import (
    DEFAULT_PATHS,
    PROTOFLY_V1,
    Kind,
    Link,
    Listener,
    Network,
    ServedPaths,
    Upgrade,
)
from transports.socket_link import RawLink, StreamLink
from transports.sockets import bind_tcp, bind_unix, dial_tcp, dial_unix, next_stream
from transports.urls import read_websocket_url
from transports.websocket.client import WebSocketDial, shake_hands
from transports.websocket.server import ListenerTerms, open_websocket_listener

__all__ = ["open_system_network"]


@final
class _StreamListener(Listener):
    """Accepts length-prefixed or raw links, which have no handshake."""

    __slots__ = ("_kind", "_listener", "_network")

    def __init__(
        self, address: str, kind: Kind, listener: trio.SocketListener, network: "SystemNetwork"
    ) -> None:
        super().__init__(address)
        self._kind: Final = kind
        self._listener: Final = listener
        self._network: Final = network

    @override
    async def accept(self) -> Link:
        stream = await next_stream(self._listener)
        return self._network.wrap(self._kind, "in", stream)


@final
class SystemNetwork(Network):
    """Links over real sockets; made by `open_system_network`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._readers: Final = nursery
        self._numbers: Final = itertools.count(1)

    def name(self, kind: Kind, direction: str) -> str:
        """Return a unique name of a link; `direction` is `in` (accepted) or `out` (dialled)."""
        return f"{kind}-{next(self._numbers)}-{direction}"

    @override
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        with trio.move_on_after(DIAL_TIMEOUT):
            return await self._open(kind, address, subprotocol)
        raise DialError(address, f"no answer within {DIAL_TIMEOUT:g} s")

    async def _open(self, kind: Kind, address: str, subprotocol: str | None) -> Link:
        match kind:
            case Kind.WEBSOCKET:
                return await self._dial_websocket(address, subprotocol)
            case Kind.TCP | Kind.STREAM:
                return self.wrap(kind, "out", await dial_tcp(address))
            case Kind.UNIX:
                return self.wrap(kind, "out", await dial_unix(address))
            case _:
                assert_never(kind)

    def wrap(self, kind: Kind, direction: str, stream: trio.SocketStream) -> Link:
        """Make a link of a connection that needs no handshake; `direction` as of `name`."""
        names = (kind, self.name(kind, direction), Upgrade())
        return RawLink(names, stream) if kind is Kind.STREAM else StreamLink(names, stream)

    async def _dial_websocket(self, address: str, subprotocol: str | None) -> Link:
        try:
            url = read_websocket_url(address)
        except ValueError as exc:
            raise DialError(address, str(exc)) from exc
        stream = await dial_tcp(url.authority)
        dial = WebSocketDial(url, subprotocol, self.name(Kind.WEBSOCKET, "out"), stream)
        link: Link = await self._readers.start(shake_hands, dial)
        if subprotocol is not None and link.upgrade.subprotocol != subprotocol:
            await trio.aclose_forcefully(link)
            raise DialError(address, f"the server does not speak {subprotocol}")
        return link

    @override
    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        match kind:
            case Kind.WEBSOCKET:
                return self._listen_websocket(where, paths, gate)
            case Kind.TCP | Kind.STREAM:
                return self._listen_tcp(kind, where)
            case Kind.UNIX:
                return self._listen_unix(where)
            case _:
                assert_never(kind)

    @asynccontextmanager
    async def _listen_websocket(
        self, where: str, paths: ServedPaths, gate: Gate
    ) -> AsyncIterator[Listener]:
        socket, address = await bind_tcp(where)
        async with (
            socket,
            open_websocket_listener(
                socket,
                f"ws://{address}",
                ListenerTerms(paths, gate),
                lambda: self.name(Kind.WEBSOCKET, "in"),
            ) as listener,
        ):
            yield listener

    @asynccontextmanager
    async def _listen_tcp(self, kind: Kind, where: str) -> AsyncIterator[Listener]:
        socket, address = await bind_tcp(where)
        async with socket:
            yield _StreamListener(address, kind, socket, self)

    @asynccontextmanager
    async def _listen_unix(self, path: str) -> AsyncIterator[Listener]:
        with bind_unix(path) as socket:
            await trio.lowlevel.checkpoint()
            yield _StreamListener(path, Kind.UNIX, socket, self)


@asynccontextmanager
async def open_system_network() -> AsyncIterator[SystemNetwork]:
    """Open the network of the operating system while the context is open.

    Links must be closed before: when the context is left, also if cancelled, dialled WebSockets are
    not read any more, and their peers see a break.
    """
    async with open_background() as nursery:
        yield SystemNetwork(nursery)
