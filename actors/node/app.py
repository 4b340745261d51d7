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
from actors.kit.monitor import Monitor
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
from actors.node.plain_door import PlainDoor
from actors.node.record_file import MemoryRecords, RecordFile, SqliteRecords
from actors.node.record_writer import RecordWriter
from actors.node.registry import DomainRegistry, RegistryParts
from actors.node.session_door import SessionDoor
from actors.node.tables import NodeAddresses
from actors.node.witness import Witness
from specs.limits import DRAIN_TIMEOUT
from transports.link import PROTOFLY_V1, Kind, Listener
from transports.network import Network

__all__ = ["Node", "open_node"]

_LINK: Final = "/link"
_PLAIN: Final = "/stub/connect"
_SESSION: Final = "/ws"


@final
@attrs.frozen
class Node:
    """A message node that runs.

    Attributes:
        domain: The domain it serves.
        url: Where our stubs connect.
        legacy_url: Where upstream's plain stubs connect, `?runtimeURL=` to be appended;
            None if they are not served.
        session_url: Where upstream's stubs with a session handshake connect.
        counters: What it had to drop, and what its monitor saw.
    """

    domain: str
    url: str
    legacy_url: str | None
    session_url: str | None
    counters: Counters
    _bus: ActorRef[BusMessage]

    @property
    def monitor_violations(self) -> int:
        """How many steps were tried that no table declares; each is in log and trace."""
        return self.counters.monitor_violations

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
    monitor: Monitor
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
    doors: dict[str, str | None] = {_LINK: PROTOFLY_V1}
    if config.allow_legacy:
        doors |= {_PLAIN: None, _SESSION: None}
    async with network.listen(Kind.WEBSOCKET, config.listen, doors) as listener:
        with _records(config) as file:
            plan = _plan(config, tracer, file)
            async with open_supervisor(
                "node", Strategy.REST_FOR_ONE, monitor=plan.monitor
            ) as supervisor:
                bus = await _start(plan, listener, supervisor)
                try:
                    yield _node(plan, listener.address, bus)
                finally:
                    with trio.move_on_after(DRAIN_TIMEOUT / 2, shield=True):
                        await _drain(bus)


def _plan(config: NodeConfig, tracer: Tracer, file: RecordFile) -> _Plan:
    counters = Counters()
    monitor = Monitor(tracer, counters)
    return _Plan(config, NodeAddresses(config.domain), tracer, counters, monitor, file)


def _node(plan: _Plan, address: str, bus: ActorRef[BusMessage]) -> Node:
    is_legacy = plan.config.allow_legacy
    return Node(
        domain=plan.config.domain,
        url=address + _LINK,
        legacy_url=address + _PLAIN if is_legacy else None,
        session_url=address + _SESSION if is_legacy else None,
        counters=plan.counters,
        bus=bus,
    )


def _records(config: NodeConfig) -> AbstractContextManager[RecordFile]:
    return closing(MemoryRecords() if config.registry is None else SqliteRecords(config.registry))


async def _start(plan: _Plan, listener: Listener, supervisor: Supervisor) -> ActorRef[BusMessage]:
    """Start the parts; who is behind a part that crashes is started again with it."""
    bus = await supervisor.start_child(ChildSpec("bus", partial(_make_bus, plan)))
    control = plan.addresses.session
    doors: dict[str, DoorMaker] = {
        _LINK: lambda _: LinkDoor(),
        _PLAIN: partial(PlainDoor, control),
        _SESSION: lambda _: SessionDoor(control),
    }
    door = partial(
        FrontDoor, listener, MappingProxyType(doors), itertools.count(1), bus, plan.monitor
    )
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
