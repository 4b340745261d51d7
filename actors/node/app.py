"""The composition root of a message node: its parts, and the order in which they start."""

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

import attrs
import trio
from typing_extensions import override

from actors.http.metrics import Part, Readiness
from actors.keys.runtime_key import SEED_BYTES
from actors.keys.signing import SigningKey, make_domain_key
from actors.kit.counters import Counters, DropLedger, Gauge
from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Monitor,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.kit.trace import Tracer
from actors.node.bus import NodeBus
from actors.node.components import AllocationService, LocalService, PathService
from actors.node.config import NodeConfig
from actors.node.connectors.back_ends import Home, served_by, start_connectors
from actors.node.foreign import ForeignParts, path_service, start_foreign
from actors.node.health import Parts, watch
from actors.node.http.rest_link import RestLinks
from actors.node.links.acceptor import REST, LinkAcceptor, OpenListener, RestAcceptor
from actors.node.links.bounds import Bounds
from actors.node.links.loop import AcceptorMaker, LinkSources, SessionListener
from actors.node.links.upstream import PlainAcceptor, SessionAcceptor
from actors.node.login.connector import open_provider, start_connector
from actors.node.login.provider import IdentityProvider, UsedTokenFile, UsedTokens
from actors.node.messages import BusMessage, SessionView
from actors.node.policy.engine import Policing, policing_of
from actors.node.registry.record_file import MemoryRecords, RecordFile, RecordWriter, SqliteRecords
from actors.node.registry.registry import DomainRegistry, RegistryParts
from actors.node.session.control import Control, key_set
from actors.node.session.exchange import Exchange
from actors.node.session.gate import Gate
from actors.node.session.names import KeepName, UserNames
from actors.node.session.resuming import resume
from actors.node.state.file import FORM, StateChanges, StateFile, StateWriter, Store
from actors.node.tables import NodeAddresses, TableRules
from actors.node.trace import ComponentTrace
from fsm.machines.registration import REGISTRATION
from fsm.registry.addresses import AddressMint
from fsm.registry.node_rights import RightsRules
from specs.addresses.address import identity_manager, policy_manager
from specs.limits.protocol import DRAIN_TIMEOUT
from transports.link import PROTOFLY_V1, Kind, Listener, Network
from transports.sockets import open_background

if TYPE_CHECKING:
    from actors.node.dashboard.board import Board
    from actors.node.dashboard.pages import Sources
    from actors.node.group.shared import Shared


LINK: Final = "/link"
"""Path of our own stubs."""

PLAIN: Final = "/stub/connect"
"""Path of upstream's plain stubs."""

SESSION: Final = "/ws"
"""Path of upstream's stubs with a session handshake."""

_MINT_KEY: Final = 32
"""Bytes of the secret by which a node knows the addresses that it made."""

_log = get_logger("actors.node")


def _fresh_keys(entropy: Callable[[int], bytes]) -> tuple[SigningKey, ...]:
    """Make a key of the domain that ends with the process."""
    key = make_domain_key(entropy(SEED_BYTES))
    _log.info("domain key made", kid=key.name, why="none was configured")
    return (key,)


@attrs.frozen
class Plan:
    """The objects that all parts of one node share."""

    config: NodeConfig
    network: Network
    addresses: NodeAddresses
    tracer: Tracer
    counters: Counters
    monitor: Monitor
    file: RecordFile
    bounds: Bounds
    policing: Policing | None
    board: "Board | None" = None
    readiness: Readiness = attrs.field(factory=Readiness)
    provider: IdentityProvider | None = None
    state: StateFile | None = None
    domain_keys: tuple[SigningKey, ...] = ()
    shared: "Shared | None" = None
    http_url: str | None = None

    def clock(self) -> float:
        """Return the seconds since the epoch, as the node counts them."""
        return trio.current_time() + self.config.clock_offset

    @property
    def login_clock(self) -> Callable[[], float]:
        """The clock by which logins, names and statements are good: as the world counts, or own."""
        login = self.config.login
        return self.clock if login is None or login.clock is None else login.clock

    def trace(self, actor: str) -> ComponentTrace:
        """Make the trace of one component."""
        return ComponentTrace(self.tracer, actor, self.counters)


