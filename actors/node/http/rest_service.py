"""The pages /rest/session and /rest/messages: sessions of runtimes over HTTP (CON-06).

Requests and answers are messages in normal form, one JSON object a line. A request that is refused
before it has a session is answered by an object with `code` and `description`. The token of a
session is sent as a bearer token. Messages to the runtime are server-sent events.
"""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final, final

import trio
from typing_extensions import override

from actors.http.site import Feed, HttpService, Page, Parts, Visit, json_page
from actors.node.http.rest_link import NewerPollError, RestError, RestGoneError, RestLink, RestLinks
from actors.node.links.acceptor import REST
from fsm.session.outbox_budget import CursorError
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits.node import REST_CURSOR_WAIT, REST_RETRY
from specs.limits.protocol import FRAME_MESSAGES, MAX_FRAME_BYTES, MAX_MESSAGE_BYTES
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS
from transports.codec import BadLine, decode_line, encode


class EventParts(Parts):
    """One stream of events; the id of each event is the number of its message.

    The stream ends when its messages are not acknowledged, and from time to time when there are no
    messages: a client that opens it again shows that it is present, and what it has read. It also
    ends when a newer request replaces it, or the session is closed.

    Args:
        turn: Number of the wait, from `RestLink.begin`.
    """

    def __init__(self, link: RestLink, after: int, turn: int) -> None:
        self._link = link
        self._sent = after
        self._turn = turn
        self._is_begun = False

    @override
    async def next(self) -> bytes | None:
        if not self._is_begun:
            self._is_begun = True
            return b"retry: %d\n\n" % REST_RETRY
        if not await self._was_read():
            return None
        try:
            lines = await self._link.wait_after(self._sent, self._turn)
        except (NewerPollError, RestGoneError):
            return None
        first, self._sent = self._sent + 1, self._sent + len(lines)
        return _events(first, lines) or None

    @override
    def close(self) -> None:
        """Do nothing: the messages stay with the session."""

    async def _was_read(self) -> bool:
        with trio.move_on_after(REST_CURSOR_WAIT):
            return await self._link.wait_read(self._sent)
        return False


def _events(first: int, lines: Sequence[bytes]) -> bytes:
    return b"".join(
        b"id: %d\ndata: %b\n\n" % (number, line) for number, line in enumerate(lines, first)
    )


_LINES: Final = "application/x-ndjson"
_EVENTS: Final = "text/event-stream"
_DIGITS: Final = 16
"""Digits of a number that every JSON reader keeps exactly, and one more than most need."""


class _RestService(HttpService):
    def __init__(self, links: RestLinks) -> None:
        self._links: Final = links

    @final
    @override
    async def answer(self, visit: Visit) -> Page | Feed:
        try:
            return await self._answer(visit)
        except (BadMessageError, CursorError) as exc:
            return self.refusal_page(HTTPStatus.BAD_REQUEST, str(exc))
        except RestError as exc:
            return self.refusal_page(exc.status, str(exc))

    @abstractmethod
    async def _answer(self, visit: Visit) -> Page | Feed:
        """Answer a request; raise `BadMessageError`, `CursorError` or `RestError` on failure."""

    @final
    @override
    def refusal_page(self, status: HTTPStatus, why: str, *headers: tuple[str, str]) -> Page:
        return json_page(status, {"code": int(status), "description": why}, *headers)


class SessionService(_RestService):
    """Open, reopen and close sessions (M-14..M-16).

    A request with a proof sends the challenge that it answers as its bearer token.
    """

    methods: tuple[str, ...] = ("POST",)
    limit = MAX_MESSAGE_BYTES

    def __init__(self, links: RestLinks, origins: frozenset[str]) -> None:
        super().__init__(links)
        self._origins = origins

    @override
    def body_limit(self, visit: Visit) -> int:
        return self.limit

    @override
    async def _answer(self, visit: Visit) -> Page:
        origin = visit.header("origin")
        if origin is not None and origin not in {visit.own_origin, *self._origins}:
            return self.refusal_page(HTTPStatus.FORBIDDEN, "pages of this origin may not connect")
        request, method = _control(visit.body)
        if method == SessionMethod.CLOSE:
            return await self._close_session(visit, request)
        return await self._open_session(visit, request)

    async def _open_session(self, visit: Visit, request: Message) -> Page:
        before = self._links.find_session(_token(request.body.get("params"), "token"))
        after = _number(visit, "after")
        if before is not None and after is not None:
            # A wrong number acknowledges nothing: the messages wait.
            with suppress(CursorError):
                before.acknowledge(after)
        link = self._links.take_challenged(visit.bearer) or self._links.admit(visit.host)
        try:
            line, answer = await _exchange_control(link, request)
        except RestGoneError:
            return self.refusal_page(HTTPStatus.REQUEST_TIMEOUT, "there was no answer in time")
        value = answer.body.get("value")
        token, challenge = _token(value, "sessionToken"), _token(value, "challenge")
        if answer.code <= LAST_SUCCESS and token:
            self._links.set_token(link, token)
        elif challenge:
            self._links.set_challenge(link, challenge)
        else:
            link.leave()
        return _answer_page(line, answer)

    async def _close_session(self, visit: Visit, request: Message) -> Page:
        link = self._links.find(visit.bearer)
        line, answer = await _exchange_control(link, request)
        if answer.code <= LAST_SUCCESS:
            link.leave()
        return _answer_page(line, answer)


