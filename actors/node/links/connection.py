"""Links of a node with their send queues, and the order in which they are written (RELIABILITY L2).

The bus never waits for a link. `loop.py` reports which links have data to read.
"""

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import trio

from actors.kit.counters import Tally
from actors.kit.log import get_logger
from actors.node.links.acceptor import Acceptor, Item
from actors.node.policy_hook import Asker
from fsm.limits.rates import ErrorWindow
from fsm.session.node_session import Beat, Heartbeat
from fsm.session.node_session_io import Liveness, OutboundMessage, PeerForm
from specs.addresses.address import is_node
from specs.identity import Stamp
from specs.limits.protocol import (
    FRAME_MESSAGES,
    GOODBYE_TIMEOUT,
    HANDSHAKE_TIMEOUT,
    WRITE_BYTES,
    WRITE_SLICE,
)
from specs.reply_code import LinkEnd
from transports.codec import BadLine
from transports.errors import (
    CloseReason,
    FrameTooLargeError,
    FrameTooSlowError,
    LinkBrokenError,
    LinkError,
)
from transports.link import Link

if TYPE_CHECKING:
    from actors.node.links.loop import Links
    from actors.node.session.fan_out import FanOuts

_log = get_logger("actors.node")

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")


def _without_values(line: BadLine) -> str:
    """Return why a line is no message, without the quoted values, which must not get into logs."""
    return _QUOTED.sub("'…'", line.error.reason)


def _take_frame(entries: deque[OutboundMessage], room: int) -> tuple[list[OutboundMessage], int]:
    """Remove messages for a frame of `room` bytes, at least one; return them and their size."""
    taken: list[OutboundMessage] = []
    size = 0
    while entries and len(taken) < FRAME_MESSAGES:
        size += len(entries[0].line)
        if taken and size > room:
            return taken, size - len(entries[0].line)
        taken.append(entries.popleft())
    return taken, size


_ENDS: Final[Mapping[CloseReason, LinkEnd]] = MappingProxyType(
    {
        CloseReason.DONE: LinkEnd.CLOSED,
        CloseReason.GOING_AWAY: LinkEnd.GOING_AWAY,
        CloseReason.REFUSED: LinkEnd.REFUSED,
        CloseReason.TOO_LARGE: LinkEnd.TOO_LARGE,
        CloseReason.INTERNAL: LinkEnd.BROKEN,
        CloseReason.SLOW_CONSUMER: LinkEnd.SLOW_CONSUMER,
    }
)
"""Counted end of a link for each close reason, if no other end is known."""


