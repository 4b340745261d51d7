"""An HTTP client for one server, that its operator has named; it reaches nothing else.

Every request is bounded: by the caller's deadline (`with trio.fail_after(...)`), by the
size of the answer, by the number of connections. Redirects are not followed, and no
connection is dialled but to the server itself, for any content of an answer (S15).
"""

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Final, TypeAlias, final
from urllib.parse import quote, urlencode, urlsplit

import attrs
import httpcore
import orjson
import trio
from typing_extensions import override

from actors.kit.log import get_logger
from specs.addresses.address import host_in, is_public_address
from specs.errors import PlaceError, ProtoflyError
from specs.jsonvalue import Json
from specs.limits.node import BACKEND_ANSWER_BYTES, BACKEND_CONNECTIONS
from specs.limits.protocol import DIAL_TIMEOUT, GOODBYE_TIMEOUT
from transports.link import Network
from transports.tls import tls_reason
from transports.urls import is_plain

# URLs without TLS to other machines, which are dialled only on demand (SEC-13).

_log = get_logger("actors.kit")


@final
class PlainUrlError(ProtoflyError, ValueError, public=True):
    """A URL leads to another machine without TLS.

    Attributes:
        url: The URL.
        fault: What is wrong, as the beginning of a sentence that ends with advice.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.fault = f"{url} is dialled without TLS, so others can read and alter messages"
        super().__init__(f"{self.fault}; dial wss:, or set insecure=True")


def check_plain(urls: Iterable[str], network: Network | None = None, *, insecure: bool) -> None:
    """Refuse URLs without TLS that lead to other machines.

    Args:
        urls: The URLs that will be dialled.
        network: What dials; None: the network of the operating system. Others are not judged, as
            their hosts are no machines.
        insecure: Whether connections without TLS are permitted; then only a warning is logged.

    Raises:
        PlainUrlError: A URL without TLS leads to another machine, and this is not permitted.
    """
    if network is not None and not network.is_system:
        return
    for url in filter(is_plain, urls):
        if not insecure:
            raise PlainUrlError(url)
        _log.warning("a node is dialled without TLS", url=url)


# The choice of the address of a host, made when it is dialled (S15).


class PrivatePlaceError(PlaceError):
    """A host must not be dialled, as it is in a private network or its name cannot be resolved."""

    summary = "{} is not dialled"


Egress: TypeAlias = Callable[[str, int], Awaitable[str]]
"""Returns the address to dial for a host and port; raises PrivatePlaceError to refuse dialling."""


async def dial_anywhere(host: str, port: int) -> str:
    """Return the host unchanged, without a check, since the operator has configured it."""
    del port
    await trio.lowlevel.checkpoint()
    return host


async def dial_public(host: str, port: int) -> str:
    """Return a public IP address of a host; refuse a host that also has a private address."""
    try:
        resolved = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise PrivatePlaceError(host, "its name cannot be looked up") from exc
    addresses = [str(where[0]).partition("%")[0] for *_, where in resolved]
    if not addresses or not all(map(is_public_address, addresses)):
        raise PrivatePlaceError(host, "it is in a private network")
    return addresses[0]


_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = range(300, 400)
_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

KEEP_ALIVE: Final = 30.0
"""Seconds for which an idle connection is kept open for the next request."""

Dial: TypeAlias = Callable[[str, int], Awaitable[httpcore.AsyncNetworkStream]]
"""Opens a stream of bytes to a host and port; takes at most `DIAL_TIMEOUT`."""


@final
class HttpUrlError(PlaceError, public=True):
    """A text is not the URL of an HTTP server."""

    summary = "{!r} names no HTTP server"


class HttpError(PlaceError, public=True):
    """A request to an HTTP server failed, or the server's answer cannot be used."""

    summary = "the server {} cannot be asked"


class HttpDialError(HttpError):
    """No connection to the HTTP server can be opened."""


