"""One link of a node stub: its tasks get the login token, dial, read and write."""

import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.runtime.stubs.credentials import CredentialsError
from actors.runtime.stubs.wire import (
    NodeWire,
)
from transports.errors import CloseReason, DialError, FrameTooLargeError, LinkBrokenError, LinkError
from transports.link import Link


@attrs.frozen(slots=True)
class Opened:
    """The link is open."""

    attempt: int


@attrs.frozen(slots=True)
class Unavailable:
    """There is no link, or it has ended.

    Attributes:
        attempt: Number of the attempt.
        why: Reason for people.
        is_left: Whether the node has closed it because it goes down in order.
        is_too_large: Whether the node has sent a frame over the limit.
    """

    attempt: int
    why: str
    is_left: bool = False
    is_too_large: bool = False


@attrs.frozen(slots=True)
class Read:
    """A frame was received."""

    attempt: int
    frame: bytes


@attrs.frozen(slots=True)
class Wrote:
    """The link has taken messages.

    Attributes:
        attempt: Number of the attempt.
        messages: How many messages.
    """

    attempt: int
    messages: int


@attrs.frozen(slots=True)
class Obtained:
    """There is a login token for the link, or none to be had.

    Attributes:
        attempt: Number of the attempt.
        login: The token, empty if none is shown; or why there is none.
    """

    attempt: int
    login: str | CredentialsError = attrs.field(repr=False)


LinkEvents: TypeAlias = Opened | Unavailable | Read | Wrote | Obtained

Login: TypeAlias = Callable[[], Awaitable[str | CredentialsError]]
"""Returns a login token, or why there is none; it raises nothing."""


class NodeLink:
    """One attempt at a link, and its life.

    Attributes:
        attempt: Its number; reports of earlier attempts are ignored.
        wire: The protocol that is spoken with the node.
        name: Name of the link, for traces; empty before it is open.
        lines: What was given since the last write.
        token: The login token for its first open; None: there is none at hand.
        shown: The login token that the last open showed, which its repetition with a proof shows
            again; None: it showed none.
    """

    def __init__(
        self, attempt: int, wire: NodeWire, owner: ActorRef[LinkEvents], login: Login | None = None
    ) -> None:
        """Construct the link; `run` dials.

        Args:
            attempt: Number of the attempt.
            wire: The protocol that is spoken with the node.
            owner: The stub.
            login: What gets the token for a login; None: the session may need none.
        """
        self.attempt = attempt
        self.wire = wire
        self.name = ""
        self.token: str | CredentialsError | None = None
        self.shown: str | None = None
        self._login = login
        self._owner = owner
        self._link: Link | None = None
        self._asked_at = math.inf
        self._scope = trio.CancelScope()
        self.lines: deque[bytes] = deque()
        self._messages = 0
        self._is_left = False
        self._is_too_large = False
        self._wake = trio.Event()

    async def run(self) -> None:
        """Get the token, dial, then read and write until the link breaks or `hang_up` is called.

        The node waits for a login only for seconds: the token is there before it is dialled.

        The stub gets `Opened` and at the end `Unavailable`.

        If cancelled, the link is closed, and the stub gets no report.
        """
        why = "hung up"
        with self._scope:
            try:
                if self._login is not None and self.token is None:
                    self.token = await self._login()
                why = await self._live(await self.wire.dial())
            except (DialError, LinkError) as error:
                why = str(error)
        await self._report(Unavailable(self.attempt, why, self._is_left, self._is_too_large))

    async def login(self, login: Login) -> None:
        """Get a login token while the link is open; the stub gets `Obtained`.

        If cancelled, the stub gets no report.
        """
        await self._report(Obtained(self.attempt, await login()))

    async def _report(self, happened: LinkEvents) -> None:
        # A stub that has stopped needs no report; its tasks are cancelled at once.
        with suppress(ActorStoppedError):
            await self._owner.tell(happened)

    async def _live(self, link: Link) -> str:
        self.name = link.name
        self._link = link
        try:
            await self._report(Opened(self.attempt))
            why = "it cannot be written to"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, link, nursery.cancel_scope)
                why = await self._read(link)
                nursery.cancel_scope.cancel()
            return why
        finally:
            with trio.CancelScope(shield=True):
                reason = CloseReason.TOO_LARGE if self._is_too_large else CloseReason.DONE
                await link.aclose(reason)

    async def _read(self, link: Link) -> str:
        try:
            while True:
                frame = await link.receive()
                await self._report(Read(self.attempt, frame))
        except LinkError as error:
            left = isinstance(error, LinkBrokenError) and error.close_reason
            self._is_left = left is CloseReason.GOING_AWAY
            self._is_too_large = isinstance(error, FrameTooLargeError)
            return str(error)

    async def _write(self, link: Link, scope: trio.CancelScope) -> None:
        while True:
            if not self.lines:
                self._wake = trio.Event()
                await self._wake.wait()
                continue
            lines, self.lines = self.lines, deque()
            messages, self._messages = self._messages, 0
            try:
                await link.send_many(tuple(self.wire.frames(lines)))
            except LinkError:
                scope.cancel()
                return
            await self._report(Wrote(self.attempt, messages))

    def control(self, line: bytes) -> None:
        """Write a line that counts as no message, with the next `flush`."""
        self.lines.append(line)

    def message(self, line: bytes) -> None:
        """Write a message with the next `flush`; `Wrote` counts it."""
        self.lines.append(line)
        self._messages += 1

    def flush(self) -> None:
        """Write the lines since the last call; they may share frames."""
        self._wake.set()

    def ping(self) -> None:
        """Ask the link itself for a sign of life; `sign_of_life` returns it."""
        if self._link is not None:
            self._asked_at = trio.current_time()
            self._link.ping()

    def sign_of_life(self) -> float | None:
        """Return the Trio time of the sign of life after `ping`; None: it has not come."""
        if self._link is None or self._link.heard_at < self._asked_at:
            return None
        self._asked_at = math.inf
        return self._link.heard_at

    def hang_up(self) -> None:
        """End at once, in any state. Idempotent."""
        self._scope.cancel()
