"""A TCP proxy that can hold still, shut, and lead elsewhere, whatever is spoken over it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import trio

_PIECE = 65_536


class PausingProxy:
    """Stands before a server.

    Attributes:
        server: A URL of what it leads to; may change.
        held: Set once somebody has come while it holds still.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.held = trio.Event()
        self.port = 0
        self._is_shut = False
        self._goes_on = trio.Event()
        self._goes_on.set()
        self._passing: set[trio.CancelScope] = set()

    def by_proxy(self, url: str) -> str:
        """Return a URL of the server as one that leads by the proxy."""
        return urlsplit(url)._replace(netloc=f"127.0.0.1:{self.port}").geturl()

    def pause(self) -> None:
        """Take whoever comes, and pass nothing on for them yet."""
        self.held, self._goes_on = trio.Event(), trio.Event()

    def shut(self) -> None:
        """Break all connections, and whatever comes."""
        self._is_shut = True
        for scope in self._passing:
            scope.cancel()

    def open(self) -> None:
        """Pass everything on from now on."""
        self._is_shut = False
        self._goes_on.set()

    async def serve(self, client: trio.SocketStream) -> None:
        with trio.CancelScope() as scope:
            self._passing.add(scope)
            async with client:
                if not self._goes_on.is_set():
                    self.held.set()
                await self._goes_on.wait()
                if not self._is_shut:
                    await self._join(client)
        self._passing.discard(scope)

    async def _join(self, client: trio.SocketStream) -> None:
        where = urlsplit(self.server)
        with suppress(OSError):
            server = await trio.open_tcp_stream(where.hostname or "", where.port or 0)
            async with server, trio.open_nursery() as nursery:
                nursery.start_soon(_pass_on, client, server, nursery.cancel_scope)
                nursery.start_soon(_pass_on, server, client, nursery.cancel_scope)


async def _pass_on(
    one: trio.SocketStream, other: trio.SocketStream, scope: trio.CancelScope
) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await one.receive_some(_PIECE):
            await other.send_all(data)
    scope.cancel()


@asynccontextmanager
async def open_pausing_proxy(server: str) -> AsyncIterator[PausingProxy]:
    """Open a proxy before the server of a URL."""
    proxy = PausingProxy(server)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy.port = listener.socket.getsockname()[1]
        async with listener:
            nursery.start_soon(trio.serve_listeners, proxy.serve, [listener])
            yield proxy
            nursery.cancel_scope.cancel()
