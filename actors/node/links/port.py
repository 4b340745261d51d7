"""A connection as the bus holds it: its queue, which never waits, bounded (RELIABILITY L2)."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from enum import Enum, auto, unique
from itertools import chain
from time import perf_counter
from types import MappingProxyType
from typing import Final, final

import trio

from actors.kit.counters import Traffic
from actors.kit.supervision.actor import ActorRef
from actors.node.limits import NodeLimits
from actors.node.links.acceptor import Acceptor
from actors.node.policy_hook import Asker
from fsm.session.node_session_io import OutboundMessage, PeerForm
from fsm.session.outbox_budget import OutboxBudget
from specs.addresses.address import is_node
from specs.identity import Stamp
from specs.limits.protocol import FRAME_MESSAGES, WRITE_BYTES, WRITE_SLICE
from specs.reply_code import LinkEnd
from transports.errors import CloseReason
from transports.link import Link


@final
class Outbox:
    """The queue between the bus, which never waits, and the task that writes a link.

    What it holds counts in the budget of the node, also what is being written: until
    the peer has taken it in, it takes room here, and the frames it is written in too.

    Attributes:
        framed: Bytes of the frames that are being written.
        is_begun: Whether the link has taken entries that it has not written whole.
        is_held: Whether nothing is to be written yet.
        is_idle: Whether the writer must be woken for the next entry.
        is_leaving: Whether the writer was ordered to leave.
    """

    __slots__ = (
        "_budget",
        "_bytes",
        "_entries",
        "_is_closed",
        "_limits",
        "_link",
        "_old",
        "_taken",
        "_traffic",
        "_writing",
        "framed",
        "is_begun",
        "is_held",
        "is_idle",
        "is_leaving",
    )  # fmt: skip

    def __init__(self, limits: NodeLimits, link: Link, traffic: Traffic) -> None:
        self._limits: Final = limits
        self._link: Final = link
        self._traffic: Final = traffic
        self._taken: Sequence[OutboundMessage] = ()
        self._entries: deque[OutboundMessage] | None = None  # an empty one takes 760 bytes
        self._bytes = 0
        self._old: deque[OutboundMessage] | None = None
        self._budget: OutboxBudget | None = None
        self.framed = 0
        self.is_begun = False
        self._is_closed = False
        self._writing: trio.CancelScope | None = None
        self.is_held = False
        self.is_idle = True
        self.is_leaving = False

    def __len__(self) -> int:
        return len(self._entries or ()) + len(self._old or ())

    def __iter__(self) -> Iterator[OutboundMessage]:
        """Iterate over the held entries, in order; those being written come first."""
        return chain(self._taken, self._old or (), self._entries or ())

    def count_in(self, budget: OutboxBudget) -> None:
        """Count what it holds in a budget from now on; nothing is put before."""
        self._budget = budget

    def refill(self, entries: Iterable[OutboundMessage]) -> None:
        """Take in what waited for the session: it goes out first, and was bounded there."""
        old = self._old = self._old or deque()
        for entry in entries:
            old.append(entry)
            self._hold(entry)

    def put(self, entry: OutboundMessage) -> bool:
        """Add an entry; return False if there is no room, or the writer has ended."""
        size = len(entry.line)
        waiting = self._bytes + size
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
        if self._budget is not None:
            self._budget.hold(entry)
        return True

    def take(self) -> Sequence[OutboundMessage]:
        """Take out the next entries, at most for one frame; the last ones are written.

        Entries that the link has begun to write are returned again.
        """
        if not self.is_begun:
            self._taken = () if self.is_held else self._next()
        return self._taken

    def _next(self) -> list[OutboundMessage]:
        is_tight = self._budget is not None and self._budget.is_tight
        room = 1 if is_tight else WRITE_BYTES
        # Most sessions have nothing to write most of the time, and keep no empty queues.
        if self._old:
            taken, _ = _first(self._old, room)
            self._old = self._old or None
            return taken
        if not self._entries:
            return []
        taken, size = _first(self._entries, room)
        self._entries = self._entries or None
        self._bytes -= size
        return taken

    def framing(self, acceptor: Acceptor) -> tuple[bytes, ...]:
        """Make the frames of the messages taken; they count until they have been written.

        There are none of those that the link has begun to write.
        """
        if self.is_begun:
            return ()
        made = tuple(acceptor.write(self._taken))
        if self._budget is not None and not self._is_closed:
            self.framed = sum(map(len, made))
            self._budget.used += self.framed
            for entry in self._taken:
                if entry.spelt:
                    self._budget.reweigh(entry)
        return made

    def written(self) -> None:
        """Note that what was taken has left."""
        taken, self._taken = self._taken, ()
        self.is_begun = False
        self._traffic.sent += len(taken)
        self._let_go(taken)

    @property
    def is_clear(self) -> bool:
        """Whether the link can be written to at once."""
        return not self.is_leaving and self._link.is_clear

    def write_now(self, acceptor: Acceptor) -> bool:
        """Write what waits as far as a clear link takes it; return whether nothing is left.

        Args:
            acceptor: Makes frames of the entries.
        """
        if self.take():
            self.is_begun = not self._link.write_now(self.framing(acceptor))
            if self.is_begun:
                return False
            self.written()
        return self.is_held or not (self._entries or self._old)

    def write_shared(
        self, entries: Sequence[OutboundMessage], wrapped: dict[type[Link], bytes], by: Acceptor
    ) -> bool:
        """Write entries at once that other links get, too, without putting them here.

        Args:
            entries: The entries.
            wrapped: The bytes that carry them, for each class of links; made once for all.
            by: Acceptor of the link.

        Returns:
            Whether the link has taken them; `is_begun`: not all of them is written.
        """
        link = self._link
        is_free = self.is_idle and not (self.is_held or self._entries or self._old)
        if not (is_free and by.writes_alike and self.is_clear):
            return False
        data = wrapped.get(type(link))
        if data is None:
            if not self._has_room_for(entries):
                return False
            data = wrapped[type(link)] = link.wrapped(tuple(by.write(entries)))
        self.is_begun = not link.write_wrapped(data)
        if not self.is_begun:
            self._traffic.sent += len(entries)
            return True
        self._taken = tuple(entries)
        self.framed = len(data)
        if self._budget is not None:
            self._budget.count(self.framed)
        for entry in entries:
            self._hold(entry)
        return True

    def _has_room_for(self, entries: Sequence[OutboundMessage]) -> bool:
        """Return whether an empty outbox has room for entries; all of a node are alike."""
        size = sum(len(entry.line) for entry in entries)
        limits = self._limits
        return size <= limits.outbox_bytes and len(entries) <= limits.outbox_messages

    def writing(self) -> trio.CancelScope:
        """Return the scope to write in, until the queue is closed."""
        scope = self._writing = trio.CancelScope()
        if self._is_closed:
            scope.cancel()
        return scope

    def interrupt(self) -> None:
        """Stop the write at hand: its peer has left."""
        if self._writing is not None:
            self._writing.cancel()

    def close(self) -> list[OutboundMessage]:
        """Take in nothing more, stop the write at hand, and give back what was not taken.

        Of what is being written that is what the peer has surely not read.
        """
        self._is_closed = True
        self.interrupt()
        unread = self._taken[len(self._taken) - self._link.unread() :]
        rest = [*unread, *(self._old or ()), *(self._entries or ())]
        held = list(self)
        self._taken = ()
        self._old = self._entries = None
        self._bytes = 0
        self._let_go(held)
        return rest

    def _hold(self, entry: OutboundMessage) -> None:
        if self._budget is not None:
            self._budget.hold(entry)

    def _let_go(self, entries: Iterable[OutboundMessage]) -> None:
        """Release entries, and the frames that were being written."""
        if self._budget is not None:
            self._budget.used -= self.framed
            for entry in entries:
                self._budget.release(entry)
        self.framed = 0


def _first(entries: deque[OutboundMessage], room: int) -> tuple[list[OutboundMessage], int]:
    """Take at most a frame's worth of entries, and at least one if there is one."""
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
"""End of a link for each close reason, where nothing more is known."""


