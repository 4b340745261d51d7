"""Of which parts a node is made, and in which order they are started."""

import itertools
from functools import partial
from types import MappingProxyType
from typing import Final, final

import attrs
import trio

from actors.kit.counting.counters import Counters
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.monitor import Monitor
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.kit.trace import Tracer
from actors.node.bus.bus import NodeBus, NodeBusParts
from actors.node.components import LocalService
from actors.node.config import NodeConfig
from actors.node.connectors.back_ends import Home, served_by, start_connectors
from actors.node.foreign.host import ForeignParts
from actors.node.foreign.part import path_service, start_abroad
from actors.node.health.gauges import watch
from actors.node.health.readiness import Readiness
from actors.node.links.acceptor import REST, LinkDoor, RestDoor
from actors.node.links.plain import PlainDoor
from actors.node.links.session_form import SessionDoor
from actors.node.login.part import start_connector
from actors.node.login.provider import IdentityProvider
from actors.node.messages import BusMessage
from actors.node.policy.parts import Policing, policing_of
from actors.node.registry.allocation import AllocationDesk
from actors.node.registry.record_file import RecordFile
from actors.node.registry.record_writer import RecordWriter
from actors.node.registry.registry import DomainRegistry, RegistryParts
from actors.node.session.bounds import Bounds
from actors.node.session.control import Control, ControlParts
from actors.node.session.exchange import Exchange
from actors.node.session.gate import Gate
from actors.node.session.listener import DoorMaker, Entrance, SessionListener
from actors.node.sync.subscriptions import PathService
from actors.node.tables import NodeAddresses, TableRules
from actors.node.trace import ComponentTrace
from fsm.registry.address_names import AddressMint
from specs.addresses.address import identity_manager, policy_manager
from transports.link import Listener
from transports.network import Network

__all__ = ["LINK", "PLAIN", "SESSION", "Plan", "plan_of", "start_parts"]

LINK: Final = "/link"
"""Path of our own stubs."""

PLAIN: Final = "/stub/connect"
"""Path of upstream's plain stubs."""

SESSION: Final = "/ws"
"""Path of upstream's stubs with a session handshake."""

_MINT_KEY: Final = 32
"""Bytes of the secret by which a node knows the addresses that it made."""


@final
@attrs.frozen
class Plan:
    """What all parts of one node share."""

    config: NodeConfig
    network: Network
    addresses: NodeAddresses
    tracer: Tracer
    counters: Counters
    monitor: Monitor
    file: RecordFile
    bounds: Bounds
    policing: Policing | None
    standing: Readiness = attrs.field(factory=Readiness)
    provider: IdentityProvider | None = None

    def clock(self) -> float:
        """Tell the seconds since the epoch, as the node counts them."""
        return trio.current_time() + self.config.clock_offset

    def witness(self, actor: str) -> ComponentTrace:
        """Make the pen of one component."""
        return ComponentTrace(self.tracer, actor, self.counters)


def plan_of(
    config: NodeConfig, network: Network, tracer: Tracer, file: RecordFile, bounds: Bounds
) -> Plan:
    """Make what the parts of a node share."""
    counters = bounds.counters
    monitor = Monitor(tracer, counters)
    addresses = NodeAddresses(config.domain, _served(config))
    policing = policing_of(
        config.policies, addresses, lambda: trio.current_time() + config.clock_offset
    )
    return Plan(config, network, addresses, tracer, counters, monitor, file, bounds, policing)


def _served(config: NodeConfig) -> list[str]:
    """Say where parts listen that only some nodes have."""
    identities = [] if config.login is None else [identity_manager(config.domain)]
    policies = [] if config.policies is None else [policy_manager(config.domain)]
    return [*identities, *policies, *served_by(config.back_ends, config.domain)]


async def start_parts(
    plan: Plan, listeners: tuple[Listener, ...], supervisor: Supervisor
) -> ActorRef[BusMessage]:
    """Start the parts; who is behind a part that crashes is started again with it."""
    bus = await supervisor.start_child(ChildSpec("bus", partial(_make_bus, plan)))
    await _start_front_door(plan, listeners, supervisor, bus)
    if plan.config.back_ends.registry is None:
        await _start_registry(plan, supervisor, bus)
    await start_connector(plan.provider, plan.addresses, supervisor, bus)
    if plan.policing is not None:
        await plan.policing.start(supervisor, bus)
    home = Home(plan.addresses, plan.config.ids, plan.config.entropy, plan.witness)
    await start_connectors(plan.config.back_ends, home, supervisor, bus)
    await start_abroad(_abroad(plan, bus), supervisor)
    return bus


def _abroad(plan: Plan, bus: ActorRef[BusMessage]) -> ForeignParts:
    return ForeignParts(
        node=plan.addresses.node,
        plan=plan.config.foreign,
        network=plan.network,
        bus=bus,
        tracer=plan.tracer,
        counters=plan.counters,
        monitor=plan.monitor,
        ids=plan.config.ids,
    )


def _make_bus(plan: Plan) -> NodeBus:
    config = plan.config
    mint = AddressMint(config.entropy(_MINT_KEY))
    rules = TableRules(mint, config.observation, config.foreign.domains.keys())
    exchange = Exchange(plan.addresses, rules, plan.witness("bus"), config.ids, plan.bounds)
    watch(exchange)
    policing = plan.policing
    gate = Gate(exchange, config.policy if policing is None else policing.engine(exchange.tables))
    control = Control(ControlParts(exchange, gate, config.entropy, config.login, plan.clock))
    return NodeBus(NodeBusParts(exchange, control, _desks(plan, exchange), gate))


def _desks(plan: Plan, exchange: Exchange) -> dict[str, LocalService]:
    config, addresses, tables = plan.config, plan.addresses, exchange.tables
    schemes = config.object_schemes | {"hyperty"}
    desks: dict[str, LocalService] = {
        addresses.allocation: AllocationDesk(tables, schemes, config.entropy),
        addresses.paths: path_service(PathService(tables), exchange, config.foreign),
    }
    if plan.policing is not None:
        desks[addresses.policies] = plan.policing.desk(exchange)
    return desks


async def _start_front_door(
    plan: Plan,
    listeners: tuple[Listener, ...],
    supervisor: Supervisor,
    bus: ActorRef[BusMessage],
) -> None:
    control = plan.addresses.session
    doors: dict[str, DoorMaker] = {
        LINK: lambda _: LinkDoor(),
        PLAIN: partial(PlainDoor, control),
        SESSION: lambda _: SessionDoor(control),
        REST: lambda _: RestDoor(),
    }
    entrance = Entrance(listeners, MappingProxyType(doors), itertools.count(1), plan.bounds)
    door = partial(SessionListener, entrance, bus, plan.monitor)
    await supervisor.start_child(ChildSpec("front-door", door))


async def _start_registry(plan: Plan, supervisor: Supervisor, bus: ActorRef[BusMessage]) -> None:
    writer = await supervisor.start_child(
        ChildSpec("record-writer", partial(RecordWriter, plan.file, plan.counters))
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