class MessagesService(_RestService):
    """Receive the messages of runtimes, and deliver those to them."""

    methods: tuple[str, ...] = ("GET", "POST")
    limit = MAX_FRAME_BYTES

    @override
    def body_limit(self, visit: Visit) -> int:
        """Refuse bodies of clients without a session: they could fill the memory of the node."""
        return 0 if self._links.find_session(visit.bearer) is None else self.limit

    @override
    async def _answer(self, visit: Visit) -> Page | Feed:
        if visit.bearer is None:
            why = "show the token of a session as a bearer token"
            unknown = ("www-authenticate", "Bearer")
            return self.refusal_page(HTTPStatus.UNAUTHORIZED, why, unknown)
        if visit.method == self.methods[0]:
            return await self._read_messages(self._links.find(visit.bearer), visit)
        return await self._post_messages(self._links.find(visit.bearer), visit)

    async def _post_messages(self, link: RestLink, visit: Visit) -> Page:
        after, number = _number(visit, "after"), _number(visit, "number")
        if after is not None:
            link.acknowledge(after)
        if visit.body.count(b"\n") > FRAME_MESSAGES:
            raise BadMessageError(f"a body holds at most {FRAME_MESSAGES} messages")
        if visit.body and number is not None:
            await link.post_numbered(visit.body, number)
        elif visit.body:
            await link.post(visit.body)
        return json_page(HTTPStatus.ACCEPTED, {"code": int(HTTPStatus.ACCEPTED)})

    async def _read_messages(self, link: RestLink, visit: Visit) -> Page | Feed:
        is_stream = _EVENTS in (visit.header("accept") or "")
        after = _last_event(visit) if is_stream else _number(visit, "after")
        if after is None:
            raise BadMessageError("?after= says up to which message you have read; 0 at first")
        link.acknowledge(after)
        turn = link.begin()
        if is_stream:
            return Feed(HTTPStatus.OK, EventParts(link, after, turn), _EVENTS)
        lines = await link.wait_after(after, turn)
        return Page(HTTPStatus.OK, b"".join(line + b"\n" for line in lines), _LINES)


async def _exchange_control(link: RestLink, request: Message) -> tuple[bytes, Message]:
    """Send a session control request over a link; return its answer, skipping other messages."""
    turn = link.begin()
    await link.post(encode(request))
    while True:
        line = await link.take(turn)
        message = decode_line(line)
        if isinstance(message, Message) and _answers(message, request):
            return line, message


def _answers(message: Message, request: Message) -> bool:
    """Return whether a message is the answer of the node: messages of others share the queue."""
    return message.is_response and (message.id, message.from_) == (request.id, request.to)


def _control(body: bytes) -> tuple[Message, str]:
    """Read a session control request.

    Raises:
        BadMessageError: The body is no such request.
    """
    line = decode_line(body.strip())
    if isinstance(line, BadLine):
        raise line.error
    method = line.body.get("method")
    known: tuple[str, ...] = (SessionMethod.OPEN, SessionMethod.REOPEN, SessionMethod.CLOSE)
    if line.type is not MessageType.EXECUTE or not isinstance(method, str) or method not in known:
        raise BadMessageError(f"a session is asked for by execute, its method {' or '.join(known)}")
    return line, method


def _answer_page(line: bytes, answer: Message) -> Page:
    return Page(HTTPStatus(answer.code), line + b"\n")


def _token(fields: Json, name: str) -> str | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, str) else None


def _number(visit: Visit, name: str) -> int | None:
    """Read a number of the query.

    Raises:
        BadMessageError: The value is no number.
    """
    return _whole(name, visit.query.get(name))


def _last_event(visit: Visit) -> int:
    text = visit.header("last-event-id") or visit.query.get("after")
    return _whole("Last-Event-ID", text) or 0


def _whole(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not text.isascii() or len(text) > _DIGITS:
        raise BadMessageError(f"{name} is no whole number")
    return int(text)


def rest_services(links: RestLinks, origins: frozenset[str]) -> dict[str, HttpService]:
    """Make the services for sessions over HTTP.

    Args:
        links: Links over HTTP.
        origins: Permitted web origins.
    """
    return {
        f"{REST}/session": SessionService(links, origins),
        f"{REST}/messages": MessagesService(links),
    }