def plan_of(
    config: NodeConfig, network: Network, tracer: Tracer, files: "Files", bounds: Bounds
) -> Plan:
    """Make what the parts of a node share.

    Args:
        config: The configuration.
        network: Network that opens links.
        tracer: Destination of the records.
        files: Files of the domain registry and of the sessions.
        bounds: Limits on the load of peers.
    """
    counters = bounds.counters
    if config.monitor:
        # Most processes judge nothing, and the claims take a while to import.
        from actors.kit.self_check import SelfCheck  # noqa: PLC0415

        tracer = SelfCheck.of(tracer, config.process_name, None, counters)
    board = None if config.http is None else _board(config.domain, tracer, files, counters)
    tracer = tracer if board is None else board.tap
    monitor = Monitor(tracer, counters)
    addresses = NodeAddresses(config.domain, _served(config))
    policing = policing_of(
        config.judged_by,
        addresses,
        lambda: trio.current_time() + config.clock_offset,
        is_shared=config.engine is not None,
    )
    return Plan(
        config,
        network,
        addresses,
        tracer,
        counters,
        monitor,
        files.records,
        bounds,
        policing,
        board,
        state=files.state,
        domain_keys=config.domain_keys or _fresh_keys(config.entropy),
    )


def _board(domain: str, tracer: Tracer, files: "Files", counters: Counters) -> "Board":
    """Make what the dashboard shows; only a node that serves HTTP has one."""
    from actors.node.dashboard.board import Board  # noqa: PLC0415
    from actors.node.dashboard.tap import Tap  # noqa: PLC0415
    from fsm.dashboard.fleet import Fleet, Watched  # noqa: PLC0415

    fleet, watched = Fleet(), Watched()
    fleet.before(REGISTRATION.name, Counter(str(row.status) for row in files.records.load()))
    return Board(domain, fleet, Tap(tracer, fleet, watched), watched, counters)


def _served(config: NodeConfig) -> list[str]:
    """Return where parts listen that only some nodes have."""
    identities = [] if config.login is None else [identity_manager(config.domain)]
    policies = [] if config.judged_by is None else [policy_manager(config.domain)]
    return [*identities, *policies, *served_by(config.back_ends, config.domain)]


async def start_parts(
    plan: Plan, listeners: tuple[Listener, ...], supervisor: Supervisor
) -> ActorRef[BusMessage]:
    """Start the parts; a crash of a part restarts the parts after it, too.

    Args:
        plan: The plan.
        listeners: Open listeners.
        supervisor: Supervisor of the started actors.
    """
    if plan.shared is not None:
        await plan.shared.reach()
    writer = await _start_state_writer(plan, supervisor)
    bus = await supervisor.start_child(ChildSpec("bus", partial(_make_bus, plan, writer)))
    if plan.shared is not None:
        await plan.shared.start(supervisor, bus)
    await _start_listener(plan, listeners, supervisor, bus)
    if plan.config.back_ends.registry is None:
        await _start_registry(plan, supervisor, bus)
    await start_connector(plan.provider, plan.addresses, supervisor, bus)
    if plan.policing is not None:
        await plan.policing.start(supervisor, bus)
    home = Home(plan.addresses, plan.config.ids, plan.config.entropy, plan.trace, plan.login_clock)
    await start_connectors(plan.config.back_ends, home, supervisor, bus)
    await start_foreign(_foreign(plan, bus), supervisor)
    return bus


def _foreign(plan: Plan, bus: ActorRef[BusMessage]) -> ForeignParts:
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


async def _start_state_writer(plan: Plan, supervisor: Supervisor) -> ActorRef[Store] | None:
    if plan.state is None:
        return None
    make = partial(StateWriter, plan.state, plan.counters)
    return await supervisor.start_child(ChildSpec("state-writer", make))