class Connection:
    """Link of the node to a peer: reads its messages, and has the queue of messages to the peer.

    No method waits, except for tasks: a write to a peer that reads slowly, and an orderly close. A
    peer that does not read within `write_timeout` is disconnected, as is a peer that opens no
    session in time. A peer that sends too much is read more slowly.

    Queued messages count in the budget of the node until the link has written them, since they
    occupy memory. The frames that carry them count, too.

    Attributes:
        number: Number of the link; no other link of the node ever has it.
        host: Host of the peer; empty: not known.
        close_reason: Close reason that the peer is sent.
        end: Why the link is closed; None: it stays open. The first reason counts.
        runtime: Runtime whose session the link has; None: no session yet.
        turn: Links that the bus writes next; None: the bus does not know this link yet.
        asker: Known facts about the sender of the messages, for policies.
        is_over: Whether the bus has been told that the link is gone.
        framed: Size of the frames that are being written, in bytes.
        is_begun: Whether the link has begun to write messages and has not finished.
        is_held: Whether writing is suspended.
        is_idle: Whether a new message must start a write.
        is_leaving: Whether the link is to be closed when the queue is written.
    """

    __slots__ = (
        "_at_once", "_budget", "_bytes", "_counters", "_entries", "_errors", "_heart", "_holds",
        "_is_choked", "_is_closed", "_is_reading", "_is_working", "_limits", "_links", "_old",
        "_resting", "_session_until", "_silence", "_taken", "_why", "_writing", "acceptor",
        "asker", "close_reason", "end", "framed", "host", "is_begun", "is_held", "is_idle",
        "is_leaving", "is_over", "link", "name", "number", "runtime", "turn",
    )  # fmt: skip

    def __init__(self, number: int, link: Link, acceptor: Acceptor, links: "Links") -> None:
        self.number: Final = number
        self.name: Final = link.name
        self.link: Final = link
        self.acceptor: Final = acceptor
        self._links: Final = links
        self._limits: Final = links.bounds.limits
        self._budget: Final = links.bounds.budget
        self._counters: Final = links.bounds.counters
        self.host = "" if link.guest is None else link.guest.host
        self.close_reason = CloseReason.DONE
        self.end: LinkEnd | None = None
        self.runtime: str | None = None
        self.asker = Asker()
        self.turn: TurnWrites | None = None
        self.is_over = False
        pace = self._limits.messages
        is_paced = math.isfinite(pace.per_second)
        self._at_once: Final = min(FRAME_MESSAGES, pace.burst) if is_paced else FRAME_MESSAGES
        self._errors: ErrorWindow | None = None
        now = trio.current_time()
        self._session_until = now + HANDSHAKE_TIMEOUT
        if link.guest is not None:  # leave half of the time to a peer that a slow node has delayed
            self._session_until = max(link.guest.until, now + HANDSHAKE_TIMEOUT / 2)
        self._silence: trio.Event | None = None
        self._is_working = self._is_choked = False
        self._holds = 0
        self._heart: Final = Heartbeat() if acceptor.liveness is Liveness.BY_LINK else None
        self._resting: trio.CancelScope | None = None
        self._is_reading = True
        self._why = ""
        self._taken: Sequence[OutboundMessage] = ()
        # Most links have nothing to write most of the time: an empty queue takes 760 bytes.
        self._old: deque[OutboundMessage] | None = None
        self._entries: deque[OutboundMessage] | None = None
        self._bytes = self.framed = 0
        self._writing: trio.CancelScope | None = None
        self.is_begun = self.is_held = self.is_leaving = self._is_closed = False
        self.is_idle = True

    # ---- the outbox

    @property
    def held(self) -> list[OutboundMessage]:
        """The messages in the queue, in order; those that are being written come first."""
        return [*self._taken, *(self._old or ()), *(self._entries or ())]

    @property
    def waiting(self) -> int:
        """Number of messages in the queue, without those that are being written."""
        return len(self._entries or ()) + len(self._old or ())

    def put(self, entry: OutboundMessage) -> bool:
        """Add a message to the queue; return False if the queue is full or the link is closed."""
        waiting = self._bytes + len(entry.line)
        entries = self._entries
        if entries is None:
            entries = self._entries = deque()
        if (
            self._is_closed
            or waiting > self._limits.outbox_bytes
            or len(entries) >= self._limits.outbox_messages
        ):
            return False
        entries.append(entry)
        self._bytes = waiting
        self._budget.hold(entry)
        self._add_to_turn()
        return True

    def refill(self, entries: Iterable[OutboundMessage]) -> None:
        """Put the messages that waited for the session first in the queue, without limit."""
        old = self._old = self._old or deque()
        for entry in entries:
            old.append(entry)
            self._budget.hold(entry)
        self._add_to_turn()

    def hold(self) -> None:
        """Suspend writing until `release` is called equally often, or until the link is closed."""
        self._holds += 1
        self.is_held = True

    def release(self) -> None:
        """Undo one call of `hold`; if no other remains, write the queue."""
        self._holds -= 1
        if not self._holds and self.is_held:
            self.is_held = False
            if self.is_idle:
                self.wake()

    def _add_to_turn(self) -> None:
        if not self.is_idle or self.is_held:
            return
        if self.turn is None:
            self.wake()
        else:
            self.is_idle = False
            self.turn.add(self)

    def take(self) -> Sequence[OutboundMessage]:
        """Remove the messages for the next frame from the queue, and return them.

        The previous messages must have been written. If the link has begun to write, return the
        same messages again.
        """
        if not self.is_begun:
            self._taken = () if self.is_held else self._next()
        return self._taken

    def _next(self) -> list[OutboundMessage]:
        room = 1 if self._budget.is_tight else WRITE_BYTES
        if self._old:
            taken, _ = _take_frame(self._old, room)
            self._old = self._old or None
            return taken
        if not self._entries:
            return []
        taken, size = _take_frame(self._entries, room)
        self._entries = self._entries or None
        self._bytes -= size
        return taken

    def _frames(self) -> tuple[bytes, ...]:
        """Make the frames for the messages that `take` returned; count them in the budget.

        Return no frames if the link has already begun to write them.
        """
        if self.is_begun:
            return ()
        made = tuple(self.acceptor.write(self._taken))
        if not self._is_closed:
            self.framed = sum(map(len, made))
            self._budget.used += self.framed
            for entry in self._taken:
                if entry.spelt:
                    self._budget.reweigh(entry)
        return made

    def finish_write(self) -> None:
        """Remove the messages that were written from the budget, and count them as sent."""
        taken, self._taken = self._taken, ()
        self.is_begun = False
        self._counters.sent[self.acceptor.wire] += len(taken)
        self._release(taken)

    def _release(self, entries: Iterable[OutboundMessage]) -> None:
        """Remove messages, and the frames that were being written, from the budget."""
        self._budget.used -= self.framed
        for entry in entries:
            self._budget.release(entry)
        self.framed = 0

    def write_now(self) -> bool:
        """Write as much of the queue as the link accepts without waiting; a task writes the rest.

        Returns:
            Whether the link was written to, which takes time; to start a task takes nearly none.
        """
        is_clear = not self.is_leaving and self.link.is_clear
        if is_clear and self._write_all():
            self.is_idle = True
        else:
            self.wake()
        return is_clear

    def _write_all(self) -> bool:
        """Write what the link accepts without waiting; return whether no more can be written."""
        if self.take():
            self.is_begun = not self.link.write_now(self._frames())
            if self.is_begun:
                return False
            self.finish_write()
        return self.is_held or not (self._entries or self._old)

    def write_shared(
        self, entries: Sequence[OutboundMessage], wrapped: dict[type[Link], bytes]
    ) -> bool:
        """Write messages without waiting that are the same for many links; a task writes the rest.

        Args:
            entries: The messages.
            wrapped: Encoded messages for each class of links; this method adds a missing one.

        Returns:
            Whether the link has accepted the messages.
        """
        link = self.link
        is_busy = self.is_held or self.is_leaving or self._entries or self._old
        if is_busy or not (self.is_idle and self.acceptor.writes_alike and link.is_clear):
            return False
        data = wrapped.get(type(link))
        if data is None:
            size = sum(len(entry.line) for entry in entries)
            # The bytes are made once for all links, which have the same limits.
            if size > self._limits.outbox_bytes or len(entries) > self._limits.outbox_messages:
                return False
            data = wrapped[type(link)] = link.wrapped(tuple(self.acceptor.write(entries)))
        self.is_begun = not link.write_wrapped(data)
        if not self.is_begun:
            self._counters.sent[self.acceptor.wire] += len(entries)
            return True
        self._taken = tuple(entries)
        self.framed = len(data)
        self._budget.count(self.framed)
        for entry in entries:
            self._budget.hold(entry)
        self.wake()
        return True

    def wake(self) -> None:
        """Start the task that writes the queue, unless it runs."""
        self.is_idle = False
        self._work()

    def _close_outbox(self) -> list[OutboundMessage]:
        """Close the queue, stop the running write, and return the messages that were not written.

        This includes messages of the running write that the peer has certainly not read.
        """
        self._is_closed = True
        self._interrupt()
        entries = self.held
        rest = entries[max(0, len(self._taken) - self.link.unread()) :]
        self._taken = ()
        self._old = self._entries = None
        self._bytes = 0
        self._release(entries)
        return rest

    def _interrupt(self) -> None:
        """Cancel the running write, because its peer has gone."""
        if self._writing is not None:
            self._writing.cancel()

    # ---- facts about the peer, from the bus

    def set_runtime(self, runtime: str) -> None:
        """Record that the link has the session of a runtime now."""
        self.runtime = runtime
        self._session_until = math.inf
        self._settle_guest()

    def set_asker(self, asker: Asker) -> None:
        """Set the facts about the sender of the messages that are read from now on.

        Idempotent.

        Args:
            asker: Known facts about the sender over the link's session.
        """
        if asker is self.asker:
            return
        self.asker = asker
        is_own = self.acceptor.form is PeerForm.OWN
        is_of_several = asker.runtime is not None and is_node(asker.runtime)
        self.acceptor.stamp = Stamp(
            asker.sender, is_read=is_own and is_of_several, is_kept=not is_own
        )

    # ---- the end by order of the bus

    def finish(self, close_reason: CloseReason, end: LinkEnd | None = None) -> None:
        """Write the queue, then close the link with a close reason.

        Args:
            close_reason: Reason that the peer is sent.
            end: Reason that is counted.
        """
        self.is_held = False
        self._end_by(close_reason, end)
        self._leave()

    def go_away(self) -> None:
        """Write the queue, send the close reason, and wait until the peer has read it.

        Messages that the peer sent before are still read.
        """
        if not self.is_leaving:
            self._silence = trio.Event()
        self.finish(CloseReason.GOING_AWAY)

    def stop_reading(self) -> None:
        """Stop reading the messages of the peer. Idempotent."""
        self._is_reading = False
        self._links.ignore(self)
        if self._silence is not None:
            self._silence.set()

    def cut(self, close_reason: CloseReason, end: LinkEnd | None = None) -> list[OutboundMessage]:
        """Close the link without writing the queue; return the messages that were not written.

        Args:
            close_reason: Reason that the peer is sent.
            end: Reason that is counted.
        """
        self._end_by(close_reason, end)
        unsent = self._close_outbox()
        self._leave()
        return unsent

    def _end_by(self, close_reason: CloseReason, end: LinkEnd | None) -> None:
        if not self.is_over:
            self.close_reason = close_reason
            self.end = self.end or end or _ENDS[close_reason]

    # ---- the end by the link itself

    def lose(self, end: LinkEnd, why: str, close_reason: CloseReason | None = None) -> None:
        """Close the link because of a failure or limit; write nothing more to the peer.

        Args:
            end: Reason that is counted.
            why: Reason for the log.
            close_reason: Reason that the peer is sent.
        """
        self._why = self._why or why
        if self.end is None:
            self.end = end
            self.close_reason = close_reason or self.close_reason
        self._leave()

    def _leave(self) -> None:
        if not self.is_leaving:
            self.is_leaving = True
            self._work()

    def make_room(self) -> None:
        """Close the link in favour of newer connections, because the node has too many."""
        self.lose(LinkEnd.MADE_ROOM, "made room for newer ones", CloseReason.REFUSED)

    def time_over(self, now: float) -> None:
        """Handle the deadline of the link: ping a silent peer, or close the link (R8).

        The link is closed if the peer did not answer a ping, opened no session in time, or has not
        finished a frame in time.
        """
        due = self.link.frame_due
        if due is not None and now >= due and self in self._links.watched:
            self.read()  # the rest of the frame may have arrived
            due = self.link.frame_due
        if self.is_leaving:
            return
        if now >= self._session_until:
            self._give_up(LinkEnd.NO_SESSION, "no session in time")
        elif due is not None and now >= due and self in self._links.watched:
            self._give_up(LinkEnd.SLOW_FRAME, FrameTooSlowError(self.name).reason)
        elif self._heart is not None:
            beat = self._heart.look(self._heard_at, now)
            if beat is Beat.PING:
                self.link.ping()
            elif beat is Beat.GIVE_UP:
                self._give_up(LinkEnd.SILENT, "silent, and a ping was not answered")

    def _give_up(self, end: LinkEnd, why: str) -> None:
        self.lose(end, why, CloseReason.REFUSED)
        self._interrupt()

    @property
    def _heard_at(self) -> float:
        """Time of the peer's last sign of life; the present time while the link is not read."""
        is_read = self.link.descriptor is None or self in self._links.watched
        return self.link.heard_at if is_read else trio.current_time()

    def deadline(self) -> float:
        """Return when to call `time_over`; infinity for a link that is being closed."""
        if self.is_leaving:
            return math.inf
        due = self.link.frame_due if self in self._links.watched else None
        heart = math.inf if self._heart is None else self._heart.deadline(self._heard_at)
        return min(self._session_until, heart, math.inf if due is None else due)

    # ---- reading

    def read(self) -> None:
        """Read the frames that have arrived and pass them to the bus, without waiting."""
        link = self.link
        # Frames that already wait were left over from an earlier, partial read.
        is_behind = link.has_arrived
        link.fill()
        pause = self._take(link.arrived())
        if pause or is_behind or link.has_arrived:
            self._links.ignore(self)
            self._links.begin(self, partial(self._catch_up, pause))
        else:
            self._check_readable()

    async def read_later(self) -> None:
        """Read a link that has no file descriptor, in a task of its own."""
        try:
            while self._is_reading:
                pause = self._take(await self.link.receive())
                if pause:
                    await self.link.rest(pause)
        except LinkError as exc:
            self._end_reading(exc)

    async def _catch_up(self, pause: float) -> None:
        """Read the arrived frames with pauses, because the peer sends much or too much."""
        link = self.link
        try:
            with trio.CancelScope() as self._resting:
                await link.rest(pause)
                while (pause := self._take(link.arrived())) or link.has_arrived:
                    await link.rest(pause)
        except LinkError as exc:
            self._end_reading(exc)
        if self._is_reading and not self.is_over:
            self._links.watch(self)
            self.read()  # the socket does not show the data that TLS has buffered

    def _check_readable(self) -> None:
        link = self.link
        try:
            link.check_readable()
        except LinkError as exc:
            self._end_reading(exc)
            return
        if link.unwritten:
            self.wake()
            if link.unwritten > self.framed:  # answers, which the peer does not read
                self._links.ignore(self)
                self._is_choked = True
        if link.frame_due is not None:
            self._links.arm(self)

    def _take(self, frame: bytes | None) -> float:
        """Pass a frame to the bus; return the seconds to wait before the next read."""
        if frame is None or not self._is_reading:
            return 0
        items = self._items(frame)
        self._counters.received[self.acceptor.wire] += len(items)
        links = self._links
        links.bus.call(links.bus.take_items, self.number, items)
        if BadLine in map(type, items) and not self._tolerates(items):
            self.stop_reading()
            links.bus.call(links.bus.expel, self.number)
            return 0
        who, identity = self.runtime or self.number, self.asker.identity
        return links.bounds.pause(who, identity, len(items) or 1)

    def _items(self, frame: bytes | None) -> Sequence[Item]:
        """Return the messages of a frame and of the frames after it, up to the allowed burst."""
        items: list[Item] = []
        while frame is not None:
            items += self.acceptor.read(frame)
            frame = self.link.arrived() if len(items) < self._at_once else None
        return items

    def _tolerates(self, items: Sequence[Item]) -> bool:
        """Count malformed messages; return False if they are too many for the link to stay open."""
        malformed = [item for item in items if isinstance(item, BadLine)]
        about = {"runtime": self.runtime, "link": self.name}
        if self._errors is None:
            self._errors = ErrorWindow(self._limits.max_malformed)
            _log.warning("malformed message", **about, why=_without_values(malformed[0]))
        is_tolerated = self._errors.add(len(malformed), trio.current_time())
        if not is_tolerated:
            _log.warning("too many malformed messages", **about, why=_without_values(malformed[-1]))
        return is_tolerated

    def _end_reading(self, error: LinkError) -> None:
        """Stop reading, and close the link with the reason that an error gives."""
        match error:
            case FrameTooLargeError():
                self._links.bus.call(self._links.bus.refuse_frame, self.number)
            case FrameTooSlowError():
                self.lose(LinkEnd.SLOW_FRAME, error.reason, CloseReason.REFUSED)
            case LinkBrokenError():
                has_left = error.close_reason is not None
                self.lose(LinkEnd.LEFT if has_left else LinkEnd.BROKEN, error.reason)
            case _:
                self.lose(LinkEnd.CLOSED, str(error))
        self.stop_reading()

    # ---- the writing task

    def _work(self) -> None:
        if not (self._is_working or self.is_over):
            self._is_working = True
            self._links.begin(self, self._write_and_leave)

    async def _write_and_leave(self) -> None:
        """Write until the queue is empty; then close the link if that was ordered."""
        try:
            await self._write()
            if not self.is_leaving:
                return
            if self._silence is not None and not self._why:
                await self._wait_for_goodbye(self._silence)
            self.conclude()
            await self.link.aclose(self.close_reason)
            self._links.remove(self)
        finally:
            self._is_working = False

    async def _write(self) -> None:
        """Write until the queue is empty, the link fails, or the peer reads too slowly."""
        link = self.link
        if self._why:
            return
        with trio.CancelScope() as writing:  # noqa: ASYNC912 - an empty queue needs no wait
            self._writing = writing
            if self._is_closed:
                writing.cancel()
            while self.take() or link.unwritten:
                writing.deadline = trio.current_time() + self._limits.write_timeout
                try:
                    await link.send_many(self._frames())
                except LinkError as exc:
                    self.lose(LinkEnd.BROKEN, str(exc))
                    return
                self.finish_write()
                if self._is_choked and self._is_reading:
                    self._is_choked = False
                    self._links.watch(self)
        if writing.cancelled_caught and trio.current_time() >= writing.deadline:
            _log.warning("slow consumer", runtime=self.runtime, link=self.name)
            self.lose(LinkEnd.SLOW_CONSUMER, "slow consumer", CloseReason.SLOW_CONSUMER)
        self.is_idle = True

    async def _wait_for_goodbye(self, silence: trio.Event) -> None:
        """Send the close reason, and wait until the peer has read it.

        Messages that the peer sent before are still passed on.
        """
        with trio.move_on_after(GOODBYE_TIMEOUT), suppress(LinkError):
            if await self.link.say_goodbye(self.close_reason):
                await silence.wait()

    def conclude(self) -> None:
        """Tell the bus that the link has ended, and stop reading.

        Idempotent.

        The unwritten messages stay here until the bus takes them; the caller closes the link.
        """
        if self.is_over:
            return
        self.is_over = self.is_leaving = True
        self._is_reading = False
        if self._resting is not None:
            self._resting.cancel()
        self._links.forget(self)
        self._settle_guest()
        self.end = self.end or LinkEnd.CLOSED
        why = self._why or "closed by the node"
        if not self._links.bus.call(self._links.bus.remove_link, self.number, self.name, why):
            self._close_outbox()
        self._counters.count(Tally.LINKS_CLOSED, self.end)

    def _settle_guest(self) -> None:
        guest, self.link.guest = self.link.guest, None
        if guest is not None:
            guest.settle()


