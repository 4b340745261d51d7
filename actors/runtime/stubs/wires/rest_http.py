"""HTTP for a stub, over the network that it is given.

A stub reaches the world by its `Network` alone, whatever it speaks. Its requests go over links
of kind `STREAM`, so a network in memory carries them, too, with any clock and faults. This
module also reads server-sent events, as far as a node uses them.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Final, final
from urllib.parse import urlsplit

import attrs
import httpcore
import trio
from typing_extensions import override

from actors.kit.http_pool import HttpBody
from specs.errors import ProtoflyError
from specs.limits.protocol import GOODBYE_TIMEOUT, HTTP_REQUEST_TIMEOUT, MAX_FRAME_BYTES
from transports.errors import DialError, Farewell, LinkBrokenError, LinkError
from transports.link import Kind, Link
from transports.network import Network
from transports.urls import join_host_port

__all__ = ["EventReader", "RestAnswer", "RestDialError", "RestError", "RestHttp", "RestStream"]

_CONNECTIONS: Final = 4
"""One to send, one to receive, and as many that are being closed."""

_PORT: Final = 80

_KEEP_ALIVE: Final = HTTP_REQUEST_TIMEOUT / 2
"""Seconds for which an idle connection is kept; the node closes it only later."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class RestError(ProtoflyError):
    """A request got no usable answer; another one may.

    Attributes:
        reason: Why, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@final
class RestDialError(RestError):
    """The node cannot be reached."""


@final
@attrs.frozen
class RestAnswer:
    """An answer of the node.

    Attributes:
        status: HTTP status.
        body: The whole body.
    """

    status: int
    body: bytes


@final
class RestStream:
    """An answer that is read in parts; its requester closes it.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response
        self._parts = response.aiter_stream().__aiter__()
        self.status: Final = response.status

    async def next(self) -> bytes:
        """Return the next part of the body; empty: there is no more.

        If cancelled, the part is lost: the stream has to be closed.

        Raises:
            RestError: The connection broke.
        """
        with _errors():
            return await anext(self._parts, b"")

    async def aclose(self) -> None:
        """Close the answer; a body that was read to its end leaves its connection for reuse.

        If cancelled, the connection is closed.
        """
        with suppress(RestError), _errors():
            # Generators that are left half-way end in order only from within.
            with trio.CancelScope() as scope:
                scope.cancel()
                while await anext(self._parts, b""):
                    pass
            await self._response.aclose()


@final
class RestHttp:
    """Sends requests to one node.

    Args:
        network: Carries the requests.
        url: URL of the node, such as http://127.0.0.1:8080/rest.
    """

    def __init__(self, network: Network, url: str) -> None:
        parts = urlsplit(url)
        place = join_host_port(parts.hostname or "", parts.port or _PORT)
        self._url = url.rstrip("/")
        self._headers = {"host": place}
        self._pool = httpcore.AsyncConnectionPool(
            max_connections=_CONNECTIONS,
            keepalive_expiry=_KEEP_ALIVE,
            network_backend=_OverNetwork(network, place),
        )

    def bear(self, token: str) -> None:
        """Send this bearer token with every request from now on."""
        self._headers["authorization"] = f"Bearer {token}"

    async def ask(self, method: str, path: str, body: bytes = b"") -> RestAnswer:
        """Send a request and return the whole answer, whatever its status.

        Args:
            method: HTTP method.
            path: Path below the URL of the node, with query.
            body: Body of the request.

        If cancelled, its connection is closed; the node may have handled the request.

        Raises:
            RestDialError: The node cannot be reached.
            RestError: No answer came, or it is larger than `MAX_FRAME_BYTES`.
        """
        stream = await self.open(method, path, body)
        try:
            parts = bytearray()
            while part := await stream.next():
                parts += part
                if len(parts) > MAX_FRAME_BYTES:
                    raise RestError("an answer is larger than any frame")
            return RestAnswer(stream.status, bytes(parts))
        finally:
            with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                await stream.aclose()

    async def open(
        self, method: str, path: str, body: bytes = b"", more: Mapping[str, str] = _NOTHING
    ) -> RestStream:
        """Send a request and return the answer before its body is read; the caller closes it.

        Args:
            method: HTTP method.
            path: Path below the URL of the node, with query.
            body: Body of the request.
            more: Further headers.

        If cancelled, its connection is closed; the node may have handled the request.

        Raises:
            RestDialError: The node cannot be reached.
            RestError: No answer came.
        """
        headers = {**self._headers, **more, "content-length": str(len(body))}
        request = httpcore.Request(
            method, self._url + path, headers=list(headers.items()), content=HttpBody(body)
        )
        with _errors():
            return RestStream(await self._pool.handle_async_request(request))

    async def aclose(self) -> None:
        """Close every connection, within `GOODBYE_TIMEOUT` seconds; also if cancelled."""
        with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await self._pool.aclose()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except httpcore.ConnectError as exc:
        raise RestDialError(str(exc)) from exc
    except (httpcore.NetworkError, httpcore.ProtocolError) as exc:
        raise RestError(str(exc) or "the connection broke") from exc


@final
class _OverNetwork(httpcore.AsyncNetworkBackend):
    """Dials the node, whatever host it is asked for."""

    def __init__(self, network: Network, place: str) -> None:
        self._network = network
        self._place = place

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            return _Stream(await self._network.dial(Kind.STREAM, self._place))
        except DialError as exc:
            raise httpcore.ConnectError(str(exc)) from exc


@final
class _Stream(httpcore.AsyncNetworkStream):
    """A link of bytes as a network stream of httpcore."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._unread = b""

    @override
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = self._unread or await self._link.receive()
        except LinkBrokenError as exc:
            if exc.farewell is Farewell.DONE:
                return b""
            raise httpcore.ReadError(str(exc)) from exc
        except LinkError as exc:
            raise httpcore.ReadError(str(exc)) from exc
        self._unread = data[max_bytes:]
        return data[:max_bytes]

    @override
    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            if buffer:
                await self._link.send(buffer)
        except LinkError as exc:
            raise httpcore.WriteError(str(exc)) from exc

    @override
    async def aclose(self) -> None:
        await self._link.aclose()

    @override
    def get_extra_info(self, info: str) -> None:
        """Tell nothing: that an idle connection was hung up is seen when it is used."""


@final
class EventReader:
    """Reads the server-sent events of one stream from its parts.

    Attributes:
        last: Id of the last complete event that had one; None: none had.
    """

    def __init__(self) -> None:
        self.last: int | None = None
        self._unread = b""

    def take(self, part: bytes) -> list[bytes]:
        """Take a part, and return the data of the events that it completes, in order.

        Raises:
            RestError: An event is larger than `MAX_FRAME_BYTES`.
        """
        *events, self._unread = (self._unread + part).split(b"\n\n")
        if len(self._unread) > MAX_FRAME_BYTES:
            raise RestError("an event is larger than any frame")
        said = [self._event(event) for event in events]
        return [one for one in said if one is not None]

    def _event(self, event: bytes) -> bytes | None:
        data: list[bytes] = []
        for line in event.splitlines():
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"id" and value.isdigit():
                self.last = int(value)
        return b"\n".join(data) if data else None
