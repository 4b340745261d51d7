"""Requests and responses over HTTP."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, final

import attrs
import orjson

from specs.jsonvalue import Json

__all__ = ["METHODS", "Feed", "Page", "Parts", "Visit", "json_page"]

METHODS: Final = ("GET", "HEAD")
"""Methods of pages: nothing there can be changed."""

_BEARER: Final = "bearer "

_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})

Headers = tuple[tuple[str, str], ...]
"""Names in lower case, and values."""


@final
@attrs.frozen
class Visit:
    """One request.

    Attributes:
        query: Decoded; of a repeated name the last value.
        body: Empty where none is wanted.
        host: Where it comes from, as the system says.
    """

    method: str
    path: str
    headers: Headers = ()
    query: Mapping[str, str] = _NO_QUERY
    body: bytes = b""
    host: str = ""

    def header(self, name: str) -> str | None:
        """Return the value of a header; of several the first."""
        return next((value for each, value in self.headers if each == name), None)

    @property
    def bearer(self) -> str | None:
        """The token that is shown as a bearer token (RFC 6750, 2.1); None: none is."""
        shown = self.header("authorization") or ""
        return shown[len(_BEARER) :].strip() if shown.lower().startswith(_BEARER) else None


@final
@attrs.frozen
class Page:
    """One answer.

    Attributes:
        body: All of it; with `HEAD` only its length is sent.
    """

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"
    headers: Headers = ()


class Parts(ABC):
    """Source of the parts of a streamed response."""

    @abstractmethod
    async def next(self) -> bytes | None:
        """Return the next part; None: there is no more.

        Cancelled: nothing is lost that can be asked for again.
        """


@final
@attrs.frozen
class Feed:
    """An answer that goes on until its source ends."""

    status: HTTPStatus
    source: Parts
    content_type: str
    headers: Headers = ()


def json_page(status: HTTPStatus, value: Json, *headers: tuple[str, str]) -> Page:
    """Make an answer of JSON.

    Args:
        status: HTTP status.
        value: Content of the page.
        *headers: Further headers.
    """
    return Page(status, orjson.dumps(value) + b"\n", headers=headers)
