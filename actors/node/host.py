"""What all parts of one node use; each part is given it, and what is the part's own."""

from collections.abc import Callable
from typing import TypeVar

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.kit.supervision.supervisor import ChildSpec, Monitor, Supervisor
from actors.kit.trace import Tracer
from actors.node.errors import AddressTakenError
from actors.node.messages import BusMessage, Component, Emitted
from actors.node.tables import NodeAddresses
from actors.node.trace import ComponentTrace
from specs.message import Message
from transports.link import Network

M = TypeVar("M")


@attrs.define(eq=False)
class NodeHost:
    """What all parts of one node use.

    Attributes:
        clock_offset: Seconds from the Trio clock to the epoch.
        login_clock: Returns the seconds since the epoch by which logins, names and statements are
            good.
        supervisor: Supervisor of the parts; set before the first one starts.
        bus: The message bus, which is the first of them.
    """

    addresses: NodeAddresses
    network: Network
    tracer: Tracer
    counters: Counters
    monitor: Monitor
    ids: IdSource
    entropy: Callable[[int], bytes]
    clock_offset: float
    login_clock: Callable[[], float]
    supervisor: Supervisor = attrs.field(init=False)
    bus: ActorRef[BusMessage] = attrs.field(init=False)

    def clock(self) -> float:
        """Return the seconds since the epoch, as the node counts them."""
        return trio.current_time() + self.clock_offset

    def trace(self, actor: str) -> ComponentTrace:
        """Make the trace of one part."""
        return ComponentTrace(self.tracer, actor, self.counters)

    async def start(self, name: str, make: Callable[[], Actor[M]]) -> ActorRef[M]:
        """Start a part under the supervisor of the node.

        If cancelled, the part is stopped.

        Raises:
            ActorStoppedError: The node is closing.
            Exception: What the start of the part raised.
        """
        return await self.supervisor.start_child(ChildSpec(name, make))

    async def send(self, message: Message, to_runtime: str | None = None) -> None:
        """Send a message of a part by the bus; an answer goes back over the session that asked.

        If cancelled, nothing is sent.

        Raises:
            ActorStoppedError: The bus is gone.
        """
        await self.bus.tell(Emitted(message, to_runtime))

    async def attach(self, address: str, component: Component) -> None:
        """Let an actor answer at an address from now on.

        If cancelled, it may do so or not.

        Raises:
            AddressTakenError: Another part answers there.
            ActorStoppedError: The bus is gone.
        """

        def attached(verdict: Reply[AddressTakenError | None]) -> BusMessage:
            return lambda node: verdict.send(node.attach(address, component))

        error = await self.bus.ask(attached)
        if error is not None:
            raise error

    def detach(self, address: str, component: Component) -> None:
        """Let an actor answer at an address no longer; a bus that is gone needs no notice."""
        self.bus.try_tell(lambda node: node.detach(address, component))
