"""A catalogue over HTTP; nothing it says leads anywhere else (S15)."""

from http import HTTPStatus
from typing import Final, final

import trio
from typing_extensions import override

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.catalogue.source import Source
from actors.kit.egress import ANYWHERE, Egress
from actors.kit.http_client import HttpClient
from actors.kit.http_message import HttpAnswer, HttpError, ServerUrl
from specs.limits.catalogue import FETCH_TIMEOUT

__all__ = ["HttpSource"]

_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


@final
class HttpSource(Source):
    """Asks one server, by its URL.

    Args:
        server: Where the catalogue is; every path is asked for below its path.
        egress: Which addresses it may have; asked each time a connection is opened.
    """

    def __init__(self, server: ServerUrl, egress: Egress = ANYWHERE) -> None:
        self.name = server.text
        self.proves_domain = server.scheme == "https"
        self._client = HttpClient(server, egress=egress)

    @override
    async def read(self, path: str, limit: int) -> bytes:
        try:
            with trio.fail_after(FETCH_TIMEOUT):
                answer = await self._client.read(f"/{path}", limit)
        except trio.TooSlowError as exc:
            raise SourceAwayError(self.name, f"no answer within {FETCH_TIMEOUT:g} s") from exc
        except HttpError as exc:
            raise SourceAwayError(self.name, exc.reason) from exc
        return self._content(answer, path)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()

    def _content(self, answer: HttpAnswer, path: str) -> bytes:
        if answer.status in _ABSENT:
            raise NotServedError(self.name, path)
        if answer.status != HTTPStatus.OK:
            raise SourceAwayError(self.name, f"it answers with status {answer.status}")
        return answer.body
