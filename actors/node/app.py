"""The composition root of a message node."""

import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, suppress
from functools import partial
from types import MappingProxyType
from typing import Final, final

import attrs
import trio

from actors.kit.actor import ActorRef
from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.supervisor import ChildSpec, Strategy, Supervisor, open_supervisor
from actors.kit.trace import Tracer
from actors.node.allocation import AllocationDesk
from actors.node.bus import NodeBus, NodeBusParts
from actors.node.bus_message import BusMessage, Drain, SessionView, Snapshot
from actors.node.config import NodeConfig
from actors.node.control import Control
from actors.node.door import LinkDoor
from actors.node.exchange import Exchange
from actors.node.front_door import DoorMaker, FrontDoor
from actors.node.paths import PathDesk
from actors.node.record_file import MemoryRecords, RecordFile, SqliteRecords
from actors.node.record_writer import RecordWriter
from actors.node.registry import DomainRegistry, RegistryParts
from actors.node.tables import NodeAddresses
from actors.node.witness import Witness
from specs.limits import DRAIN_TIMEOUT
from transports.link import PROTOFLY_V1, Kind, Listener
from transports.network import Network

__all__ = ["Node", "open_node"]

_LINK: Final = "/link"


@final
@attrs.frozen
class Node:
    """A message node that runs.

    Attributes:
        domain: The domain it serves.
        url: Where our stubs connect.
        counters: What it had to drop.
    """

    domain: str
    url: str
    counters: Counters
    _bus: ActorRef[BusMessage]

    async def sessions(self) -> tuple[SessionView, ...]:
        """Show how its sessions stand."""
        return await self._bus.ask(Snapshot)


@final
@attrs.frozen
class _Plan:
    """What all parts of one node share."""

    config: NodeConfig
    addresses: NodeAddresses
    tracer: Tracer
    counters: Counters
    file: RecordFile

    def witness(self, actor: str) -> Witness:
        """Make the pen of one component."""
        return Witness(self.tracer, actor, self.counters)


@asynccontextmanager
async def open_node(config: NodeConfig, network: Network, tracer: Tracer) -> AsyncIterator[Node]:
    """Run a message node while the context is open; on leaving it drains.

    Raises:
        ListenError: The place to listen at is taken or not ours.
        RegistryFileError: The file of the domain registry cannot be used.
        RestartLimitError: A part of the node crashes again and again; comes out of
            the context in a group.
    """
    doors = {_LINK: PROTOFLY_V1}
    async with network.listen(Kind.WEBSOCKET, config.listen, doors) as listener:
        with _records(config) as file:
            plan = _Plan(config, NodeAddresses(config.domain), tracer, Counters(), file)
            async with open_supervisor("node", Strategy.REST_FOR_ONE) as supervisor:
                bus = await _start(plan, listener, supervisor)
                try:
                    yield Node(config.domain, listener.address + _LINK, plan.counters, bus)
                finally:
                    with trio.move_on_after(DRAIN_TIMEOUT / 2, shield=True):
                        await _drain(bus)


def _records(config: NodeConfig) -> AbstractContextManager[RecordFile]:
    return closing(MemoryRecords() if config.registry is None else SqliteRecords(config.registry))


async def _start(plan: _Plan, listener: Listener, supervisor: Supervisor) -> ActorRef[BusMessage]:
    """Start the parts; who is behind a part that crashes is started again with it."""
    bus = await supervisor.start_child(ChildSpec("bus", partial(_make_bus, plan)))
    doors: dict[str, DoorMaker] = {_LINK: lambda _: LinkDoor()}
    door = partial(FrontDoor, listener, MappingProxyType(doors), itertools.count(1), bus)
    await supervisor.start_child(ChildSpec("front-door", door))
    writer = await supervisor.start_child(
        ChildSpec("record-writer", partial(RecordWriter, plan.file, bus))
    )
    parts = RegistryParts(
        address=plan.addresses.registry,
        file=plan.file,
        bus=bus,
        writer=writer,
        witness=plan.witness("registry"),
        ids=plan.config.ids,
        clock_offset=plan.config.clock_offset,
    )
    await supervisor.start_child(ChildSpec("registry", partial(DomainRegistry, parts)))
    return bus


def _make_bus(plan: _Plan) -> NodeBus:
    config, addresses = plan.config, plan.addresses
    witness = plan.witness("bus")
    exchange = Exchange(addresses, witness, config.ids)
    tables = exchange.tables
    schemes = config.object_schemes | {"hyperty"}
    desks = {
        addresses.allocation: AllocationDesk(tables, schemes, config.entropy),
        addresses.paths: PathDesk(tables),
    }
    control = Control(exchange, config.entropy)
    return NodeBus(NodeBusParts(exchange, control, desks, config.policy))


async def _drain(bus: ActorRef[BusMessage]) -> None:
    """Have every session closed and its records disconnected; then the parts stop."""
    with suppress(ActorStoppedError):
        await bus.ask(Drain)
