"""What a part of a node is given, with a bus of a test."""

import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import Supervisor
from actors.kit.trace import NULL_TRACER
from actors.node.bus import NodeBus
from actors.node.host import NodeHost
from actors.node.tables import NodeAddresses
from transports.memory import MemoryNetwork


def host_of(supervisor: Supervisor, bus: NodeBus, domain: str = "a.ex") -> NodeHost:
    """Make what the parts of a node use."""
    host = NodeHost(
        addresses=NodeAddresses(domain),
        network=MemoryNetwork(),
        tracer=NULL_TRACER,
        counters=Counters(),
        monitor=supervisor.monitor,
        ids=IdSource(),
        entropy=bytes,
        clock_offset=0.0,
        login_clock=trio.current_time,
    )
    host.supervisor, host.bus = supervisor, bus
    return host
