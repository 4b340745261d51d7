"""Dialled WebSocket links, by the library trio-websocket."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs
import h11
import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    HandshakeError,
    WebSocketConnection,
    wrap_client_stream,
)
from typing_extensions import override
from wsproto.utilities import ProtocolError

from specs.limits.protocol import GOODBYE_TIMEOUT, MAX_FRAME_BYTES, READ_AHEAD, READ_BYTES
from transports import errors
from transports.link import Kind, Link, Turn, Upgrade
from transports.urls import WebSocketUrl, read_target

DialledStream: TypeAlias = trio.SocketStream | trio.SSLStream[trio.SocketStream]
"""Type of a dialled connection: plain, or with TLS."""

_ABNORMAL: Final = 1006
"""Close code that stands for a connection that ended without one (RFC 6455)."""

_HARD_LIMIT: Final = 2 * MAX_FRAME_BYTES
"""Bytes above which the library closes the connection itself; below that, the layer above can
still notify the peer of its error.
"""


_LIBRARY_ERRORS: Final = (
    ConnectionClosed,
    HandshakeError,
    ProtocolError,
    h11.ProtocolError,
    trio.BrokenResourceError,
)
"""Errors that the library raises when a server violates the protocol or disconnects."""


class _WebSocketClientLink(Link):
    """Link over a dialled WebSocket; a task of the library answers pings and close frames."""

    __slots__ = (
        "_connection",
        "_is_closed",
        "_is_over_limit",
        "_is_torn",
        "_receiving",
        "_sending",
        "_stream",
    )

    def __init__(
        self,
        name: str,
        upgrade: Upgrade,
        stream: DialledStream,
        connection: WebSocketConnection,
    ) -> None:
        super().__init__(Kind.WEBSOCKET, name, upgrade)
        self._stream: Final = stream
        self._connection: Final = connection
        self._sending: Final = Turn("sending")
        self._receiving: Final = Turn("receiving")
        self._is_closed = False
        self._is_over_limit = False
        self._is_torn = False

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            if self._is_closed or self._is_torn:
                raise self._end_error()
            try:
                for frame in frames:
                    await self._connection.send_message(frame.decode())
            except (ConnectionClosed, ProtocolError) as exc:
                raise self._end_error() from exc
            except trio.Cancelled:
                self._is_torn = True  # a frame may have been sent in part
                raise

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            if self._is_over_limit:
                raise errors.FrameTooLargeError(self.name)
            try:
                message = await self._connection.get_message()
            except ConnectionClosed as exc:
                raise self._end_error() from exc
            frame = message.encode() if isinstance(message, str) else bytes(message)
            if len(frame) > MAX_FRAME_BYTES:
                self._is_over_limit = True
                raise errors.FrameTooLargeError(self.name)
            return frame

    @property
    @override
    def peer_certificate(self) -> bytes | None:
        stream = self._stream
        if not isinstance(stream, trio.SSLStream):
            return None
        certificate: bytes | None = stream.getpeercert(binary_form=True)
        return certificate

    def _end_error(self) -> errors.LinkBrokenError | errors.LinkClosedError:
        if self._is_closed:
            return errors.LinkClosedError(self.name)
        reason = self._connection.closed
        if self._is_torn and reason is None:
            return errors.LinkBrokenError(self.name, "a cancelled send left half a frame")
        if reason is None or reason.code == _ABNORMAL:
            return errors.LinkBrokenError(self.name, "the connection ended without a farewell")
        return errors.LinkBrokenError(
            self.name, "the other end has left", errors.CloseReason.read(reason.code)
        )

    @override
    async def aclose(self, close_reason: errors.CloseReason = errors.CloseReason.DONE) -> None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        try:
            if not self._is_torn:
                with trio.move_on_after(GOODBYE_TIMEOUT):
                    await self._connection.aclose(close_reason.value, close_reason.reason)
        finally:
            await trio.aclose_forcefully(self._stream)


@attrs.frozen
class WebSocketDial:
    """Arguments for opening one WebSocket.

    Attributes:
        subprotocol: Subprotocol to ask for; None: for peers that expect none.
    """

    url: WebSocketUrl
    subprotocol: str | None
    name: str
    stream: DialledStream


async def shake_hands(
    dial: WebSocketDial, *, task_status: "trio.TaskStatus[Link]" = trio.TASK_STATUS_IGNORED
) -> None:
    """Open a WebSocket and run its reader until the link ends.

    If cancelled, the connection is closed by force; the user of the link sees a break.

    Raises:
        DialError: The server refuses, or is no WebSocket server; only before the link exists.
    """
    links: list[Link] = []
    refusal = "the server hung up during the handshake"
    try:
        async with trio.open_nursery() as nursery:
            await _host(dial, nursery, links, task_status)
            nursery.cancel_scope.cancel()
    except* ConnectionRejected as group:
        refusal = _refusal(group)
    except* _LIBRARY_ERRORS:
        pass  # the link raises it in its next call
    finally:
        # Without its reader the connection is of no use, also to a dialler that was cancelled.
        await trio.aclose_forcefully(dial.stream)
    if not links:
        raise errors.DialError(dial.url.server + dial.url.target, refusal)


async def _host(
    dial: WebSocketDial,
    outer: trio.Nursery,
    links: list[Link],
    task_status: "trio.TaskStatus[Link]",
) -> None:
    """Open the WebSocket, and run the library's reading task until the connection ends."""
    is_reading = trio.Event()

    async def open_link(readers: trio.Nursery) -> None:
        is_reading.set()  # the reader is started before this is visible
        connection = await wrap_client_stream(
            readers,
            dial.stream,
            dial.url.authority,
            dial.url.target,
            subprotocols=None if dial.subprotocol is None else [dial.subprotocol],
            message_queue_size=READ_AHEAD,
            max_message_size=_HARD_LIMIT,
            receive_buffer_size=READ_BYTES,
        )
        upgrade = read_target(dial.url.target, connection.subprotocol)
        links.append(_WebSocketClientLink(dial.name, upgrade, dial.stream, connection))
        task_status.started(links[0])

    async with trio.open_nursery() as readers:
        outer.start_soon(open_link, readers)
        await is_reading.wait()


def _refusal(group: BaseExceptionGroup[ConnectionRejected]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    code = error.status_code if isinstance(error, ConnectionRejected) else 0
    return f"refused with HTTP {code}"
