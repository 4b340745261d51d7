"""The listener of a node, and the actor of each link that it accepts (CON-05).

A link's actor has a task that reads and a task that writes. The bus decides.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Tally
from actors.kit.errors import ActorStoppedError
from actors.kit.listener import ListenerActor
from actors.kit.log import get_logger
from actors.kit.supervision import supervisor
from actors.kit.supervision.actor import Actor, ActorRef
from actors.node.links.acceptor import Acceptor, Item
from actors.node.links.port import Nudge, Outbox, Port
from actors.node.messages import BusMessage
from actors.node.session.bounds import Bounds
from fsm.limits.rates import ErrorWindow
from fsm.session.node_session_io import Liveness
from specs.limits.protocol import FRAME_MESSAGES, GOODBYE_TIMEOUT, HANDSHAKE_TIMEOUT
from specs.reply_code import LinkEnd
from transports import errors
from transports.codec import BadLine
from transports.link import Link, Listener, Upgrade

MAILBOX = 8
"""Nudges a connection can have waiting; the bus never sends more than four."""

_log = get_logger("actors.node")


_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")


def _without_values(line: BadLine) -> str:
    """Return why a line is no message; what it quotes of a body is not for a log."""
    return _QUOTED.sub("'…'", line.error.reason)


@final
class Connection(Actor[Nudge]):
    """Carries frames between one link and the bus.

    A peer that does not read blocks this actor's task and no other; the bus
    frees it by cancelling the write, and it gives up by itself in the end. A peer
    that sends too much is read later; one that has no session in time is left.
    """

    def __init__(
        self,
        number: int,
        link: Link,
        make_acceptor: Callable[[], Acceptor],
        bus: ActorRef[BusMessage],
        bounds: Bounds,
    ) -> None:
        self._number: Final = number
        self._link: Final = link
        self._acceptor: Final = make_acceptor()
        self._bus: Final = bus
        self._bounds: Final = bounds
        self._traffic: Final = bounds.counters.traffic[self._acceptor.wire]
        self._outbox: Final = Outbox(bounds.limits, link, self._traffic)
        pace = bounds.limits.messages
        is_paced = math.isfinite(pace.per_second)
        self._at_once: Final = min(FRAME_MESSAGES, pace.burst) if is_paced else FRAME_MESSAGES
        self._errors: ErrorWindow | None = None
        self._session_until = math.inf
        self._is_listening = True
        self._why = ""

    @override
    async def start(self) -> None:
        guest = self._link.guest
        now = trio.current_time()
        self._session_until = now + HANDSHAKE_TIMEOUT
        if guest is not None:  # a node that was slow itself leaves half of the time
            self._session_until = max(guest.until, now + HANDSHAKE_TIMEOUT / 2)
        self._bounds.counters.count(Tally.LINKS_OPENED, self._acceptor.wire)
        self._port = Port(self._number, self._link.name, self._acceptor, self._outbox, self.me)
        if guest is not None:
            self._port.host = guest.host
        await self._bus.tell(lambda node: node.connected(self._port))
        greeting = self._acceptor.greeting()
        if greeting:
            await self._bus.tell(lambda node: node.arrived(self._number, greeting))
        if guest is not None:
            guest.watch(self._make_room)
        self.spawn(self._listen)
        if self._acceptor.liveness is Liveness.BY_LINK:
            self._bounds.heartbeat.watch(self._number, self)

    @override
    async def handle(self, message: Nudge) -> None:
        match message:
            case Nudge.WRITE:
                await self._write()
            case Nudge.GRANTED:
                self._session_until = math.inf
                self._settle()
            case Nudge.LEAVE:
                await self._write()
                self.finish()
            case Nudge.GO_AWAY:
                await self._write()
                await self._read_out()
                self.finish()

    @override
    def deadline(self) -> float:
        return self._session_until

    @override
    async def timed_out(self) -> None:
        self._leave(LinkEnd.NO_SESSION, "no session in time", errors.CloseReason.REFUSED)
        self.finish()

    @override
    async def stop(self) -> None:
        self._outbox.is_leaving = True
        self._settle()
        self._bounds.heartbeat.forget(self._number)
        self._port.ended(LinkEnd.CLOSED)
        why = self._why or "closed by the node"
        try:
            # What was not written is still in the outbox: the bus keeps it for the session.
            await self._bus.tell(lambda node: node.gone(self._number, self._link.name, why))
        except ActorStoppedError:
            self._outbox.close()
        self._bounds.counters.count(Tally.LINKS_CLOSED, self._port.end or LinkEnd.CLOSED)
        await self._link.aclose(self._port.close_reason)

    def _settle(self) -> None:
        guest, self._link.guest = self._link.guest, None
        if guest is not None:
            guest.settle()

    def _make_room(self) -> None:
        self._leave(LinkEnd.MADE_ROOM, "made room for newer ones", errors.CloseReason.REFUSED)

    def _leave(
        self, end: LinkEnd, why: str, close_reason: errors.CloseReason | None = None
    ) -> None:
        """Leave for a reason of this end: the peer cannot be written to any more."""
        self._why = self._why or why
        self._port.ended(end, close_reason)
        if not self._outbox.is_leaving:
            self._outbox.is_leaving = True
            self.me.try_tell(Nudge.LEAVE)

    # ---- writing

    async def _write(self) -> None:
        """Write until there is nothing to write, or no peer to write to."""
        outbox = self._outbox
        if self._why:
            return
        with outbox.writing() as writing:
            while outbox.take():
                writing.deadline = trio.current_time() + self._bounds.limits.write_timeout
                try:
                    await self._link.send_many(outbox.framing(self._acceptor))
                except errors.LinkError as exc:
                    self._leave(LinkEnd.BROKEN, str(exc))
                    return
                outbox.written()
        if writing.cancelled_caught and trio.current_time() >= writing.deadline:
            _log.warning("slow consumer", runtime=self._port.runtime, link=self._link.name)
            self._leave(LinkEnd.SLOW_CONSUMER, "slow consumer", errors.CloseReason.SLOW_CONSUMER)
        outbox.is_idle = True

    # ---- reading

    async def _read_out(self) -> None:
        """Send the close reason, and wait until the peer has read it.

        Messages that the peer has sent before are still passed on.
        """
        with trio.move_on_after(GOODBYE_TIMEOUT), suppress(errors.LinkError):
            silence = self._port.silence
            if await self._link.say_goodbye(self._port.close_reason) and silence is not None:
                await silence.wait()

    async def _listen(self) -> None:
        """Pass on what comes until nothing can come any more."""
        try:
            # Not by a function of its own: a link that waits would keep its frame.
            while True:
                items = self._read_all(await self._link.receive())
                self._traffic.received += len(items)
                self._is_listening = False
                await self._bus.tell(self._bring(items))
                self._is_listening = True
                malformed = [item for item in items if isinstance(item, BadLine)]
                if malformed and not self._bears(malformed):
                    await self._bus.tell(lambda node: node.expel(self._number))
                    return
                pause = self._pause(len(items) or 1)
                if pause:
                    await self._link.rest(pause)
        except errors.FrameTooLargeError:
            await self._bus.tell(lambda node: node.refuse_frame(self._number))
        except errors.FrameTooSlowError as exc:
            self._leave(LinkEnd.SLOW_FRAME, exc.reason, errors.CloseReason.REFUSED)
        except errors.LinkBrokenError as exc:
            async with self._bounds.closings:
                await trio.lowlevel.checkpoint()
            has_left = exc.close_reason is not None
            self._leave(LinkEnd.LEFT if has_left else LinkEnd.BROKEN, exc.reason)
        except (errors.LinkClosedError, ActorStoppedError) as exc:
            self._leave(LinkEnd.CLOSED, str(exc))
        finally:
            self._port.read_no_more()

    def _bring(self, items: Sequence[Item]) -> BusMessage:
        # What is read next is another call's: each keeps its own.
        return lambda node: node.arrived(self._number, items)

    def _pause(self, count: int) -> float:
        """Return how long the peer is not to be read after so many messages."""
        port = self._port
        return self._bounds.pause(port.runtime or port.number, port.asker.identity, count)

    def _read_all(self, frame: bytes | None) -> Sequence[Item]:
        """Read a frame, and those that came with it, up to what the peer may send at once."""
        items: list[Item] = []
        while frame is not None:
            items += self._acceptor.read(frame)
            frame = self._link.arrived() if len(items) < self._at_once else None
        return items

    def _bears(self, malformed: Sequence[BadLine]) -> bool:
        """Return whether the link may stay; the first malformed message of it is logged."""
        about = {"runtime": self._port.runtime, "link": self._link.name}
        if self._errors is None:
            self._errors = ErrorWindow(self._bounds.limits.max_malformed)
            _log.warning("malformed message", **about, why=_without_values(malformed[0]))
        is_borne = self._errors.add(len(malformed), trio.current_time())
        if not is_borne:
            _log.warning("too many malformed messages", **about, why=_without_values(malformed[-1]))
        return is_borne

    # ---- the heartbeat (R8)

    @property
    def heard_at(self) -> float:
        """Time of the last sign of life of the peer; the present while this end does not read."""
        return self._link.heard_at if self._is_listening else trio.current_time()

    def ask(self) -> None:
        """Ask the peer for a sign of life."""
        self._link.ping()

    def give_up(self) -> None:
        """Leave the peer: it gave none."""
        self._leave(
            LinkEnd.SILENT, "silent, and a ping was not answered", errors.CloseReason.REFUSED
        )
        self._outbox.interrupt()


AcceptorMaker: TypeAlias = Callable[[Upgrade], Acceptor]
"""Makes the acceptor of one link out of what its dialler asked for."""


@final
@attrs.frozen
class LinkSources:
    """The listeners of links, and their terms; outlives an acceptor that is restarted."""

    listeners: tuple[Listener, ...]
    acceptors: Mapping[str, AcceptorMaker]
    numbers: Iterator[int]
    bounds: Bounds


@final
class SessionListener(ListenerActor):
    """Accepts the links of sessions."""

    def __init__(
        self, sources: LinkSources, bus: ActorRef[BusMessage], monitor: supervisor.Monitor
    ) -> None:
        super().__init__("connections", sources.listeners, monitor)
        self._sources = sources
        self._bus = bus

    @override
    async def start(self) -> None:
        await super().start()
        self.spawn(self._sources.bounds.heartbeat.run)

    @override
    async def admit(self, link: Link, connections: supervisor.Supervisor) -> None:
        sources = self._sources
        number = next(sources.numbers)
        acceptor = partial(sources.acceptors[link.upgrade.path], link.upgrade)
        make = partial(Connection, number, link, acceptor, self._bus, sources.bounds)
        spec = supervisor.ChildSpec(
            f"connection:{number}", make, supervisor.Restart.TEMPORARY, MAILBOX
        )
        await connections.start_child(spec)
