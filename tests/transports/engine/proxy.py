"""A proxy of TCP between a handle and its server, which cuts and holds what goes through it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from transports.sockets import open_background


class Proxy:
    """Carries bytes, until told otherwise."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self._server_port = server_port
        self._left: int | None = None
        self._may_go = trio.Event()
        self._may_go.set()
        self._cuttable: trio.SocketStream | None = None
        self.cuts = 0

    def cut_after(self, count: int) -> None:
        """Cut the connection through which so many bytes more have come from the server."""
        self._left = count

    def hold(self) -> None:
        """Carry nothing more, as a network that drops packets."""
        self._may_go = trio.Event()

    def go_on(self) -> None:
        """Carry what was held, and all that follows."""
        self._may_go.set()

    async def serve(self, ours: trio.SocketStream) -> None:
        """Carry one connection."""
        try:
            theirs = await trio.open_tcp_stream("127.0.0.1", self._server_port)
        except OSError:
            await ours.aclose()
            return
        async with ours, theirs, trio.open_nursery() as nursery:
            nursery.start_soon(self._carry, theirs, ours, nursery.cancel_scope)
            nursery.start_soon(self._carry, ours, theirs, nursery.cancel_scope)
            self._cuttable = ours

    async def _carry(
        self, source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        try:
            async for data in source:
                await self._may_go.wait()
                if sink is self._cuttable and self._left is not None:
                    self._left -= len(data)
                    if self._left < 0:
                        await sink.send_all(data[: self._left])
                        self._left = None
                        self.cuts += 1
                        break
                await sink.send_all(data)
        except trio.BrokenResourceError:
            pass
        scope.cancel()


@asynccontextmanager
async def open_proxy(server_port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(server_port)
    async with open_background() as nursery:
        listeners = await nursery.start(trio.serve_tcp, proxy.serve, 0)
        proxy.port = listeners[0].socket.getsockname()[1]
        yield proxy
