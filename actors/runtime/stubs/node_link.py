"""The link of a node stub: its tasks dial, read and write, and report to the stub."""

import math
from collections import deque
from contextlib import suppress
from typing import TypeAlias, final

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.runtime.stubs.wires.wire import NodeWire
from transports.errors import DialError, LinkError
from transports.link import Link

__all__ = ["LinkEvents", "NodeLink", "Opened", "Read", "Unavailable", "Wrote"]


@final
@attrs.frozen(slots=True)
class Opened:
    """The link is open."""

    attempt: int


@final
@attrs.frozen(slots=True)
class Unavailable:
    """There is no link, or it has ended.

    Attributes:
        attempt: Number of the attempt.
        why: Reason for people.
    """

    attempt: int
    why: str


@final
@attrs.frozen(slots=True)
class Read:
    """A frame was received."""

    attempt: int
    frame: bytes


@final
@attrs.frozen(slots=True)
class Wrote:
    """The link has taken messages.

    Attributes:
        attempt: Number of the attempt.
        messages: How many messages.
    """

    attempt: int
    messages: int


LinkEvents: TypeAlias = Opened | Unavailable | Read | Wrote


@final
class NodeLink:
    """One attempt at a link, and its life.

    Attributes:
        attempt: Its number; reports of earlier attempts are ignored.
        wire: The protocol that is spoken with the node.
        name: Name of the link, for traces; empty before it is open.
    """

    def __init__(self, attempt: int, wire: NodeWire, owner: ActorRef[LinkEvents]) -> None:
        self.attempt = attempt
        self.wire = wire
        self.name = ""
        self._owner = owner
        self._link: Link | None = None
        self._asked_at = math.inf
        self._scope = trio.CancelScope()
        self._lines: deque[bytes] = deque()
        self._messages = 0
        self._wake = trio.Event()

    async def run(self) -> None:
        """Dial, then read and write until the link breaks or `hang_up` is called.

        The stub is told `Opened` and at the end `Unavailable`.

        If cancelled, the link is closed, and the stub is not told.
        """
        why = "hung up"
        with self._scope:
            try:
                why = await self._live(await self.wire.dial())
            except (DialError, LinkError) as error:
                why = str(error)
        await self._tell(Unavailable(self.attempt, why))

    async def _tell(self, news: LinkEvents) -> None:
        # A stub that has stopped wants no news; its tasks are cancelled at once.
        with suppress(ActorStoppedError):
            await self._owner.tell(news)

    async def _live(self, link: Link) -> str:
        self.name = link.name
        self._link = link
        try:
            await self._tell(Opened(self.attempt))
            why = "it cannot be written to"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, link, nursery.cancel_scope)
                why = await self._read(link)
                nursery.cancel_scope.cancel()
            return why
        finally:
            with trio.CancelScope(shield=True):
                await link.aclose()

    async def _read(self, link: Link) -> str:
        try:
            while True:
                frame = await link.receive()
                await self._tell(Read(self.attempt, frame))
        except LinkError as error:
            return str(error)

    async def _write(self, link: Link, scope: trio.CancelScope) -> None:
        while True:
            if not self._lines:
                self._wake = trio.Event()
                await self._wake.wait()
                continue
            lines, self._lines = self._lines, deque()
            messages, self._messages = self._messages, 0
            try:
                await link.send_many(tuple(self.wire.frames(lines)))
            except LinkError:
                scope.cancel()
                return
            await self._tell(Wrote(self.attempt, messages))

    def control(self, line: bytes) -> None:
        """Write a line that counts as no message, with the next `flush`."""
        self._lines.append(line)

    def message(self, line: bytes) -> None:
        """Write a message with the next `flush`; `Wrote` counts it."""
        self._lines.append(line)
        self._messages += 1

    def flush(self) -> None:
        """Write the lines since the last call; they may share frames."""
        if self._lines:
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
        """End at once, whatever is under way. Idempotent."""
        self._scope.cancel()
