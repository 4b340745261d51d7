"""Sessions over HTTP for a runtime: `protofly.v1` in HTTP requests (CON-06).

Messages are spelt as over a link of our own; only control of the session has a path of its
own. What is sent is posted in order, one post after the other, each with all waiting messages. What
comes is asked for, by long polls or as server-sent events.

A stub reaches the world by its `Network` alone, for any protocol: so its requests go over
links of kind `STREAM`, and a network in memory, under any clock or weather, carries them.

A request that is not answered is asked once more, over another connection: posts have a
number, and a request for messages acknowledges those read, so that nothing is taken twice. When
the node cannot be reached, or says that it has no such session, the link is lost.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.kit import http_client
from actors.runtime.stubs.http import http_over
from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wire import OwnWire, StubOptionError, read_options
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_FRAME_BYTES
from transports.codec import frames, read_object
from transports.errors import CloseReason, LinkBrokenError, LinkClosedError
from transports.link import Kind, Link, Turn, Upgrade

_OK: Final = 200
_ACCEPTED: Final = 202
_TRIES: Final = 5
"""Attempts of a request: as many idle connections as the server may have closed, and one."""

_ID_DIGITS: Final = 16
"""Digits of the number of an event; a longer one is ignored, as if the event had none."""

_EVENTS: Final = {"accept": "text/event-stream"}


@attrs.define
class RestPast:
    """State that the HTTP link of a session leaves for the link after it.

    Attributes:
        links: How many there were.
        read: Up to which message of the last one was read.
    """

    links: int = 0
    read: int = 0


class RestLink(Link):
    """A link that carries one session in HTTP requests.

    Args:
        http: Asks the node.
        apart: Frames that are control of the session, which has a path of its own.
        past: Of the links before.
    """

    __slots__ = (
        "_apart",
        "_change",
        "_has_session",
        "_inbox",
        "_is_closed",
        "_is_leaving",
        "_past",
        "_posts",
        "_receiving",
        "_sending",
        "http",
    )  # fmt: skip

    def __init__(
        self, http: http_client.HttpClient, apart: Container[bytes], past: RestPast
    ) -> None:
        past.links += 1
        super().__init__(Kind.STREAM, f"rest-{past.links}-out", Upgrade())
        self.http: Final = http
        self._apart: Final = apart
        self._past: Final = past
        self._inbox: Final[deque[bytes]] = deque()
        self._change = trio.Event()
        self._has_session = False
        self._is_leaving = False
        self._is_closed = False
        self._posts = 0
        self._sending: Final = Turn("sending")
        self._receiving: Final = Turn("receiving")

    # ---- sending

    @final
    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            for frame in frames:
                self._check_open()
                if frame in self._apart:
                    await self._control(frame)
                else:
                    await self._post(frame)

    async def _control(self, frame: bytes) -> None:
        """Send a session control; its answer is received like a message."""
        self._is_leaving = self._has_session
        path = f"/session?after={self._past.read}" if self._past.read else "/session"
        answer = await self._ask("POST", path, frame)
        said = _read_answer(answer)
        if "type" not in said:
            raise LinkBrokenError(self.name, _reason(answer, said))
        body = said.get("body")
        token, challenge = _value(body, "sessionToken"), _value(body, "challenge")
        if answer.status == _OK and token is not None:
            self.http.bear(token)
            self._has_session = True
            self._past.read = 0
        elif challenge is not None:
            self.http.bear(challenge)
        self._inbox.append(answer.body)
        self._change.set()

    async def _post(self, frame: bytes) -> None:
        self._posts += 1
        answer = await self._ask("POST", f"/messages?number={self._posts}", frame)
        if answer.status != _ACCEPTED:
            raise LinkBrokenError(self.name, _reason(answer, _read_answer(answer)))

    async def _ask(
        self, method: str, path: str, body: bytes | None = None
    ) -> http_client.HttpAnswer:
        """Send an HTTP request; within a session, repeat it after a failure, which is harmless.

        Raises:
            LinkBrokenError: There is no answer to be had.
        """
        why = ""
        for _ in range(_TRIES if self._has_session else 1):
            try:
                answer = await self.http.ask(method, path, body)
            except http_client.HttpDialError as exc:
                raise LinkBrokenError(self.name, exc.reason) from exc
            except http_client.HttpError as exc:
                why = exc.reason
            else:
                self.heard_at = trio.current_time()
                return answer
        raise LinkBrokenError(self.name, why)

    # ---- receiving

    @final
    @override
    async def receive(self) -> bytes:
        with self._receiving:
            while not self._inbox:
                self._check_open()
                if self._has_session and not self._is_leaving:
                    await self._ask_for_more()
                else:
                    await self._change.wait()
                    self._change = trio.Event()
            return self._inbox.popleft()

    @abstractmethod
    async def _ask_for_more(self) -> None:
        """Request messages until some come, or until the node asks for a pause."""

    @final
    def _came(self, frame: bytes, up_to: int) -> None:
        self._past.read = up_to
        self._inbox.append(frame)

    @final
    def _take_refusal(self, answer: http_client.HttpAnswer) -> None:
        """Record that the node delivered no messages; it cannot while the session is closed.

        Raises:
            LinkBrokenError: The session is not to be had by this link any more.
        """
        if not self._is_leaving:
            raise LinkBrokenError(self.name, _reason(answer, _read_answer(answer)))

    # ---- leaving

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        self._is_closed = True
        self._change.set()
        await self.http.aclose()

    def _check_open(self) -> None:
        if self._is_closed:
            raise LinkClosedError(self.name)


class PollLink(RestLink):
    """A link that receives messages by long polling; each poll acknowledges the last ones."""

    __slots__ = ()

    @override
    async def _ask_for_more(self) -> None:
        read = self._past.read
        answer = await self._ask("GET", f"/messages?after={read}")
        if answer.status != _OK:
            self._take_refusal(answer)
        elif answer.body:
            self._came(answer.body, read + answer.body.count(b"\n"))


class EventLink(RestLink):
    """A link that receives messages as server-sent events, and acknowledges them in groups."""

    __slots__ = ("_acknowledged", "_failures", "_reader", "_stream")

    def __init__(
        self, http: http_client.HttpClient, apart: Container[bytes], past: RestPast
    ) -> None:
        super().__init__(http, apart, past)
        self._stream: http_client.HttpStream | None = None
        self._reader = EventReader()
        self._acknowledged = 0
        self._failures = 0

    @override
    async def _ask_for_more(self) -> None:
        if self._acknowledged != self._past.read:
            self._acknowledged = self._past.read
            await self._ask("POST", f"/messages?after={self._past.read}", b"")
        if self._stream is None:
            await self._open()
        else:
            await self._read(self._stream)

    async def _open(self) -> None:
        since = {**_EVENTS, "last-event-id": str(self._past.read)}
        try:
            stream = await self.http.open("GET", "/messages", headers=since)
        except http_client.HttpDialError as exc:
            raise LinkBrokenError(self.name, exc.reason) from exc
        except http_client.HttpError as exc:
            self._count_failure(exc.reason)
            return
        if stream.status == _OK:
            self._stream, self._reader = stream, EventReader()
        else:
            answer = await stream.read(MAX_FRAME_BYTES)
            self._take_refusal(http_client.HttpAnswer(stream.status, answer, stream.server))
            await stream.aclose()

    async def _read(self, stream: http_client.HttpStream) -> None:
        try:
            part = await stream.next()
            events = self._reader.take(part)
        except (http_client.HttpError, BadMessageError) as exc:
            self._count_failure(exc.reason)
            part, events = b"", []
        else:
            self.heard_at = trio.current_time()
        if events:
            self._failures = 0
            self._came(b"\n".join(events), self._reader.last or self._past.read)
        if not part:
            self._stream = None
            await stream.aclose()

    def _count_failure(self, why: str) -> None:
        """Count a broken event stream, which is then requested again.

        Raises:
            LinkBrokenError: Again and again, and it brought nothing.
        """
        self._failures += 1
        if self._failures == _TRIES:
            raise LinkBrokenError(self.name, why)

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        if self._stream is not None:
            await self._stream.aclose()
        await super().aclose(close_reason)


class EventReader:
    """Parser of server-sent events, for the part of the format that a node uses.

    Attributes:
        last: The id of the last event that came whole; None: none had one.
    """

    def __init__(self) -> None:
        self.last: int | None = None
        self._unread = bytearray()

    def take(self, part: bytes) -> list[bytes]:
        """Add received bytes; return the data of the events that are now complete, in order.

        Raises:
            BadMessageError: One is larger than any frame.
        """
        # What came before is not looked at again, nor copied: parts may be tiny.
        begin = max(0, len(self._unread) - 1)
        self._unread += part
        end = self._unread.rfind(b"\n\n", begin)
        whole = b"" if end < 0 else bytes(self._unread[:end])
        if end >= 0:
            del self._unread[: end + 2]
        if len(self._unread) > MAX_FRAME_BYTES:
            raise BadMessageError("an event is larger than any frame")
        said = [self._event(event) for event in whole.split(b"\n\n")]
        return [each for each in said if each is not None]

    def _event(self, event: bytes) -> bytes | None:
        data: list[bytes] = []
        for line in event.splitlines():
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"id" and value.isdigit() and len(value) <= _ID_DIGITS:
                self.last = int(value)
        return b"\n".join(data) if data else None


def _read_answer(answer: http_client.HttpAnswer) -> JsonObject:
    try:
        return read_object(answer.body)
    except BadMessageError:
        return {}


def _reason(answer: http_client.HttpAnswer, said: JsonObject) -> str:
    why = said.get("description")
    return why if isinstance(why, str) else f"the node answered with HTTP {answer.status}"


def _value(body: Json, name: str) -> str | None:
    value = body.get("value") if isinstance(body, dict) else None
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


_STUB: Final = "rest"


LINKS: Final[Mapping[str, type[PollLink | EventLink]]] = MappingProxyType(
    {"long-poll": PollLink, "sse": EventLink}
)
"""The class of link for each mode of receiving messages, by the word that a profile has for it."""


def link_of(context: StubContext) -> type[PollLink | EventLink]:
    """Read from a stub's profile how messages are received: by long polling or as events.

    Raises:
        StubOptionError: The profile says what the stub does not know.
    """
    known = {"receive": tuple(LINKS)}
    chosen = read_options(_STUB, context.config.options, known)
    url = context.config.node_url or ""
    why = f"its endpoint {url!r} is none such as http://host:port/rest"
    try:
        server = http_client.ServerUrl.read(url)
    except http_client.HttpUrlError as exc:
        raise StubOptionError(_STUB, "endpoint", why) from exc
    if server.scheme != "http":
        raise StubOptionError(_STUB, "endpoint", why)
    return LINKS[chosen["receive"]]


class RestWire(OwnWire):
    """The wire form `protofly.v1` over HTTP requests.

    Args:
        context: Of the stub that speaks.
        link: Asks for what comes.
        past: Of the links that the stub had before.
    """

    def __init__(
        self, context: StubContext, link: type[PollLink | EventLink], past: RestPast
    ) -> None:
        super().__init__(context)
        self._link = link
        self._past = past
        self._apart: set[bytes] = set()

    @override
    async def dial(self) -> RestLink:
        http = http_over(self._network, self._config.node_url or "")
        return self._link(http, self._apart, self._past)

    @override
    def ask(self, method: SessionMethod, token: str | None, challenge: str | None = None) -> bytes:
        line = super().ask(method, token, challenge)
        if method not in {SessionMethod.PING, SessionMethod.RENEW}:
            self._apart.add(line)
        return line

    @override
    def frames(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        together: list[bytes] = []
        for line in lines:
            if line in self._apart:
                yield from frames(together)
                together = []
                yield line
            else:
                together.append(line)
        yield from frames(together)
