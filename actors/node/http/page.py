"""What is asked over HTTP, and what is answered."""

from http import HTTPStatus
from typing import Final, final

import attrs
import orjson

from specs.jsonvalue import Json

__all__ = ["METHODS", "Headers", "Page", "Visit", "told"]

METHODS: Final = ("GET", "HEAD")
"""Nothing here can be changed."""

Headers = tuple[tuple[str, str], ...]
"""Names in lower case, and values."""


@final
@attrs.frozen
class Visit:
    """One request.

    Attributes:
        path: Without the query, which nothing here looks at.
        headers: As they were sent.
    """

    method: str
    path: str
    headers: Headers = ()

    def header(self, name: str) -> str | None:
        """Return the value of a header; of several the first."""
        return next((value for each, value in self.headers if each == name), None)


@final
@attrs.frozen
class Page:
    """One answer.

    Attributes:
        body: All of it; with `HEAD` only its length is told.
        headers: Besides those that every answer has.
    """

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"
    headers: Headers = ()


def told(status: HTTPStatus, value: Json, *headers: tuple[str, str]) -> Page:
    """Make an answer of JSON."""
    return Page(status, orjson.dumps(value) + b"\n", headers=headers)
