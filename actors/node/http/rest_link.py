"""A link made of requests: a runtime posts what it sends, and asks for what it gets (CON-06).

To the node it is a link like any other. A message has left when the runtime has asked for
the one after it; until then it can be asked for again, so a response that is cut loses and
doubles nothing. The same holds for posts, if they are numbered.
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
    """A request that a session over HTTP cannot serve now; never raised itself.

    Attributes:
        status: Status of the response.
        summary: Text of the response.
    """

    status: ClassVar[HTTPStatus]
    summary: ClassVar[str]

    def __init__(self, *values: object) -> None:
        super().__init__(self.summary.format(*values))


class NewerPollError(RestError):
    """A newer request waits for the messages of the session: this one waits no longer."""

    status = HTTPStatus.CONFLICT
    summary = "a newer request waits for the messages of this session"


class PostNumberError(RestError):
    """A post is neither the next one nor the last one again."""

    status = HTTPStatus.CONFLICT
    summary = "posts are numbered without gaps; the next one is {}"


class PostsPileUpError(RestError):
    """The runtime sends faster than it may, and does not wait for its posts."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    summary = "too many posts of this session wait to be taken in; wait for them"


class RestGoneError(RestError):
    """The session is not held by these requests any more; its token may bring it back."""

    status = HTTPStatus.GONE
    summary = "this session has no link over HTTP; re-open it with its token"


class TurnedAwayError(RestError):
    """Too many connections, from one host or in all."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    summary = "too many come at once; try again later"


class RestLink(Link):
    """One runtime's requests, as the acceptor sees them."""

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

    # ---- the link, as the node uses it

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        """Return when the runtime has read them, or has left and wants none."""
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
        """Make the waiting client ask again: its request is the sign of life."""
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

    # ---- the requests it is made of

    def acknowledge(self, after: int) -> None:
        """Note up to where the runtime has read.

        Raises:
            CursorError: It cannot have read that, or has asked for later ones before.
            RestGoneError: It is closed.
        """
        self._check_there()
        self.heard_at = trio.current_time()
        self._window.acknowledge(after)
        self._wake_readers()

    async def post(self, frame: bytes) -> None:
        """Hand a frame to the node; waits until it is taken.

        Cancelled: it was taken or not.

        Raises:
            PostsPileUpError: Too many wait already.
            RestGoneError: It is closed, or closed while this waited.
        """
        self._check_there()
        self.heard_at = trio.current_time()
        if self._inbound.statistics().tasks_waiting_send >= REST_POSTS:
            raise PostsPileUpError
        try:
            await self._inbound.send(frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise RestGoneError from exc

    async def post_numbered(self, frame: bytes, number: int) -> None:
        """Hand a frame to the node, once: the last number again is taken for the same post.

        Args:
            frame: The frame.
            number: Number of the post.

        Raises:
            PostNumberError: Another number is due.
            PostsPileUpError: As of `post`; it may be posted again.
            RestGoneError: As of `post`.
        """
        if number == self._posted:
            self._check_there()
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
        """Return the messages behind a number, as soon as there are any.

        None are returned when the runtime should show that it is there, by asking again.

        Args:
            number: Number of the last received message.
            turn: Number of the wait.

        Raises:
            NewerPollError: A newer request has replaced this one.
            RestGoneError: It is closed.
        """
        pings = self._pings
        while not (waiting := self._window.after(number)):
            self._check_there()
            if turn != self._turn:
                raise NewerPollError
            if pings != self._pings:
                return ()
            await self._change.wait()
        return waiting

    async def wait_read(self, number: int) -> bool:
        """Wait until the runtime has read up to a number; False: a newer request came."""
        while self._window.acknowledged < number and self.close_reason is None:
            await self._change.wait()
        return self.close_reason is None

    def begin(self) -> int:
        """Begin to wait for messages, instead of earlier requests; return the wait's number."""
        self._turn += 1
        self._wake_readers()
        return self._turn

    async def take(self, turn: int) -> bytes:
        """Return the next message, which gets no number: an answer to control of the session.

        Raises:
            NewerPollError: A newer request has replaced this one.
            RestGoneError: It is closed.
        """
        # A ping asks for a sign of life, which a waiting client cannot give.
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

    def _check_there(self) -> None:
        if self.close_reason is not None or self._has_left:
            raise RestGoneError


class RestLinks(Listener):
    """The listener of such links, which also finds them by the tokens of their sessions.

    A link lives as long as the connection that serves it; nothing here keeps it longer.
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

    def come(self, host: str) -> RestLink:
        """Admit a client without a session.

        Raises:
            TurnedAwayError: Not now.
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
        """Note by which token a link is found from now on.

        Args:
            link: The link.
            token: Token of the session.
        """
        self._by_token[_digest(token)] = link

    def set_challenge(self, link: RestLink, challenge: str) -> None:
        """Note by which challenge a link is found, once: a proof goes where that came from.

        Args:
            link: The link.
            challenge: The challenge that the node gave.
        """
        self._by_challenge[_digest(challenge)] = link

    def prover(self, challenge: str | None) -> RestLink | None:
        """Return the link that was given a challenge, and find it by that no more."""
        link = None if challenge is None else self._by_challenge.pop(_digest(challenge), None)
        return None if link is None or link.close_reason is not None else link

    def find_session(self, token: str | None) -> RestLink | None:
        """Return the link that has the session of a token."""
        link = None if token is None else self._by_token.get(_digest(token))
        return None if link is None or link.close_reason is not None else link

    def find(self, token: str | None) -> RestLink:
        """Return the link that has the session of a token.

        Raises:
            RestGoneError: None has.
        """
        link = self.find_session(token)
        if link is None:
            raise RestGoneError
        return link


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