def _make_bus(plan: Plan, writer: ActorRef[Store] | None) -> NodeBus:
    config = plan.config
    mint = AddressMint(config.entropy(_MINT_KEY) if plan.shared is None else plan.shared.mint)
    rights = RightsRules(
        config.observation,
        config.foreign.reach(config.domain),
        config.names,
        has_login=config.login is not None,
    )
    rules = TableRules(mint, rights)
    exchange = Exchange(plan.addresses, rules, plan.trace("bus"), config.ids, plan.bounds)
    exchange.state = StateChanges(writer)
    exchange.has_login = config.login is not None
    keep_name: KeepName = exchange.state.note
    if plan.shared is not None:
        address = plan.http_url or ""
        group = plan.shared.join(exchange, plan.trace("group"), address, plan.login_clock)
        keep_name = group.keep_name
    exchange.names = UserNames(keep_name, plan.login_clock)
    watch(exchange)
    if plan.board is not None:
        plan.board.watch(exchange, None if plan.shared is None else plan.shared.overview)
    policing = plan.policing
    gate = Gate(exchange, config.policy if policing is None else policing.engine(exchange.tables))
    control = Control(
        exchange, gate, config.entropy, config.login, plan.domain_keys, plan.login_clock
    )
    resume = partial(_resume, plan, exchange)
    return NodeBus(exchange, control, _services(plan, exchange), gate, resume)


async def _resume(plan: Plan, exchange: Exchange) -> None:
    """Bring the stored sessions and names back."""
    if plan.state is not None:
        stored = await trio.to_thread.run_sync(plan.state.load)
        resume(exchange, stored, await trio.to_thread.run_sync(plan.file.load))
        if plan.board is not None:
            plan.board.resumed(exchange)


def _services(plan: Plan, exchange: Exchange) -> dict[str, LocalService]:
    config, addresses, tables = plan.config, plan.addresses, exchange.tables
    schemes = config.object_schemes | {"hyperty"}
    services: dict[str, LocalService] = {
        addresses.allocation: AllocationService(tables, schemes, config.entropy),
        addresses.paths: path_service(PathService(tables), exchange, config.foreign),
    }
    if plan.policing is not None:
        services[addresses.policies] = plan.policing.service(exchange)
    return services


async def _start_listener(
    plan: Plan,
    listeners: tuple[Listener, ...],
    supervisor: Supervisor,
    bus: ActorRef[BusMessage],
) -> None:
    control = plan.addresses.session
    acceptors: dict[str, AcceptorMaker] = {
        LINK: lambda _: LinkAcceptor(),
        PLAIN: partial(PlainAcceptor, control),
        SESSION: lambda _: SessionAcceptor(control, plan.config.names),
        REST: lambda _: RestAcceptor(),
    }
    sources = LinkSources(listeners, MappingProxyType(acceptors), itertools.count(1), plan.bounds)
    acceptor = partial(SessionListener, sources, bus, plan.monitor)
    await supervisor.start_child(ChildSpec("listener", acceptor))


async def _start_registry(plan: Plan, supervisor: Supervisor, bus: ActorRef[BusMessage]) -> None:
    records = None if plan.shared is None else plan.shared.records()
    file = records or plan.file
    writer = await supervisor.start_child(
        ChildSpec("record-writer", partial(RecordWriter, file, plan.counters))
    )
    parts = RegistryParts(
        address=plan.addresses.registry,
        file=file,
        bus=bus,
        writer=writer,
        trace=plan.trace("registry"),
        ids=plan.config.ids,
        clock_offset=plan.config.clock_offset,
        news=records,
    )
    await supervisor.start_child(ChildSpec("registry", partial(DomainRegistry, parts)))


@final
@attrs.frozen
class Node:
    """A running message node; made by `open_node`.

    Attributes:
        domain: Domain that it serves.
        url: URL to which the stubs of Protofly connect.
        legacy_url: URL to which plain reTHINK stubs connect, with `?runtimeURL=` appended; None:
            they are not served.
        session_url: URL to which reTHINK stubs with a session handshake connect; None: they are
            not served.
        http_url: URL of health and metrics; None: no HTTP.
        rest_url: URL at which runtimes have sessions over HTTP; None: they have none.
        counters: Counts of dropped messages and of the findings of the monitor.
    """

    domain: str
    url: str
    legacy_url: str | None
    session_url: str | None
    http_url: str | None
    rest_url: str | None
    counters: Counters
    _bus: ActorRef[BusMessage]
    _policing: Policing | None = None

    @override
    def __repr__(self) -> str:
        return f"<Node {self.domain} {self.url} {'closed' if self._bus.is_gone else 'open'}>"

    @property
    def monitor_violations(self) -> int:
        """Number of attempted steps that no state machine declares; log and trace have each."""
        return self.counters.monitor_violations

    def drops(self) -> DropLedger:
        """Return how many messages were not delivered, by reason, and the last of them."""
        return self.counters.ledger()

    async def sessions(self) -> tuple[SessionView, ...]:
        """Return the present sessions, with the state of each.

        If cancelled, nothing has changed.

        Raises:
            ActorStoppedError: The node has closed.
        """
        return await self._bus.ask(lambda reply: lambda node: reply.send(node.sessions()))

    @property
    def has_policies(self) -> bool:
        """True if the node judges messages by policy files."""
        return self._policing is not None

    async def reload_policies(self) -> str:
        """Read the policy files again; the node keeps its policies if one cannot be used.

        If cancelled, the files may be read all the same.

        Returns:
            Why the files cannot be used, as a sentence for people; empty if the node uses them, or
            has no policies.

        Raises:
            ActorStoppedError: The node has closed.
        """
        return "" if self._policing is None else await self._policing.reload()