class TurnWrites:
    """Links that the bus writes after it has processed the messages that have arrived.

    Each link is written once for all its new messages, in one system call. The writes stop when a
    time slice is over. Then links with new messages have half of the next slice, and come before
    links that were left over; messages for many links come last. The bus writes at least as long as
    it does other work, so that the queues do not grow.

    Args:
        clock: Returns real seconds, also while no other task runs.
        shared: The messages for many links; None: there are none.
    """

    def __init__(self, clock: Callable[[], float], shared: "FanOuts | None" = None) -> None:
        self._clock: Final = clock
        self._shared: Final = shared
        self._shared_waiting: Final[Sized] = () if shared is None else shared.waiting
        self._fresh: Final[deque[Connection]] = deque()
        self._late: Final[deque[Connection]] = deque()
        self._is_behind = False
        self._ended = 0.0

    @property
    def is_settled(self) -> bool:
        """True if all writes were done within the time slice."""
        return not (self._fresh or self._late or self._shared_waiting)

    def add(self, connection: Connection) -> None:
        """Add a link that has messages to write; the caller adds each link once before a write."""
        self._fresh.append(connection)

    def write(self) -> None:
        """Write the links for at most a time slice, without waiting."""
        shared = self._shared_waiting
        if not (self._fresh or self._late or shared):
            return
        now = self._clock()
        slice_ = max(WRITE_SLICE, now - self._ended) if self._is_behind else WRITE_SLICE
        self._write(self._fresh, now + (slice_ / 2 if self._late or shared else slice_))
        if self._late:
            self._write(self._late, now + (slice_ * 3 / 4 if shared else slice_))
        if self._shared is not None and shared:
            self._shared.write(self._clock, now + slice_)
        self._late.extend(self._fresh)
        self._fresh.clear()
        self._is_behind = not self.is_settled
        self._ended = self._clock()

    def hand_over(self) -> None:
        """Start a task for each link that is not written yet, because the bus writes no more."""
        if self._shared is not None:
            self._shared.hand_over()
        for connection in (*self._late, *self._fresh):
            connection.wake()
        self._late.clear()
        self._fresh.clear()

    def _write(self, connections: deque[Connection], until: float) -> None:
        while connections:
            # If no link can be written to at once, the clock decides nothing: simulations of
            # the same seed stay equal.
            if connections.popleft().write_now() and self._clock() >= until:
                return
