"""Where WebSockets are accepted: handshakes, each in its own task and bounded."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final, final

import attrs
import trio
from typing_extensions import override
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from specs.limits import HANDSHAKE_TIMEOUT, LINK_BACKLOG, PENDING_HANDSHAKES, READ_BYTES
from transports.background import open_background
from transports.errors import LinkClosedError
from transports.link import Link, Listener, Upgrade
from transports.network import Doors
from transports.sockets import next_stream
from transports.urls import read_target
from transports.websocket_server import WebSocketProtocol, WebSocketServerLink

__all__ = ["open_websocket_listener"]


@final
class _WebSocketListener(Listener):
    """A bounded queue of links whose handshake is done."""

    __slots__ = ("_ready",)

    def __init__(self, address: str, ready: "trio.MemoryReceiveChannel[Link]") -> None:
        super().__init__(address)
        self._ready: Final = ready

    @override
    async def accept(self) -> Link:
        try:
            return await self._ready.receive()
        except (trio.ClosedResourceError, trio.EndOfChannel) as exc:
            raise LinkClosedError(self.address) from exc


@attrs.frozen
class _Porter:
    """Lets in who knocks in the right way."""

    doors: Doors
    name: Callable[[], str]
    ready: "trio.MemorySendChannel[Link]"

    async def serve(
        self,
        listener: trio.SocketListener,
        nursery: trio.Nursery,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Greet whoever connects; above the limit nobody."""
        task_status.started()
        while True:
            stream = await next_stream(listener)
            if len(nursery.child_tasks) > PENDING_HANDSHAKES:
                await trio.aclose_forcefully(stream)
            else:
                nursery.start_soon(self._greet, stream)

    async def _greet(self, stream: trio.SocketStream) -> None:
        """Turn one connection into a link, or close it."""
        is_handed_over = False
        try:
            with trio.move_on_after(HANDSHAKE_TIMEOUT), suppress(trio.BrokenResourceError):
                link = await self._handshake(stream)
                if link is not None:
                    await self.ready.send(link)
                    is_handed_over = True
        finally:
            if not is_handed_over:
                await trio.aclose_forcefully(stream)

    async def _handshake(self, stream: trio.SocketStream) -> Link | None:
        protocol = WebSocketProtocol()
        request = await _read_request(stream, protocol)
        if request is None:
            unwritten = protocol.data_to_send() or []
            garbage = protocol.reject(HTTPStatus.BAD_REQUEST, "This is no HTTP request.\n")
            await _hang_up(stream, b"".join(unwritten) or garbage.serialize())
            return None
        upgrade, response = self._judge(protocol, request)
        protocol.send_response(response)
        answer = b"".join(protocol.data_to_send())
        if upgrade is None or response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            await _hang_up(stream, answer)
            return None
        await stream.send_all(answer)
        return WebSocketServerLink(self.name(), upgrade, stream, protocol)

    def _judge(
        self, protocol: WebSocketProtocol, request: Request
    ) -> tuple[Upgrade | None, Response]:
        """Say what a peer asked for, if it may come in, and what to answer."""
        try:
            upgrade = read_target(request.path, None)
        except ValueError:
            return None, protocol.reject(HTTPStatus.BAD_REQUEST, "The query is too long.\n")
        if upgrade.path not in self.doors:
            return None, protocol.reject(HTTPStatus.NOT_FOUND, "Nothing is served here.\n")
        wanted = self.doors[upgrade.path]
        protocol.available_subprotocols = None if wanted is None else [Subprotocol(wanted)]
        return attrs.evolve(upgrade, subprotocol=wanted), protocol.accept(request)


async def _read_request(stream: trio.SocketStream, protocol: WebSocketProtocol) -> Request | None:
    """Read until the request is there; what came behind it stays in the protocol."""
    while not protocol.events:
        data = await stream.receive_some(READ_BYTES)
        if not data:
            return None
        protocol.receive_data(bytes(data))
        if protocol.handshake_exc is not None:
            return None
    first = protocol.events.pop(0)
    return first if isinstance(first, Request) else None


async def _hang_up(stream: trio.SocketStream, last_words: bytes) -> None:
    """Write an answer and wait until the peer has read it and leaves."""
    await stream.send_all(last_words)
    await stream.send_eof()
    while await stream.receive_some(READ_BYTES):
        pass


@asynccontextmanager
async def open_websocket_listener(
    listener: trio.SocketListener, address: str, doors: Doors, name: Callable[[], str]
) -> AsyncIterator[Listener]:
    """Accept WebSockets on a listening socket while the context is open.

    Args:
        listener: The listening socket; whoever made it closes it.
        address: What a dialler dials.
        doors: Which paths and subprotocols are served.
        name: Makes a name for each link.
    """
    send, receive = trio.open_memory_channel[Link](LINK_BACKLOG)
    porter = _Porter(doors, name, send)
    try:
        async with open_background() as nursery:
            await nursery.start(porter.serve, listener, nursery)
            yield _WebSocketListener(address, receive)
    finally:
        send.close()
        with suppress(trio.EndOfChannel):
            while True:
                await trio.aclose_forcefully(receive.receive_nowait())
        receive.close()