@asynccontextmanager
async def open_node(config: NodeConfig, network: Network, tracer: Tracer) -> AsyncIterator[Node]:
    """Run a message node while the context is open; when it is left, the node drains.

    Args:
        config: Configuration of the node.
        network: Network on which it listens and dials.
        tracer: Takes its trace.

    Yields:
        The running node.

    If cancelled, the node still closes its listener and its sessions in order, within
    `DRAIN_TIMEOUT` / 2 seconds, and its parts stop.

    Raises:
        ListenError: The address to listen at is in use or not allowed.
        RegistryFileError: The file of the domain registry cannot be used.
        StateFileError: The file of the sessions cannot be used.
        PolicyFileError: A policy file cannot be used.
        RestartLimitError: A part of the node crashes again and again; in an exception group.
    """
    bounds = Bounds(config.limits, config.origins, Counters())
    bounds.gate.tls = config.tls
    if not network.is_system:  # a simulated run does not depend on how fast this machine is
        bounds.work_clock = trio.current_time
    async with open_background() as nursery:
        sources = OpenListener(
            network.listen(Kind.WEBSOCKET, config.listen, _paths(config), bounds.gate)
        )
        listener = await nursery.start(sources.serve)
        with _files(config) as files:
            plan = plan_of(config, network, tracer, files, bounds)
            async with _serving(plan, listener, sources) as node:
                yield node


@asynccontextmanager
async def _serving(plan: Plan, listener: Listener, sources: "OpenListener") -> AsyncIterator[Node]:
    """Run the parts behind a listener; when the context is left, close listener and sessions."""
    config = plan.config
    parts = Parts(config.registry, has_records=config.back_ends.registry is None)
    rest = RestLinks(plan.bounds.gate) if _has_rest(config) else None
    listeners = (listener,) if rest is None else (listener, rest)
    async with (
        _planned(plan) as planned,
        _http(planned, parts, rest) as http_url,
        open_supervisor("node", Strategy.REST_FOR_ONE, monitor=plan.monitor) as supervisor,
    ):
        parts.supervisor = supervisor
        whole = attrs.evolve(planned, http_url=http_url)
        parts.bus = bus = await start_parts(whole, listeners, supervisor)
        plan.readiness.ready(Part.NODE)
        is_orderly = False
        try:
            yield _node(planned, listener.address, bus, http_url)
            is_orderly = True
        finally:
            plan.readiness.lacking(Part.NODE, "it is going down")
            with trio.move_on_after(DRAIN_TIMEOUT / 2, shield=True):
                if rest is not None:
                    rest.close()
                await sources.close()
                await _drain(bus)
                if not is_orderly:
                    # The parts finish what they were ordered to do, though the node is cancelled.
                    await supervisor.stop_children()


@asynccontextmanager
async def _planned(plan: Plan) -> AsyncIterator[Plan]:
    """Add to a plan the parts that are opened and closed with the node."""
    async with _shared(plan) as shared:
        login = plan.config.login
        used: UsedTokens | None = None
        if shared is not None:
            used = shared.tokens(plan.login_clock)
        elif login is not None and login.used_tokens is not None:
            used = UsedTokenFile(login.used_tokens)
        elif plan.state is not None:
            used = UsedTokenFile(plan.state.path, form=FORM)
        async with open_provider(login, plan.login_clock, used) as provider:
            yield attrs.evolve(plan, provider=provider, shared=shared)


