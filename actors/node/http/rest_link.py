"""A link over HTTP requests: a runtime posts its messages and polls for those to it (CON-06).

To the node it is a link like any other. A message counts as delivered when the runtime requests the
next one; before that the runtime can request it again, so a lost response neither loses nor doubles
a message. The same holds for posts, if they are numbered.
"""

from collections.abc import Sequence
from hashlib import sha256
from http import HTTPStatus
from itertools import count
from typing import ClassVar, Final
from weakref import WeakValueDictionary

import trio
from typing_extensions import override

from actors.node.links.acceptor import REST
from fsm.session.outbox_budget import SendWindow
from specs.errors import ProtoflyError
from specs.limits.node import REST_POSTS
from specs.limits.protocol import LINK_BACKLOG
from transports.errors import CloseReason, LinkBrokenError, LinkClosedError
from transports.link import Gate, Guest, Kind, Link, Listener, Upgrade


class RestError(ProtoflyError):
    """A request that a session over HTTP cannot serve now; base class, never raised itself.

    Attributes:
        status: Status of the response.
        summary: Text of the response.
    """

    status: ClassVar[HTTPStatus]
    summary: ClassVar[str]

    def __init__(self, *values: object) -> None:
        super().__init__(self.summary.format(*values))


class NewerPollError(RestError):
    """A newer request waits for the messages of the session, and ends this one."""

    status = HTTPStatus.CONFLICT
    summary = "a newer request waits for the messages of this session"


class PostNumberError(RestError):
    """The number of a post is neither the next one nor that of the last post."""

    status = HTTPStatus.CONFLICT
    summary = "posts are numbered without gaps; the next one is {}"


class PostsPileUpError(RestError):
    """The runtime sends faster than permitted, without waiting for its posts."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    summary = "too many posts of this session wait to be taken in; wait for them"


class RestGoneError(RestError):
    """The session has no link over HTTP any more; its token may reopen it."""

    status = HTTPStatus.GONE
    summary = "this session has no link over HTTP; re-open it with its token"


class TurnedAwayError(RestError):
    """A host connects too often, or too many connections wait for the node to take them."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    summary = "too many connections at once; try again later"