@final
@unique
class Nudge(Enum):
    """Signals to a connection; messages to write are in its outbox."""

    WRITE = auto()
    GRANTED = auto()
    LEAVE = auto()
    GO_AWAY = auto()


@final
class Port:
    """The bus's end of one connection.

    Attributes:
        number: Never used twice in a node.
        host: Host of its peer; empty: not known.
        close_reason: How the link is closed when it is to be left.
        end: Why the link is left; None: it is not. The first reason counts.
        runtime: Whose session the link has; None: it has none yet.
        turn: Writes of the turn of the bus; None: the bus does not know it yet.
        asker: Known facts about the sender over that session.
        silence: Set when the link, to which goodbye is said, is read no more; None: it is not said.
    """

    __slots__ = (
        "_connection",
        "acceptor",
        "asker",
        "close_reason",
        "end",
        "host",
        "name",
        "number",
        "outbox",
        "runtime",
        "silence",
        "turn",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        name: str,
        acceptor: Acceptor,
        outbox: Outbox,
        connection: ActorRef[Nudge],
    ) -> None:
        self.number = number
        self.name = name
        self.host = ""
        self.acceptor = acceptor
        self.close_reason = CloseReason.DONE
        self.end: LinkEnd | None = None
        self.runtime: str | None = None
        self.asker = Asker()
        self.turn: TurnWrites | None = None
        self.silence: trio.Event | None = None
        self.outbox = outbox
        self._connection = connection

    def put(self, entry: OutboundMessage) -> bool:
        """Have an entry written; return False if the peer reads too slowly, or is gone."""
        if not self.outbox.put(entry):
            return False
        self._nudge()
        return True

    def refill(self, entries: Iterable[OutboundMessage]) -> None:
        """Have what waited for the session written before anything else."""
        self.outbox.refill(entries)
        self._nudge()

    def hold(self) -> None:
        """Write nothing until `release`, or until the link is to be left."""
        self.outbox.is_held = True

    def release(self) -> None:
        """Write what waits. Idempotent."""
        if self.outbox.is_held:
            self.outbox.is_held = False
            if self.outbox.is_idle:
                self.wake()

    def granted(self, runtime: str) -> None:
        """Notify the connection that its peer has the session of a runtime."""
        self.runtime = runtime
        self._connection.try_tell(Nudge.GRANTED)

    def belongs_to(self, asker: Asker) -> None:
        """Set the sender of the messages that are read from now on. Idempotent.

        The bus itself sets the sender of messages that were read before and wait for it.

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

    def finish(self, close_reason: CloseReason, end: LinkEnd | None = None) -> None:
        """Write what is left, then say goodbye.

        Args:
            close_reason: Reason that the peer is sent.
            end: Reason that is counted.
        """
        self.outbox.is_held = False
        self._end_by(close_reason, end)
        self._leave()

    def go_away(self) -> None:
        """Write what is left, send the close reason, and wait until the peer has read it.

        Messages that the peer has sent before are still read.
        """
        self.silence = trio.Event()
        self.outbox.is_held = False
        self._end_by(CloseReason.GOING_AWAY, None)
        self._leave(Nudge.GO_AWAY)

    def read_no_more(self) -> None:
        """Read no longer what comes after the goodbye. Idempotent."""
        if self.silence is not None:
            self.silence.set()

    def cut(self, close_reason: CloseReason, end: LinkEnd | None = None) -> list[OutboundMessage]:
        """Leave at once, and give back what was not written.

        Args:
            close_reason: Reason that the peer is sent.
            end: Reason that is counted.
        """
        self._end_by(close_reason, end)
        unsent = self.outbox.close()
        self._leave()
        return unsent

    def ended(self, end: LinkEnd, close_reason: CloseReason | None = None) -> None:
        """Note why the link is left, if nothing is noted yet.

        Args:
            end: Reason that is counted.
            close_reason: Reason that the peer is sent.
        """
        if self.end is None:
            self.end = end
            self.close_reason = close_reason or self.close_reason

    def _end_by(self, close_reason: CloseReason, end: LinkEnd | None) -> None:
        self.close_reason = close_reason
        self.end = self.end or end or _ENDS[close_reason]

    def write_now(self) -> bool:
        """Write what waits as far as the link takes it at once; its task writes the rest.

        Returns:
            Whether it was written to: that takes time, to wake its task takes nearly none.
        """
        outbox = self.outbox
        is_clear = outbox.is_clear
        if is_clear and outbox.write_now(self.acceptor):
            outbox.is_idle = True
        else:
            self.wake()
        return is_clear

    def write_shared(
        self, entries: Sequence[OutboundMessage], wrapped: dict[type[Link], bytes]
    ) -> bool:
        """Write entries at once that other links get, too; its task writes the rest.

        Args:
            entries: The entries.
            wrapped: The bytes that carry them, for each class of links.

        Returns:
            Whether the link has taken them.
        """
        if not self.outbox.write_shared(entries, wrapped, self.acceptor):
            return False
        if self.outbox.is_begun:
            self.wake()
        return True

    def wake(self) -> None:
        """Have the task of the link write what waits; it does so anyway when it is to leave."""
        self.outbox.is_idle = False
        if not self.outbox.is_leaving:
            self._connection.try_tell(Nudge.WRITE)

    def _nudge(self) -> None:
        if not self.outbox.is_idle or self.outbox.is_held:
            return
        if self.turn is None:
            self.wake()
        else:
            self.outbox.is_idle = False
            self.turn.add(self)

    def _leave(self, nudge: Nudge = Nudge.LEAVE) -> None:
        if not self.outbox.is_leaving:
            self.outbox.is_leaving = True
            self._connection.try_tell(nudge)


class SharedWrites(ABC):
    """What many links get, until all have it.

    Args:
        waiting: What not all have yet, in order.
    """

    def __init__(self, waiting: Sized) -> None:
        self.waiting: Final = waiting

    @abstractmethod
    def write(self, clock: Callable[[], float], until: float) -> None:
        """Write it to the next links; never waits.

        Args:
            clock: Returns seconds.
            until: Time by which to stop.
        """

    @abstractmethod
    def hand_over(self) -> None:
        """Put the rest into the outboxes."""


@final
class TurnWrites:
    """The links that got something to write, until the end of a turn of the bus writes it.

    Each is written to once, in one call of the system for all that it got in the turn. When the
    slice of time is over, the rest is left to the next turns: links that got something in those
    go first, and have half of the slice. What many links get comes last. The bus writes at
    least as long as it does other things, so that what waits does not grow for lack of turns.

    Args:
        clock: Returns seconds that pass also within a turn.
        shared: What many links get; None: nothing ever.
    """

    def __init__(
        self, clock: Callable[[], float] = perf_counter, shared: SharedWrites | None = None
    ) -> None:
        self._clock: Final = clock
        self._shared: Final = shared
        self._shared_waiting: Final[Sized] = () if shared is None else shared.waiting
        self._fresh: Final[deque[Port]] = deque()
        self._late: Final[deque[Port]] = deque()
        self._is_behind = False
        self._ended = 0.0

    @property
    def is_settled(self) -> bool:
        """True if nothing is left for the next turn."""
        return not (self._fresh or self._late or self._shared_waiting)

    def add(self, port: Port) -> None:
        """Have a link written to; it is added once until then."""
        self._fresh.append(port)

    def write(self) -> None:
        """Write for a slice of time; never waits."""
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
        """Leave all writes to the tasks of the links: there are no more turns."""
        if self._shared is not None:
            self._shared.hand_over()
        for port in (*self._late, *self._fresh):
            port.wake()
        self._late.clear()
        self._fresh.clear()

    def _write(self, ports: deque[Port], until: float) -> None:
        while ports:
            # Where no link can be written to at once, nothing depends on the clock: simulated
            # runs of the same seed are the same.
            if ports.popleft().write_now() and self._clock() >= until:
                return
