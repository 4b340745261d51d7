"""Links of a node as its bus holds them, over sockets that a test reads itself."""

import itertools
import socket
from collections import Counter
from collections.abc import Callable

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import Monitor
from actors.node.limits import DEFAULT_LIMITS
from actors.node.links.acceptor import Acceptor, LinkAcceptor
from actors.node.links.bounds import Bounds
from actors.node.links.connection import Connection
from actors.node.links.loop import Links
from fsm.session.node_session_io import OutboundMessage
from fsm.session.outbox_budget import OutboxBudget
from specs.message import Message, MessageType
from transports.codec import encode
from transports.link import Kind, Upgrade
from transports.socket_link import RawLink


def entry(number: int, size: int = 10) -> OutboundMessage:
    """Return a message as the bus hands it to a link."""
    message = Message(number, MessageType.UPDATE, "a", "b", {"value": "x" * size})
    return OutboundMessage(message, encode(message))


@attrs.define(eq=False)
class Clock:
    """Time of which each look takes a bit, as a write does."""

    step: float = 0.0
    now: float = 1.0

    def __call__(self) -> float:
        """Return the seconds."""
        self.now += self.step
        return self.now


class Tasks:
    """Stands for the loop of a node: it only counts the tasks that are started, of each link."""

    def __init__(self) -> None:
        self.bounds = Bounds(DEFAULT_LIMITS, frozenset(), Counters())
        self.started: Counter[Connection] = Counter()

    @property
    def sent(self) -> int:
        """The messages that all links have written."""
        return sum(self.bounds.counters.sent.values())

    def begin(self, connection: Connection, _work: object) -> None:
        """Count a task."""
        self.started[connection] += 1


class NotedBus:
    """A bus that only takes note of what links bring.

    Args:
        grants: Whether each link has a session from the start.
    """

    is_over = is_in_turn = False

    def __init__(self, *, grants: bool = True) -> None:
        self._grants = grants
        self.connections: dict[int, Connection] = {}
        self.heard: list[int] = []

    def add_link(self, connection: Connection) -> None:
        """Note that a link has come."""
        self.connections[connection.number] = connection
        if self._grants:
            connection.set_runtime("a runtime")

    def take_items(self, number: int, _items: object) -> None:
        """Note which link has brought something."""
        self.heard.append(number)

    def remove_link(self, number: int, _name: str, _why: str) -> None:
        """Note that a link has gone."""
        del self.connections[number]

    def end_turn(self) -> None:
        """Write nothing."""

    def call(self, act: Callable[..., object], *args: object) -> bool:
        """Call a method of this object."""
        act(*args)
        return True


def make_links(bus: NotedBus, bounds: Bounds, nursery: trio.Nursery) -> Links:
    """Make the loop of a node, of which the caller starts what it needs."""
    links = Links(bus, bounds, Monitor(), (), {}, itertools.count(1))
    links.enter(ActorRef("links", trio.open_memory_channel(0)[0]), nursery, lambda: None)
    return links


@attrs.define(eq=False)
class End:
    """A link of a node as the bus holds it, and the socket of its peer."""

    connection: Connection
    tasks: Tasks
    budget: OutboxBudget
    theirs: socket.socket

    @property
    def started(self) -> int:
        """The tasks that were started for the link."""
        return self.tasks.started[self.connection]

    def read(self) -> bytes:
        """Return the bytes that have arrived."""
        try:
            return self.theirs.recv(1 << 20)
        except BlockingIOError:
            return b""

    def lines(self) -> list[bytes]:
        """Return the lines that have arrived."""
        lines = self.read().replace(b"}{", b"}\n{").split(b"\n")
        return [line for line in lines if line]

    async def aclose(self) -> None:
        """Close both sockets."""
        self.theirs.close()
        await trio.aclose_forcefully(self.connection.link)


def open_end(
    number: int,
    tasks: Tasks,
    budget: OutboxBudget,
    acceptor: Acceptor | None = None,
    *,
    is_tight: bool = False,
) -> End:
    """Make a link over sockets; a tight one takes next to nothing at once."""
    ours, theirs = socket.socketpair()
    if is_tight:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    theirs.setblocking(False)  # noqa: FBT003 - the standard library's signature
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    link = RawLink((Kind.STREAM, f"r{number}", Upgrade()), stream)
    tasks.bounds.budget = budget
    connection = Connection(number, link, acceptor or LinkAcceptor(), tasks)
    return End(connection, tasks, budget, theirs)
