"""Accept and read the links of a node: one task reads all sockets.

With a task for each socket, each message would wake a task and register its socket again. With many
peers that is most of the cost of a message (MEASURED J).
"""

import math
import selectors
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Never, TypeAlias

import trio
from typing_extensions import override

from actors.kit.counters import Tally
from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import Crash, Monitor
from actors.node.links.acceptor import Acceptor
from actors.node.links.bounds import Bounds
from actors.node.links.connection import Connection
from fsm.limits.timers import Alarms
from specs.limits.protocol import LATE, PONG_TIMEOUT, READ_SLICE
from specs.reply_code import LinkEnd
from transports.errors import CloseReason, LinkClosedError
from transports.link import Link, Listener, Upgrade

if TYPE_CHECKING:
    from actors.node.bus import NodeBus

_log = get_logger("actors.node")

AcceptorMaker: TypeAlias = Callable[[Upgrade], Acceptor]
"""Makes the acceptor of a link, which knows the wire form, from the peer's upgrade request."""


class Links(Actor[Never]):
    """Actor that accepts the links of a node, reads them, and runs their tasks and timers.

    Attributes:
        bounds: Limits of the links, and how much of each limit is in use.
        bus: The bus; its methods are called through `call` only.
        watched: File descriptor of each connection that is read whenever data arrives.

    Args:
        monitor: Records crashes of links.
        listeners: Accept links.
        acceptors: Makers of acceptors, by the URL path to which a peer connects.
        numbers: Yields the number for each new link.
    """

    def __init__(
        self,
        bus: "NodeBus",
        bounds: Bounds,
        monitor: Monitor,
        listeners: Sequence[Listener],
        acceptors: Mapping[str, AcceptorMaker],
        numbers: Iterator[int],
    ) -> None:
        self._listeners: Final = listeners
        self._acceptors: Final = acceptors
        self._numbers: Final = numbers
        self._accepting: Final = trio.CancelScope()
        self.bounds: Final = bounds
        self._alarms: Final = Alarms[int]()
        self._alarm_at = math.inf
        self.bus: Final = bus
        self._monitor: Final = monitor
        self._selector: Final = selectors.DefaultSelector()
        self.watched: Final[dict[Connection, int]] = {}
        self._connections: Final[dict[int, Connection]] = {}
        self._is_empty = trio.Event()
        self._has_alarm = trio.Event()

    @override
    async def start(self) -> None:
        for work in (self.run, self.run_alarms, self._accept):
            self.spawn(work)

    @override
    async def handle(self, message: Never) -> None:
        """Do nothing: this actor receives no messages."""

    @override
    async def closing(self) -> None:
        """Stop accepting links; write and close the present links."""
        self._accepting.cancel()
        for connection in tuple(self._connections.values()):
            connection.finish(connection.close_reason)
        while self._connections:
            self._is_empty = trio.Event()
            await self._is_empty.wait()

    @override
    async def stop(self) -> None:
        """Close the links that are still open, at once."""
        with self._selector:
            async with trio.open_nursery() as nursery:
                for connection in self._connections.values():
                    connection.conclude()
                    nursery.start_soon(connection.link.aclose, connection.close_reason)

    # ---- adding and removing links

    def admit(self, number: int, link: Link, acceptor: Acceptor) -> None:
        """Serve a link until it ends."""
        connection = self._connections[number] = Connection(number, link, acceptor, self)
        self.bounds.counters.count(Tally.LINKS_OPENED, acceptor.wire)
        self._guard(connection, partial(self._begin, connection))

    def _begin(self, connection: Connection) -> None:
        link, greeting = connection.link, connection.acceptor.greeting()
        self.bus.call(self.bus.add_link, connection)
        if greeting:
            self.bus.call(self.bus.take_items, connection.number, greeting)
        if link.guest is not None:
            link.guest.watch(connection.make_room)
        self.arm(connection)
        if link.descriptor is None:
            self.begin(connection, connection.read_later)
        else:
            self.watch(connection)
            connection.read()  # data that came with the handshake

    def watch(self, connection: Connection) -> None:
        """Read a connection whenever data arrives."""
        descriptor = connection.link.descriptor
        if descriptor is not None and connection not in self.watched and not connection.is_over:
            self.watched[connection] = descriptor
            self._selector.register(descriptor, selectors.EVENT_READ, connection)

    def ignore(self, connection: Connection) -> None:
        """Stop reading a connection. Idempotent."""
        descriptor = self.watched.pop(connection, None)
        if descriptor is not None:
            self._selector.unregister(descriptor)

    def forget(self, connection: Connection) -> None:
        """Stop reading a connection that is being closed, and delete its timer."""
        self.ignore(connection)
        self._alarms.set(connection.number, math.inf)

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._connections.pop(connection.number, None)
        if not self._connections:
            self._is_empty.set()

    def arm(self, connection: Connection) -> None:
        """Set the timer of a connection to its deadline."""
        due = connection.deadline()
        self._alarms.set(connection.number, due)
        if due < self._alarm_at:
            self._has_alarm.set()

    # ---- tasks of connections

    def begin(self, connection: Connection, work: Callable[[], Awaitable[None]]) -> None:
        """Run a function of a connection in a task; an exception ends that connection only."""
        with suppress(ActorStoppedError):  # `stop` is next
            self.spawn(self._run, connection, work)

    async def _run(self, connection: Connection, work: Callable[[], Awaitable[None]]) -> None:
        with Crash() as crash:
            await work()
        if crash.error is not None:
            self._record_crash(connection, crash.error)
            connection.conclude()
            await trio.aclose_forcefully(connection.link)
            self.remove(connection)

    def _record_crash(self, connection: Connection, error: Exception) -> None:
        _log.error("connection crashed", link=connection.name, exc_info=error)
        self._monitor.record_crash(f"connection:{connection.number}", error)
        connection.stop_reading()
        connection.lose(LinkEnd.BROKEN, "the node failed", CloseReason.INTERNAL)

    # ---- the loop

    async def run(self) -> None:
        """Read connections that have data, and write the output of the bus, until the bus ends."""
        ready: deque[Connection] = deque()
        while not self.bus.is_over:
            if ready:
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(self._selector)
                for key, _ in self._selector.select(0):
                    ready.append(key.data)
            until = self.bounds.work_clock() + READ_SLICE
            self.bus.is_in_turn = True
            try:
                while ready:
                    connection = ready.popleft()
                    if connection in self.watched:
                        self._guard(connection, connection.read)
                    if self.bounds.work_clock() >= until:
                        break
                self.bus.call(self.bus.end_turn)
            finally:  # the bus may live on without this listener
                self.bus.is_in_turn = False

    def _guard(self, connection: Connection, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as exc:  # noqa: BLE001 - ends this link only
            self._record_crash(connection, exc)

    async def run_alarms(self) -> None:
        """Call `time_over` of the connections whose deadline has passed, until cancelled."""
        while True:
            self._alarm_at = self._alarms.deadline()
            self._has_alarm = trio.Event()
            with trio.move_on_at(self._alarm_at):
                await self._has_alarm.wait()
            now = trio.current_time()
            late = now - self._alarm_at
            for number in self._alarms.due(now):
                connection = self._connections.get(number)
                if connection is not None and late > LATE:
                    # The node was busy: messages of the peers may not be read yet.
                    self._alarms.set(number, now + min(late, PONG_TIMEOUT))
                elif connection is not None:
                    self._guard(connection, partial(connection.time_over, now))
                    self._alarms.set(number, connection.deadline())

    # ---- accepting

    async def _accept(self) -> None:
        with self._accepting:
            async with trio.open_nursery() as nursery:
                for listener in self._listeners:
                    nursery.start_soon(self._accept_at, listener)

    async def _accept_at(self, listener: Listener) -> None:
        # The listener closes when the node shuts down; accepted links end on order.
        with suppress(LinkClosedError):
            while True:
                link, number = await listener.accept(), next(self._numbers)
                with Crash(partial(self._monitor.record_crash, f"connection:{number}")) as crash:
                    acceptor = self._acceptors[link.upgrade.path](link.upgrade)
                    self.admit(number, link, acceptor)
                if crash.error is not None:
                    _log.error("link not admitted", link=link.name, exc_info=crash.error)
                    await trio.aclose_forcefully(link)