class RestLink(Link):
    """The requests of one runtime, as one link."""

    __slots__ = (
        "__weakref__",
        "_change",
        "_has_left",
        "_inbound",
        "_outbound",
        "_pings",
        "_posted",
        "_turn",
        "_window",
        "close_reason",
    )  # fmt: skip

    def __init__(self, name: str, guest: Guest) -> None:
        super().__init__(Kind.STREAM, name, Upgrade(path=REST))
        self.guest = guest
        self.close_reason: CloseReason | None = None
        self._inbound, self._outbound = trio.open_memory_channel[bytes](0)
        self._window: Final = SendWindow()
        self._has_left = False
        self._turn = 0
        self._pings = 0
        self._posted = 0
        self._change = trio.Event()

    # ---- calls of the node

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        """Return when the runtime has read the frames, or has left."""
        self._check_sizes(frames)
        self._check_open()
        self._window.put(frames)
        self._wake_readers()
        while len(self._window) and not self._has_left:
            await self._change.wait()
            self._check_open()

    @override
    def unread(self) -> int:
        return len(self._window)

    @override
    async def receive(self) -> bytes:
        self._check_open()
        try:
            return await self._outbound.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError) as exc:
            self._check_open()
            raise LinkBrokenError(self.name, "the other end has left", CloseReason.DONE) from exc

    @override
    def ping(self) -> None:
        """End the waiting poll, so that the next request of the client shows a sign of life."""
        self._pings += 1
        self._wake_readers()

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        if self.close_reason is None:
            self.close_reason = close_reason
            self._inbound.close()
            self._outbound.close()
            self._wake_readers()
        await trio.lowlevel.checkpoint()

    def _check_open(self) -> None:
        if self.close_reason is not None:
            raise LinkClosedError(self.name)

    def _wake_readers(self) -> None:
        self._change.set()
        self._change = trio.Event()

    # ---- calls of the HTTP requests

    def acknowledge(self, after: int) -> None:
        """Note the number of the last message that the runtime has read.

        Raises:
            CursorError: The number was never sent, or is before an earlier one.
            RestGoneError: The link is closed.
        """
        self._check_linked()
        self.heard_at = trio.current_time()
        self._window.acknowledge(after)
        self._wake_readers()

    async def post(self, frame: bytes) -> None:
        """Pass a frame to the node, and wait until the node takes it.

        If cancelled, the node may or may not have taken the frame.

        Raises:
            PostsPileUpError: Too many posts wait already.
            RestGoneError: The link is closed, or was closed during the wait.
        """
        self._check_linked()
        self.heard_at = trio.current_time()
        if self._inbound.statistics().tasks_waiting_send >= REST_POSTS:
            raise PostsPileUpError
        try:
            await self._inbound.send(frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise RestGoneError from exc

    async def post_numbered(self, frame: bytes, number: int) -> None:
        """Pass a frame to the node once: a post with the last number again is ignored.

        Args:
            frame: The frame.
            number: Number of the post.

        Raises:
            PostNumberError: Another number is due.
            PostsPileUpError: As of `post`; the frame may be posted again.
            RestGoneError: As of `post`.
        """
        if number == self._posted:
            self._check_linked()
            return
        if number != self._posted + 1:
            raise PostNumberError(self._posted + 1)
        self._posted = number
        try:
            await self.post(frame)
        except PostsPileUpError:
            self._posted = number - 1
            raise

    async def wait_after(self, number: int, turn: int) -> Sequence[bytes]:
        """Return the messages after a number, as soon as there are any.

        An empty sequence asks the runtime to poll again, as a sign of life.

        Args:
            number: Number of the last received message.
            turn: Number of the wait.

        Raises:
            NewerPollError: A newer request has replaced this one.
            RestGoneError: The link is closed.
        """
        pings = self._pings
        while not (waiting := self._window.after(number)):
            self._check_linked()
            if turn != self._turn:
                raise NewerPollError
            if pings != self._pings:
                return ()
            await self._change.wait()
        return waiting

    async def wait_read(self, number: int) -> bool:
        """Wait until the runtime has read up to a number; return False if the link closes."""
        while self._window.acknowledged < number and self.close_reason is None:
            await self._change.wait()
        return self.close_reason is None

    def begin(self) -> int:
        """Begin a wait for messages, which ends earlier waits; return its number."""
        self._turn += 1
        self._wake_readers()
        return self._turn

    async def take(self, turn: int) -> bytes:
        """Return the next message, without a number: the answer to a session control request.

        Raises:
            NewerPollError: A newer request has replaced this one.
            RestGoneError: The link is closed.
        """
        # Ignore pings: a waiting client cannot show a sign of life.
        while not await self.wait_after(self._window.acknowledged, turn):
            pass
        line = self._window.take()
        self._wake_readers()
        return line

    def leave(self) -> None:
        """Note that the client has left."""
        self._has_left = True
        self._inbound.close()
        self._wake_readers()

    def _check_linked(self) -> None:
        if self.close_reason is not None or self._has_left:
            raise RestGoneError


class RestLinks(Listener):
    """Listen for links over HTTP, and find them by the tokens of their sessions.

    A link lives as long as the connection that serves it; this class holds weak references only.
    """

    __slots__ = ("_arrivals", "_arrive", "_by_challenge", "_by_token", "_gate", "_numbers")

    def __init__(self, gate: Gate) -> None:
        super().__init__(REST)
        self._gate: Final = gate
        self._numbers: Final = count(1)
        self._arrive, self._arrivals = trio.open_memory_channel[RestLink](LINK_BACKLOG)
        self._by_token: Final[WeakValueDictionary[bytes, RestLink]] = WeakValueDictionary()
        self._by_challenge: Final[WeakValueDictionary[bytes, RestLink]] = WeakValueDictionary()

    @override
    async def accept(self) -> Link:
        try:
            return await self._arrivals.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError) as exc:
            raise LinkClosedError(self.address) from exc

    def close(self) -> None:
        """Accept no more links."""
        self._arrive.close()
        self._arrivals.close()

    def admit(self, host: str) -> RestLink:
        """Admit a client without a session.

        Raises:
            TurnedAwayError: There is no room now.
        """
        guest = self._gate.knock(host)
        if guest is None:
            raise TurnedAwayError
        link = RestLink(f"rest-{next(self._numbers)}", guest)
        try:
            self._arrive.send_nowait(link)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            guest.settle()
            raise TurnedAwayError from exc
        return link

    def set_token(self, link: RestLink, token: str) -> None:
        """Set the token by which a link is found.

        Args:
            link: The link.
            token: Token of the session.
        """
        self._by_token[_digest(token)] = link

    def set_challenge(self, link: RestLink, challenge: str) -> None:
        """Set the challenge by which a link is found once: the proof must use the same link.

        Args:
            link: The link.
            challenge: The challenge that the node gave.
        """
        self._by_challenge[_digest(challenge)] = link

    def take_challenged(self, challenge: str | None) -> RestLink | None:
        """Return the link that was given a challenge, and forget the challenge."""
        link = None if challenge is None else self._by_challenge.pop(_digest(challenge), None)
        return None if link is None or link.close_reason is not None else link

    def find_session(self, token: str | None) -> RestLink | None:
        """Return the link that has the session of a token, or None."""
        link = None if token is None else self._by_token.get(_digest(token))
        return None if link is None or link.close_reason is not None else link

    def find(self, token: str | None) -> RestLink:
        """Return the link that has the session of a token.

        Raises:
            RestGoneError: No link has it.
        """
        link = self.find_session(token)
        if link is None:
            raise RestGoneError
        return link


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
