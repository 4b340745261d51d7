"""Connections to one HTTP server, and to nobody else; its errors are ours.

The body of a request as httpcore sends it.
"""

import ssl
from collections.abc import Iterable
from typing import Final, final

import httpcore
import trio
from typing_extensions import override

from actors.kit.egress import Egress, PrivatePlaceError
from actors.kit.http_message import HttpError, HttpRequest, ServerUrl
from specs.limits.back_ends import BACKEND_CONNECTIONS
from specs.limits.protocol import DIAL_TIMEOUT

__all__ = ["HttpBody", "HttpPool"]


@final
class HttpBody:
    """Bytes in one part, from the beginning each time that they are asked for.

    httpcore makes a generator of bytes that it is given, and leaves it half-way where the
    connection breaks while it writes; Python complains of that when it is collected.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._left = [content]

    def __aiter__(self) -> "HttpBody":
        return HttpBody(self._content)

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


_KEEP_ALIVE: Final = 30.0
"""Seconds an idle connection is kept."""

_REDIRECTS: Final = range(300, 400)
_TIMEOUTS: Final = {"timeout": {"connect": DIAL_TIMEOUT}}


@final
class HttpPool:
    """A few connections, kept while they are used.

    Args:
        server: Where they lead.
        egress: Which of its addresses are dialled.
    """

    def __init__(self, server: ServerUrl, egress: Egress) -> None:
        self._server = server.text
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context() if server.scheme == "https" else None,
            max_connections=BACKEND_CONNECTIONS,
            max_keepalive_connections=BACKEND_CONNECTIONS,
            keepalive_expiry=_KEEP_ALIVE,
            network_backend=_OneServer(server, egress),
        )

    async def exchange(self, asked: HttpRequest, limit: int) -> tuple[int, bytes]:
        """Send a request; return status and body of the answer, of at most `limit` bytes.

        Cancelled: its connection is closed.

        Raises:
            HttpError: No answer came, it is too large, or it points elsewhere.
        """
        try:
            async with self._pool.stream(
                asked.method,
                asked.url,
                headers=asked.headers,
                content=None if asked.content is None else HttpBody(asked.content),
                extensions=_TIMEOUTS,
            ) as response:
                return response.status, await self._read(response, limit)
        except PrivatePlaceError as exc:
            raise HttpError(self._server, exc.reason) from exc
        except httpcore.TimeoutException as exc:
            raise HttpError(self._server, "it does not take connections") from exc
        except (httpcore.NetworkError, httpcore.ProtocolError) as exc:
            raise HttpError(self._server, str(exc) or "the connection broke") from exc

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    async def _read(self, response: httpcore.Response, limit: int) -> bytes:
        if response.status in _REDIRECTS:
            raise HttpError(self._server, "it answers with a redirect")
        chunks: list[bytes] = []
        left = limit
        with trio.CancelScope() as scope:
            async for chunk in response.aiter_stream():
                chunks.append(chunk)
                left -= len(chunk)
                if left < 0:
                    # Not a break: generators that are left half-way are not closed in order.
                    scope.cancel()
        if left < 0:
            raise HttpError(self._server, f"its answer is larger than {limit} bytes")
        return b"".join(chunks)


@final
class _OneServer(httpcore.AsyncNetworkBackend):
    """Dials the server it was made for, and nobody else."""

    def __init__(self, server: ServerUrl, egress: Egress) -> None:
        self._server = server
        self._egress = egress
        self._trio = httpcore.TrioBackend()

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
        place = await self._egress.place(self._server.host, port)
        return await self._trio.connect_tcp(place, port, timeout)
