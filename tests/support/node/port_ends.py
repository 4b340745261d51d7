"""Links of a node as its bus holds them, over sockets that a test reads itself."""

import socket

import attrs
import trio

from actors.kit.counters import Traffic
from actors.node.limits import DEFAULT_LIMITS
from actors.node.links.acceptor import Acceptor, LinkAcceptor
from actors.node.links.port import Nudge, Outbox, Port
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


class Writer:
    """The reference to a link's task, which only notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Nudge] = []

    def try_tell(self, message: Nudge) -> bool:
        """Note a signal."""
        self.told.append(message)
        return True


@attrs.define(eq=False)
class End:
    """A link of a node as the bus holds it, and the socket of its peer."""

    port: Port
    writer: Writer
    traffic: Traffic
    budget: OutboxBudget
    theirs: socket.socket

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
        await trio.aclose_forcefully(self.port.outbox._link)


def open_end(
    number: int,
    traffic: Traffic,
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
    name = f"r{number}"
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    link = RawLink((Kind.STREAM, name, Upgrade()), stream)
    outbox = Outbox(DEFAULT_LIMITS, link, traffic)
    outbox.count_in(budget)
    writer = Writer()
    port = Port(number, name, acceptor or LinkAcceptor(), outbox, writer)
    return End(port, writer, traffic, budget, theirs)
