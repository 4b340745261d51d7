"""An HTTP client for one server that the operator has named; nothing else can be reached by it.

Every request is bounded: by the caller's deadline (`with trio.fail_after(...)`), by the
size of the answer, by the number of connections. Redirects are not followed, and no
connection is dialled but to the server itself, whatever an answer says (S15).
"""

from collections.abc import Iterable, Mapping
from typing import Final, final
from urllib.parse import quote, urlencode, urlsplit

import attrs
import orjson
import trio

from actors.kit.egress import ANYWHERE, Egress
from specs.errors import PlaceError
from specs.jsonvalue import Json
from specs.limits.back_ends import BACKEND_ANSWER_BYTES
from specs.limits.protocol import GOODBYE_TIMEOUT

__all__ = [
    "HttpAnswer",
    "HttpClient",
    "HttpError",
    "HttpRequest",
    "HttpUrlError",
    "ServerUrl",
    "path_of",
]

_PORTS: Final = {"http": 80, "https": 443}
_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"


@final
class HttpUrlError(PlaceError):
    """What should name a server does not."""

    told = "{!r} names no HTTP server"


@final
class HttpError(PlaceError):
    """The server could not be asked, or what it answered cannot be used."""

    told = "the server {} cannot be asked"


@final
@attrs.frozen
class ServerUrl:
    """Where a server is, as its operator wrote it.

    Attributes:
        port: Also if the text leaves it out.
        path: What every path on it begins with; empty, or beginning with a slash.
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    @classmethod
    def read(cls, text: str) -> "ServerUrl":
        """Read `http://host[:port][/path]`, or the same with https.

        Raises:
            HttpUrlError: It is none.
        """
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as exc:
            raise HttpUrlError(text, str(exc)) from exc
        if parts.scheme not in _PORTS or not parts.hostname:
            raise HttpUrlError(text, "it is not of the form http://host:port or https://host")
        if parts.username is not None or parts.query or parts.fragment:
            raise HttpUrlError(text, "it has a user name, a query or a fragment")
        return cls(
            parts.scheme,
            parts.hostname,
            _PORTS[parts.scheme] if port is None else port,
            parts.path.rstrip("/"),
        )

    @property
    def text(self) -> str:
        """The address in its usual form."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def path_of(*segments: str, query: Mapping[str, str] | None = None) -> str:
    """Return a path of these segments, each of them quoted whole, slashes included."""
    path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
    return f"{path}?{urlencode(query)}" if query else path


@final
@attrs.frozen
class HttpAnswer:
    """What a server answered.

    Attributes:
        server: Which server, for errors.
    """

    status: int
    body: bytes
    server: str

    def json(self) -> Json:
        """Read the body.

        Raises:
            HttpError: It is no JSON.
        """
        try:
            read: Json = orjson.loads(self.body)
        except orjson.JSONDecodeError as exc:
            raise HttpError(self.server, "its answer is no JSON") from exc
        return read


@final
@attrs.frozen
class HttpRequest:
    """A request as it is sent; `content` None: without a body."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    content: bytes | None


@final
class HttpClient:
    """Asks one server.

    Args:
        server: The server.
        limit: Bytes an answer may have.
        headers: Sent with every request, such as what the operator's key is shown by.
        egress: Which of its addresses are dialled.
    """

    def __init__(
        self,
        server: ServerUrl,
        limit: int = BACKEND_ANSWER_BYTES,
        headers: Iterable[tuple[str, str]] = (),
        egress: Egress = ANYWHERE,
    ) -> None:
        self.server: Final = server
        self._limit = limit
        self._headers = [("Host", _authority(server)), ("Accept", _JSON), *headers]
        # Slow to import, and not needed by who has no server to ask.
        from actors.kit.http_pool import HttpPool  # noqa: PLC0415

        self._pool = HttpPool(server, egress)

    async def ask(self, method: str, path: str, body: "Json | bytes" = None) -> HttpAnswer:
        """Send a request and return the answer, whatever its status.

        The body is sent as JSON, or as it is if it is bytes; None: there is none.

        Cancelled: its connection is closed; the server may have done what was asked.

        Raises:
            HttpError: No answer came, it is too large, or it points elsewhere.
        """
        headers = list(self._headers)
        content = None
        if body is not None:
            content = body if isinstance(body, bytes) else orjson.dumps(body)
            headers.append(("Content-Type", _BYTES if content is body else _JSON))
            headers.append(("Content-Length", str(len(content))))
        asked = HttpRequest(method, self.server.text + path, headers, content)
        return await self._exchange(asked, self._limit)

    async def read(self, path: str, limit: int) -> HttpAnswer:
        """Ask for what stands at a path; of an answer no more than these bytes are taken.

        Cancelled: its connection is closed.

        Raises:
            HttpError: As of `ask`.
        """
        asked = HttpRequest("GET", self.server.text + path, self._headers, None)
        return await self._exchange(asked, limit)

    async def _exchange(self, asked: HttpRequest, limit: int) -> HttpAnswer:
        status, answer = await self._pool.exchange(asked, limit)
        return HttpAnswer(status, answer, self.server.text)

    async def aclose(self) -> None:
        """Close every connection."""
        with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await self._pool.aclose()


def _authority(server: ServerUrl) -> str:
    host = f"[{server.host}]" if ":" in server.host else server.host
    return host if server.port == _PORTS[server.scheme] else f"{host}:{server.port}"
