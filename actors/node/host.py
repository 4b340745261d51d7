"""Objects that all components of a node share, such as its bus and supervisor."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.supervisor import ChildSpec, Monitor, Supervisor
from actors.kit.trace import Tracer
from actors.node.messages import BusMessage
from actors.node.tables import NodeAddresses
from actors.node.trace import ComponentTrace
from specs.message import Message
from transports.link import Network

if TYPE_CHECKING:
    from actors.node.bus import NodeBus

M = TypeVar("M")


@attrs.define(eq=False)
class NodeHost:
    """Container of the objects that all components of a node share.

    Attributes:
        clock_offset: Seconds from the Trio clock to the epoch.
        login_clock: Returns the seconds since the epoch that decide about the validity of logins,
            names and statements.
        supervisor: Supervisor of the parts; set before the first one starts.
        bus: The message bus, which starts first; replaced after a crash.
        bus_ref: Lets the task of the bus make a call.
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
    bus: "NodeBus" = attrs.field(init=False)
    bus_ref: ActorRef[BusMessage] = attrs.field(init=False)

    def clock(self) -> float:
        """Return the seconds since the epoch, by the clock of the node."""
        return trio.current_time() + self.clock_offset

    def trace(self, actor: str) -> ComponentTrace:
        """Return the tracer for one component of the node."""
        return ComponentTrace(self.tracer, actor, self.counters)

    async def start(self, name: str, make: Callable[[], Actor[M]]) -> ActorRef[M]:
        """Start a component under the supervisor of the node.

        If cancelled, the part is stopped.

        Raises:
            ActorStoppedError: The node is closing.
            Exception: What the start of the part raised.
        """
        return await self.supervisor.start_child(ChildSpec(name, make))

    def send(self, message: Message, to_runtime: str | None = None) -> None:
        """Send a message of a component over the bus; do nothing if the bus has ended.

        Args:
            message: The message.
            to_runtime: The session that gets the answer; None: the address decides.
        """
        self.bus.call(self.bus.emit, message, to_runtime)