@asynccontextmanager
async def _shared(plan: Plan) -> "AsyncIterator[Shared | None]":
    """Open what the nodes of a domain share; None: this is its only node."""
    config = plan.config
    if config.engine is None:
        yield None
        return
    # Not needed by the only node of a domain.
    from actors.node.group.shared import open_shared  # noqa: PLC0415

    secret = config.entropy(_MINT_KEY)
    policies = None if plan.policing is None else plan.policing.domain
    async with open_shared(
        config.engine, config.node_name, secret, plan.counters, policies
    ) as shared:
        if config.http is not None and config.http.catalogue is not None:
            shared.catalogue.shown = config.http.catalogue
        yield shared


@asynccontextmanager
async def _http(plan: Plan, parts: Parts, rest: RestLinks | None) -> AsyncIterator[str | None]:
    """Serve health, metrics and sessions over HTTP; from before the parts start until they stop."""
    config = plan.config.http
    if config is None:
        yield None
        return
    # Not needed by a node that serves no HTTP, and slow to import.
    from actors.http.metrics import ReadyPage  # noqa: PLC0415
    from actors.http.service import open_http, site_of  # noqa: PLC0415
    from actors.node.dashboard.pages import (  # noqa: PLC0415
        DASHBOARD,
        dashboard_services,
        to_page,
    )
    from actors.node.http.rest_service import rest_services  # noqa: PLC0415

    parts.provider = plan.provider
    if plan.shared is not None:
        parts.engine, parts.policies = plan.shared.why_not, plan.shared.policies.why_not
    plan.counters.watch(Gauge.TRACE_LOST, lambda: plan.tracer.dropped)
    services = {} if rest is None else rest_services(rest, plan.config.origins)
    more = {}
    if plan.board is not None:
        services |= dashboard_services(config, plan.board, _sources(plan))
        more = {DASHBOARD: to_page}
    keys = key_set(plan.domain_keys)
    ready = ReadyPage(plan.readiness, parts.probes(), {Part.ENGINE})
    catalogue = None if plan.shared is None else plan.shared.catalogue
    site = site_of(config, plan.counters, ready, services, keys, more=more, catalogue=catalogue)
    async with open_http(plan.network, config, site, plan.monitor) as url:
        yield url


def _sources(plan: Plan) -> "Sources":
    from actors.node.dashboard.pages import Sources  # noqa: PLC0415

    config = plan.config
    catalogue = None if config.http is None else config.http.catalogue
    records = plan.file.load if plan.shared is None else plan.shared.known_records
    return Sources(
        records if config.back_ends.registry is None else None,
        None if plan.policing is None else plan.policing.store,
        "" if catalogue is None else catalogue.domain,
        config.monitor,
        None if plan.shared is None else plan.shared.colleagues,
    )


def _node(plan: Plan, address: str, bus: ActorRef[BusMessage], http_url: str | None) -> Node:
    is_legacy = plan.config.allow_legacy
    return Node(
        domain=plan.config.domain,
        url=address + LINK,
        legacy_url=address + PLAIN if is_legacy else None,
        session_url=address + SESSION if is_legacy else None,
        http_url=http_url,
        rest_url=http_url + REST if http_url is not None and _has_rest(plan.config) else None,
        counters=plan.counters,
        bus=bus,
        policing=plan.policing,
    )


def _has_rest(config: NodeConfig) -> bool:
    return config.http is not None and config.http.rest


def _paths(config: NodeConfig) -> dict[str, str | None]:
    """Return the paths to which links connect, with the WebSocket subprotocol of each."""
    plain: dict[str, str | None] = {PLAIN: None, SESSION: None} if config.allow_legacy else {}
    return {LINK: PROTOFLY_V1, **plain}


@attrs.frozen
class Files:
    """The files that outlive the node."""

    records: RecordFile
    state: StateFile | None = None


@contextmanager
def _files(config: NodeConfig) -> Iterator[Files]:
    where = config.state_file
    records = MemoryRecords() if config.registry is None else SqliteRecords(config.registry)
    with closing(records), ExitStack() as opened:
        state = None
        if where is not None:
            records.load()
            state = opened.enter_context(closing(StateFile(where)))
            state.load()
        yield Files(records, state)


async def _drain(bus: ActorRef[BusMessage]) -> None:
    """Close every session, and set its registry records to disconnected."""
    with suppress(ActorStoppedError):
        await bus.ask(lambda done: lambda node: node.drain(done))
