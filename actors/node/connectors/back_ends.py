"""Which back ends a node has, and how its connectors to them are started."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import final

import attrs

from actors.kit.counting.tally import BackEnd
from actors.kit.http_client import ServerUrl
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.node.connectors.connector import RELAY_LIMITS, Connector, ConnectorParts
from actors.node.connectors.global_registry import GlobalRecords, GlobalRegistry
from actors.node.connectors.quality import Quality, QualityBroker
from actors.node.connectors.rest_registry import RestRegistry
from actors.node.connectors.service import Service
from actors.node.messages import BusMessage
from actors.node.tables import NodeAddresses
from actors.node.trace import ComponentTrace
from fsm.registry.relay import RelayLimits
from specs.addresses.address import GLOBAL_REGISTRY, quality_broker

__all__ = ["BackEnds", "Home", "served_by", "start_connectors"]


@final
@attrs.frozen
class BackEnds:
    """What a node relays to; None: it has none of that kind, and its address is nobody's.

    Attributes:
        registry: Server that keeps the domain's records instead of the node.
        global_registry: Makes the way to the global registry; called for each start.
        quality: Makes the way to the quality broker; called for each start.
        limits: How much each of them is asked.
    """

    registry: ServerUrl | None = None
    global_registry: Callable[[], GlobalRecords] | None = None
    quality: Callable[[], QualityBroker] | None = None
    limits: RelayLimits = RELAY_LIMITS


@final
@attrs.frozen
class Home:
    """What connectors need of the node they are part of.

    Attributes:
        entropy: Source of names that nobody guesses.
        witness: Makes the pen of a part.
    """

    addresses: NodeAddresses
    ids: IdSource
    entropy: Callable[[int], bytes]
    witness: Callable[[str], ComponentTrace]


def served_by(back_ends: BackEnds, domain: str) -> Iterator[str]:
    """Say where connectors listen, besides the one of the domain registry."""
    if back_ends.global_registry is not None:
        yield GLOBAL_REGISTRY
    if back_ends.quality is not None:
        yield quality_broker(domain)


async def start_connectors(
    back_ends: BackEnds, home: Home, supervisor: Supervisor, bus: ActorRef[BusMessage]
) -> None:
    """Start a connector to each back end there is."""
    for name, address, make in _services(back_ends, home):
        actor = f"connector:{name}"
        opened = partial(_connector, (name, address), make, home.witness(actor), back_ends.limits)
        await supervisor.start_child(ChildSpec(actor, partial(opened, bus)))


def _services(
    back_ends: BackEnds, home: Home
) -> Iterator[tuple[BackEnd, str, Callable[[], Service]]]:
    """Say by name where each connector listens, and how its service is made."""
    addresses = home.addresses
    if back_ends.registry is not None:
        address = addresses.registry
        yield (
            BackEnd.REGISTRY,
            address,
            partial(RestRegistry, address, back_ends.registry, home.ids),
        )
    records, broker = back_ends.global_registry, back_ends.quality
    if records is not None:
        yield BackEnd.GLOBAL, GLOBAL_REGISTRY, lambda: GlobalRegistry(records())
    if broker is not None:
        yield BackEnd.QUALITY, addresses.quality, lambda: Quality(broker(), home.entropy)


def _connector(
    names: tuple[BackEnd, str],
    make: Callable[[], Service],
    witness: ComponentTrace,
    limits: RelayLimits,
    bus: ActorRef[BusMessage],
) -> Connector:
    return Connector(ConnectorParts(*names, make(), bus, witness, limits))
