"""A TCP proxy that harms what passes, by the names of toxiproxy's toxics.

`timeout` (with timeout 0): nothing passes any more, and nobody is notified: no FIN, no reset.
`slicer`: what passes comes in slices, with a pause between them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import attrs
import trio

_PIECE = 65_536


@attrs.frozen
class Slicer:
    """Bytes in a slice, and seconds between two."""

    average_size: int
    delay: float


class ToxicProxy:
    """Stands before a server.

    Attributes:
        port: Where it listens.
        upstream: Toxic of what goes to the server.
    """

    def __init__(self, host: str, server_port: int) -> None:
        self.port = 0
        self.upstream: Slicer | None = None
        self._server = (host, server_port)
        self._is_timed_out = False

    def timeout(self) -> None:
        """Stop all data, both ways, for good; the connections stay open."""
        self._is_timed_out = True

    async def _serve(self, client: trio.SocketStream) -> None:
        try:
            server = await trio.open_tcp_stream(*self._server)
        except OSError:
            return
        async with server, client, trio.open_nursery() as nursery:
            nursery.start_soon(self._pass_on, client, server, lambda: self.upstream)
            nursery.start_soon(self._pass_on, server, client, lambda: None)

    async def _pass_on(self, one, other, slicer) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in one:
                await self._harm(bytes(data), other, slicer())
            await self._hold()
            await other.send_eof()

    async def _harm(self, data, other, slicer) -> None:
        size = slicer.average_size if slicer else _PIECE
        for start in range(0, len(data), size):
            await self._hold()
            await other.send_all(data[start : start + size])
            if slicer:
                await trio.sleep(slicer.delay)

    async def _hold(self) -> None:
        if self._is_timed_out:
            await trio.sleep_forever()


@asynccontextmanager
async def open_proxy(url: str) -> AsyncIterator[ToxicProxy]:
    """Open a proxy before the server of a URL."""
    host, port = url.removeprefix("ws://").partition("/")[0].split(":")
    proxy = ToxicProxy(host, int(port))
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy.port = listener.socket.getsockname()[1]
        async with listener:
            nursery.start_soon(trio.serve_listeners, proxy._serve, [listener])
            yield proxy
            nursery.cancel_scope.cancel()
