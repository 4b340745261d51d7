"""A server, a request to it and its answer, as the HTTP client takes and gives them."""

from collections.abc import Mapping
from typing import Final, final
from urllib.parse import quote, urlencode, urlsplit

import attrs
import orjson

from specs.errors import PlaceError
from specs.jsonvalue import Json

__all__ = ["HttpAnswer", "HttpError", "HttpRequest", "HttpUrlError", "ServerUrl", "path_of"]

_PORTS: Final = {"http": 80, "https": 443}


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
