"""One HTTP connection: h11 on a Trio stream, every step bounded.

An ASGI server was tried first: Hypercorn's Trio worker shields its writes without a
deadline, so one peer that reads nothing keeps the process from ever ending, cancelled or
not. It also cannot be told to refuse HTTP/2 and WebSockets.
"""

from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Never, final

import h11
import structlog
import trio
from typing_extensions import override

from actors.kit.actor import Actor
from actors.node.http.page import Page, Visit, told
from actors.node.http.site import Site
from specs.limits import (
    GOODBYE_TIMEOUT,
    HTTP_HEAD_BYTES,
    HTTP_REQUEST_TIMEOUT,
    HTTP_REQUESTS,
)

__all__ = ["Conversation"]

_log = structlog.get_logger("actors.node")

_ALWAYS: Final = (("cache-control", "no-store"), ("x-content-type-options", "nosniff"))
_CLOSE: Final = ("connection", "close")

_VERSIONS: Final = (b"1.0", b"1.1")

_PIECE: Final = HTTP_HEAD_BYTES // 4
"""Bytes read at once: by no more can a head be over its limit."""


@final
class Conversation(Actor[Never]):
    """Answers the requests of one connection, one after the other."""

    def __init__(self, stream: trio.SocketStream, site: Site) -> None:
        self._stream = stream
        self._site = site
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_HEAD_BYTES)
        self._request: h11.Request | None = None
        self._left = HTTP_REQUESTS

    @override
    async def start(self) -> None:
        self.spawn(self._talk)

    @override
    async def handle(self, message: Never) -> None:
        """Nobody tells this actor anything."""

    @override
    async def stop(self) -> None:
        await trio.aclose_forcefully(self._stream)

    async def _talk(self) -> None:
        """Answer until one end has had enough; a connection that fails is over."""
        try:
            while await self._turn():
                self._protocol.start_next_cycle()
            with trio.move_on_after(GOODBYE_TIMEOUT):
                await self._leave()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.LocalProtocolError):
            _log.debug("http connection lost", actor=self.name)
        self.finish()

    async def _leave(self) -> None:
        """Let the peer read to the end: what it still sends would destroy what is under way."""
        await self._stream.send_eof()
        while await self._stream.receive_some(_PIECE):
            pass

    async def _turn(self) -> bool:
        """Answer one request; False: there is none any more."""
        with trio.move_on_after(HTTP_REQUEST_TIMEOUT) as patience:
            try:
                request = await self._next_request()
            except h11.RemoteProtocolError as exc:
                await self._refuse(exc.error_status_hint)
                return False
        if patience.cancelled_caught or request is None:
            return False
        self._left -= 1
        page = await self._page(request)
        with trio.move_on_after(HTTP_REQUEST_TIMEOUT):
            await self._write(page, b"" if request.method == b"HEAD" else page.body)
            return self._may_go_on()
        return False

    async def _page(self, request: h11.Request) -> Page:
        if request.http_version not in _VERSIONS:
            self._left = 0
            return told(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, {"error": "HTTP/1.1 is served"})
        return await self._site.answer(_visit(request))

    def _may_go_on(self) -> bool:
        is_over = self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE
        return is_over and self._left > 0

    async def _next_request(self) -> h11.Request | None:
        """Read a request; a body is not wanted, so none is waited for."""
        self._request = None
        while not self._has_request():
            self._protocol.receive_data(await self._stream.receive_some(_PIECE))
        return self._request

    def _has_request(self) -> bool:
        """Look at what has come; say whether it is a request, or will never be one."""
        while (event := self._protocol.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Request):
                self._request = event
            elif not isinstance(event, h11.Data):
                return True
        return self._request is not None

    async def _refuse(self, status: int) -> None:
        """Say what was wrong with something that is no request, if anything can be said."""
        if self._protocol.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._left = 0
            page = told(HTTPStatus(status), {"error": "this is no HTTP request"})
            await self._write(page, page.body)

    async def _write(self, page: Page, body: bytes) -> None:
        headers = [
            ("date", formatdate(usegmt=True)),
            ("content-type", page.content_type),
            ("content-length", str(len(page.body))),
            *_ALWAYS,
            *page.headers,
        ]
        if self._left <= 0 or self._protocol.their_state is not h11.DONE:
            headers.append(_CLOSE)
        head = h11.Response(
            status_code=page.status, reason=page.status.phrase.encode(), headers=headers
        )
        events = (head, h11.Data(data=body), h11.EndOfMessage())
        parts = [self._protocol.send(event) or b"" for event in events]
        await self._stream.send_all(b"".join(parts))


def _visit(request: h11.Request) -> Visit:
    target = request.target.decode("latin-1")
    headers = tuple(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers
    )
    return Visit(request.method.decode("latin-1"), target.partition("?")[0], headers)