@final
@attrs.frozen
class ServerUrl:
    """Parsed URL of an HTTP server, as the operator configured it.

    Attributes:
        path: Common prefix of all request paths; empty, or beginning with a slash.
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    @classmethod
    def read(cls, text: str) -> "ServerUrl":
        """Read `http://host[:port][/path]`, or the same with https.

        Raises:
            HttpUrlError: The text is no such URL.
        """
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as exc:
            raise HttpUrlError(text, str(exc)) from exc
        host = host_in(text)
        if parts.scheme not in _PORTS or host is None:
            raise HttpUrlError(text, "it is not of the form http://host:port or https://host")
        if parts.username is not None or parts.query or parts.fragment:
            raise HttpUrlError(text, "it has a user name, a query or a fragment")
        return cls(
            parts.scheme,
            host,
            _PORTS[parts.scheme] if port is None else port,
            parts.path.rstrip("/"),
        )

    @property
    def text(self) -> str:
        """The URL with host, port and path in the usual form."""
        return f"{self.scheme}://{self._shown_host}:{self.port}{self.path}"

    @property
    def authority(self) -> str:
        """Host and port as the header `Host` names them."""
        is_usual = self.port == _PORTS[self.scheme]
        return self._shown_host if is_usual else f"{self._shown_host}:{self.port}"

    @property
    def _shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def path_of(*segments: str, query: Mapping[str, str] | None = None) -> str:
    """Return a URL path made of segments; each segment is percent-encoded, including slashes."""
    path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
    return f"{path}?{urlencode(query)}" if query else path


@attrs.frozen
class HttpAnswer:
    """The response of a server."""

    status: int
    body: bytes
    server: str

    def json(self) -> Json:
        """Parse the body of the answer as JSON.

        Raises:
            HttpError: The body is no JSON.
        """
        try:
            read: Json = orjson.loads(self.body)
        except orjson.JSONDecodeError as exc:
            raise HttpError(self.server, "its answer is no JSON") from exc
        return read


class HttpStream:
    """Answer of a server that is read part by part; the task that sent the request closes it."""

    def __init__(self, response: httpcore.Response, server: str) -> None:
        self._response = response
        self.server: Final = server
        self._parts = response.aiter_stream().__aiter__()
        self.status: Final = response.status

    async def next(self) -> bytes:
        """Return the next part of the body; empty: the body has ended.

        Raises:
            HttpError: The connection broke.
        """
        with _errors(self.server):
            return await anext(self._parts, b"")

    async def read(self, limit: int) -> bytes:
        """Return the rest of the body.

        Raises:
            HttpError: The connection broke, or there are more than `limit` bytes.
        """
        content = bytearray()
        while part := await self.next():
            content += part
            if len(content) > limit:
                raise HttpError(self.server, f"its answer is larger than {limit} bytes")
        return bytes(content)

    async def aclose(self) -> None:
        """Close the answer; its connection can be used again if the body was read completely."""
        with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await self._close()

    async def _close(self) -> None:
        with suppress(HttpError), _errors(self.server):
            # Generators that are left half-way end in order only from within.
            with trio.CancelScope() as scope:
                scope.cancel()
                while await anext(self._parts, b""):
                    pass
            await self._response.aclose()


def sockets(egress: Egress) -> Dial:
    """Return a function that opens TCP connections to the addresses which a check permits."""
    network = httpcore.TrioBackend()

    async def dial(host: str, port: int) -> httpcore.AsyncNetworkStream:
        return await network.connect_tcp(await egress(host, port), port, DIAL_TIMEOUT)

    return dial


class HttpClient:
    """HTTP client for one server, with bounded connections and answers.

    Args:
        limit: Maximum number of bytes of an answer.
        keep_alive: Seconds for which an idle connection is kept.
        tls: TLS settings for https; None: the authorities of the operating system are trusted.
    """

    def __init__(
        self,
        server: ServerUrl,
        limit: int = BACKEND_ANSWER_BYTES,
        dial: Dial | None = None,
        keep_alive: float = KEEP_ALIVE,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.server: Final = server
        self._limit = limit
        self._headers = {"host": server.authority, "accept": _JSON}
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=(tls or ssl.create_default_context()) if server.scheme == "https" else None,
            max_connections=BACKEND_CONNECTIONS,
            max_keepalive_connections=BACKEND_CONNECTIONS,
            keepalive_expiry=keep_alive,
            network_backend=_OneServer(server, dial or sockets(dial_anywhere)),
        )

    def bear(self, token: str) -> None:
        """Send this bearer token with every request from now on."""
        self._headers["authorization"] = f"Bearer {token}"

    async def ask(self, method: str, path: str, body: "Json | bytes" = None) -> HttpAnswer:
        """Send a request and return the answer, for any status.

        The body is sent as JSON, or as it is if it is bytes; None: there is none.

        If cancelled, its connection is closed; the server may have done what was asked.

        Args:
            method: HTTP method.
            path: The path.
            body: Body of the request.

        Raises:
            HttpDialError: The server takes no connection.
            HttpError: No answer came, it is too large, or it points elsewhere.
        """
        return await self.rest(await self.open(method, path, body))

    async def rest(self, stream: HttpStream) -> HttpAnswer:
        """Read the rest of an answer, close it, and return the complete answer.

        If cancelled, its connection is closed.

        Raises:
            HttpError: The connection broke, the answer is too large, or it points elsewhere.
        """
        return await self._read(stream, self._limit)

    async def read(self, path: str, limit: int) -> HttpAnswer:
        """Request a path by GET, and return the answer if it is not larger than a limit.

        If cancelled, its connection is closed.

        Args:
            path: The path.
            limit: Maximum number of bytes.

        Raises:
            HttpError: As of `ask`.
        """
        return await self._read(await self.open("GET", path), limit)

    async def open(
        self,
        method: str,
        path: str,
        body: "Json | bytes" = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> HttpStream:
        """Send a request and return the answer before it is read; the caller closes it.

        Args:
            method: HTTP method.
            path: The path.
            body: Body of the request.
            headers: Additional headers.

        Raises:
            HttpError: As of `ask`.
        """
        sent = {**self._headers, **headers}
        content = None
        if body is not None:
            content = body if isinstance(body, bytes) else orjson.dumps(body)
            sent.setdefault("content-type", _BYTES if content is body else _JSON)
            sent["content-length"] = str(len(content))
        request = httpcore.Request(
            method,
            self.server.text + path,
            headers=list(sent.items()),
            content=None if content is None else _Body(content),
        )
        with _errors(self.server.text):
            response = await self._pool.handle_async_request(request)
        return HttpStream(response, self.server.text)

    async def _read(self, stream: HttpStream, limit: int) -> HttpAnswer:
        try:
            if stream.status in _REDIRECTS:
                raise HttpError(self.server.text, "it answers with a redirect")
            return HttpAnswer(stream.status, await stream.read(limit), self.server.text)
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        """Close all connections of this client."""
        with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await self._pool.aclose()


class _Body:
    """Request body that httpcore can read repeatedly, each time from the beginning."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._left = [content]

    def __aiter__(self) -> "_Body":
        return _Body(self._content)

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


@contextmanager
def _errors(server: str) -> Iterator[None]:
    try:
        yield
    except PrivatePlaceError as exc:
        raise HttpDialError(server, exc.reason) from exc
    except httpcore.TimeoutException as exc:
        raise HttpDialError(server, "it does not take connections") from exc
    except httpcore.ConnectError as exc:
        raise HttpDialError(server, tls_reason(exc) or str(exc) or "it hung up") from exc
    except (httpcore.NetworkError, httpcore.ProtocolError) as exc:
        raise HttpError(server, str(exc) or "the connection broke") from exc


class _OneServer(httpcore.AsyncNetworkBackend):
    """Network back end of httpcore that connects only to the configured server."""

    def __init__(self, server: ServerUrl, dial: Dial) -> None:
        self._server = server
        self._dial = dial

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        if (host.strip("[]"), port) != (self._server.host, self._server.port):
            raise httpcore.ConnectError(f"{host}:{port} is not the server that was configured")
        return await self._dial(self._server.host, port)
