"""A proxy between a node and the engine, which can hold everything up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio

_CHUNK = 65_536
_ENDS = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class Proxy:
    """Passes on what comes, unless it is cut.

    Attributes:
        port: Where it listens on this machine.
    """

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self._target = target
        self._is_open = trio.Event()
        self.mend()

    def cut(self) -> None:
        """Let nothing pass in either direction; connections stay open, as in a partition."""
        self._is_open = trio.Event()

    def mend(self) -> None:
        """Let everything pass, also what was held up. Idempotent."""
        self._is_open.set()

    async def serve(self, client: trio.SocketStream) -> None:
        """Serve one connection until one of its ends closes it."""
        await self._is_open.wait()
        try:
            server = await trio.open_tcp_stream("127.0.0.1", self._target)
        except OSError:
            # The engine is not there: the client is to notice that, too.
            await trio.aclose_forcefully(client)
            return
        async with server, trio.open_nursery() as nursery:
            nursery.start_soon(self._pass, client, server, nursery.cancel_scope)
            nursery.start_soon(self._pass, server, client, nursery.cancel_scope)

    async def _pass(
        self, one: trio.SocketStream, other: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        with suppress(*_ENDS):
            while data := await one.receive_some(_CHUNK):
                await self._is_open.wait()
                await other.send_all(data)
        await self._is_open.wait()
        scope.cancel()


@asynccontextmanager
async def open_proxy(target: int) -> AsyncIterator[Proxy]:
    """Run a proxy in front of a port of this machine."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy = Proxy(listener.socket.getsockname()[1], target)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, proxy.serve, [listener])
        try:
            yield proxy
        finally:
            nursery.cancel_scope.cancel()
