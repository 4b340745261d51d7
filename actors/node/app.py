"""Build and run a message node: open its files, make its components, and start them in order."""

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
from typing import TYPE_CHECKING, Final, final

import attrs
import trio
from typing_extensions import override

from actors.http.metrics import Part, Readiness
from actors.keys.runtime_key import SEED_BYTES
from actors.keys.signing import SigningKey, make_domain_key
from actors.kit.counters import Counters, DropLedger, Gauge, KeptFile, Tally
from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.otlp import open_spans
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import (
    Monitor,
    Strategy,
    open_supervisor,
)
from actors.kit.trace import Tracer
from actors.node.bus import NodeBus
from actors.node.components import AllocationService, LocalService, PathService
from actors.node.config import NOWHERE, NodeConfig
from actors.node.connectors.back_ends import connector_addresses, start_connectors
from actors.node.foreign import ForeignHost, Onward
from actors.node.health import probes, watch
from actors.node.host import NodeHost
from actors.node.http.rest_link import RestLinks
from actors.node.links.acceptor import REST, LinkAcceptor, OpenListener, RestAcceptor
from actors.node.links.bounds import Bounds
from actors.node.links.loop import AcceptorMaker, Links
from actors.node.links.upstream import PlainAcceptor, SessionAcceptor
from actors.node.login.connector import IdentityConnector
from actors.node.login.provider import IdentityProvider, UsedTokenFile, UsedTokens
from actors.node.messages import BusMessage, SessionView
from actors.node.policy.engine import Policing, PolicyService, policing_of
from actors.node.registry.record_file import MemoryRecords, RecordFile, SqliteRecords
from actors.node.registry.registry import DomainRegistry
from actors.node.session.control import Control, Gate, key_set
from actors.node.session.exchange import Exchange, UserNames, resume
from actors.node.session.opening import Logins
from actors.node.state.file import FORM, StateFile, StateWriter
from actors.node.tables import NodeAddresses, TableRules
from fsm.machines.registration import REGISTRATION
from fsm.registry.allocation import AddressMint
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
"""URL path for the stubs of Protofly."""

PLAIN: Final = "/stub/connect"
"""URL path for plain reTHINK stubs."""

SESSION: Final = "/ws"
"""URL path for reTHINK stubs that open a session by upstream's handshake."""

_MINT_KEY: Final = 32
"""Bytes of the secret by which a node recognises the addresses that it allocated."""

_log = get_logger("actors.node")


def _fresh_keys(entropy: Callable[[int], bytes]) -> tuple[SigningKey, ...]:
    """Return a new signing key for the domain, which is lost when the process ends."""
    key = make_domain_key(entropy(SEED_BYTES))
    _log.info("domain key made", kid=key.name, why="none was configured")
    return (key,)


@attrs.define(eq=False, kw_only=True)
class MessageNode(NodeHost):
    """Message node while it runs: holds its components and starts them.

    Attributes:
        file: Records of the domain registry.
        state: Stored sessions and names; None: sessions and names end with the process.
        provider: Validates logins; None: there is no login.
        shared: State that the nodes of the domain share; None: the domain has only this node.
        writer: Stores sessions and names; None: it has not started, or there is no state.
        http_url: Base URL of the node's HTTP service; None: the node serves no HTTP.
    """

    config: NodeConfig
    bounds: Bounds
    file: RecordFile
    state: StateFile | None
    policing: Policing | None
    board: "Board | None"
    domain_keys: tuple[SigningKey, ...]
    readiness: Readiness = attrs.field(factory=Readiness)
    provider: IdentityProvider | None = None
    shared: "Shared | None" = None
    writer: StateWriter | None = None
    http_url: str | None = None

    async def start_parts(self, listeners: tuple[Listener, ...]) -> None:
        """Start the components in order; a component that crashes is restarted with those after it.

        If cancelled, components that have started keep running.

        Args:
            listeners: Open listeners.
        """
        if self.policing is not None:
            self.policing.host = self
        if self.shared is not None:
            await self.shared.reach()
        if self.state is not None:
            await self.start("state-writer", partial(self._make_writer, self.state))
        self.bus_ref = await self.start("bus", self._make_bus)
        if self.shared is not None:
            await self.shared.start(self)
        await self._start_listener(listeners)
        if self.config.back_ends.registry is None:
            records = None if self.shared is None else self.shared.records()
            make_registry = partial(DomainRegistry, self, records or self.file, records)
            await self.start("registry", make_registry)
        await start_connectors(self.config.back_ends, self)
        if self.config.foreign is not NOWHERE:
            await self.start("foreign", partial(ForeignHost, self, self.config.foreign))

    def _make_writer(self, state: StateFile) -> StateWriter:
        self.writer = StateWriter(state, self.counters)
        return self.writer

    def _make_bus(self) -> NodeBus:
        config, shared, policing = self.config, self.shared, self.policing
        mint = AddressMint(config.entropy(_MINT_KEY) if shared is None else shared.mint)
        rights = RightsRules(
            config.observation,
            config.foreign.reach(config.domain),
            config.names,
            has_login=config.login is not None,
        )
        rules = TableRules(mint, rights)
        exchange = Exchange(self.addresses, rules, self.trace("bus"), self.ids, self.bounds)
        if self.writer is not None:
            exchange.note = self.writer.note
        exchange.has_login = config.login is not None
        if shared is not None:
            shared.join(self, exchange, self.http_url or "")
        exchange.names = UserNames(exchange.others.publish, self.login_clock)
        watch(exchange)
        if self.board is not None:
            self.board.watch(exchange, None if shared is None else shared.overview)
        policy = config.policy if policing is None else policing.engine(exchange.tables)
        gate, services = Gate(exchange, policy), self._services(exchange)
        logins = None
        if config.login is not None and self.provider is not None:
            connector = IdentityConnector(self, self.provider)
            services[self.addresses.identities] = connector
            logins = Logins(self, exchange, config.login, connector)
        control = Control(self, exchange, gate, self.domain_keys, logins)
        self.bus = NodeBus(exchange, control, services, gate, partial(self._resume, exchange))
        return self.bus

    async def _resume(self, exchange: Exchange) -> None:
        """Restore the sessions and runtime names that the state file holds."""
        if self.state is not None:
            stored = await trio.to_thread.run_sync(self.state.load)
            resume(exchange, stored, await trio.to_thread.run_sync(self.file.load))
            if self.board is not None:
                self.board.take_restored(exchange)

    def _services(self, exchange: Exchange) -> dict[str, LocalService]:
        config, addresses, tables = self.config, self.addresses, exchange.tables
        if config.foreign is not NOWHERE:
            exchange.foreign.paths = Onward(exchange)
        schemes = config.object_schemes | {"hyperty"}
        services: dict[str, LocalService] = {
            addresses.allocation: AllocationService(tables, schemes, self.entropy),
            addresses.paths: PathService(tables, exchange.foreign.paths),
        }
        if self.policing is not None:
            services[addresses.policies] = PolicyService(self.policing, exchange)
        return services

    async def _start_listener(self, listeners: tuple[Listener, ...]) -> None:
        control = self.addresses.session
        acceptors: dict[str, AcceptorMaker] = {
            LINK: lambda _: LinkAcceptor(),
            PLAIN: partial(PlainAcceptor, control),
            SESSION: lambda _: SessionAcceptor(control, self.config.names),
            REST: lambda _: RestAcceptor(),
        }
        numbers = itertools.count(1)  # of links; outlives a listener that is started again
        await self.start(
            "listener",
            lambda: Links(self.bus, self.bounds, self.monitor, listeners, acceptors, numbers),
        )


def _make_message_node(
    config: NodeConfig, network: Network, tracer: Tracer, files: "Files", bounds: Bounds
) -> MessageNode:
    """Make a node from its configuration, without starting any component."""
    counters = bounds.counters
    if config.monitor:
        # Most processes judge nothing, and the claims take a while to import.
        from actors.kit.self_check import SelfCheck  # noqa: PLC0415

        tracer = SelfCheck(tracer, config.process_name, None, counters)
    board = None if config.http is None else _board(config.domain, tracer, files, counters)
    tracer = tracer if board is None else board.tap
    addresses = NodeAddresses(config.domain, _list_endpoints(config))

    def clock() -> float:
        return trio.current_time() + config.clock_offset

    login = config.login
    return MessageNode(
        config=config,
        network=network,
        addresses=addresses,
        tracer=tracer,
        counters=counters,
        monitor=Monitor(tracer, counters),
        ids=config.ids,
        entropy=config.entropy,
        clock_offset=config.clock_offset,
        login_clock=clock if login is None or login.clock is None else login.clock,
        bounds=bounds,
        file=files.records,
        state=files.state,
        policing=policing_of(config.judged_by, is_shared=config.engine is not None),
        board=board,
        domain_keys=config.domain_keys or _fresh_keys(config.entropy),
    )


def _board(domain: str, tracer: Tracer, files: "Files", counters: Counters) -> "Board":
    """Make the data source of the dashboard; only a node that serves HTTP has a dashboard."""
    from actors.node.dashboard.board import Board  # noqa: PLC0415
    from actors.node.dashboard.tap import Tap  # noqa: PLC0415
    from fsm.dashboard.fleet import Fleet, Watched  # noqa: PLC0415

    fleet, watched = Fleet(), Watched()
    fleet.before(REGISTRATION.name, Counter(str(row.status) for row in files.records.load()))
    return Board(domain, fleet, Tap(tracer, fleet, watched), watched, counters)


def _list_endpoints(config: NodeConfig) -> list[str]:
    """Return the addresses of the optional components that this configuration turns on."""
    identities = [] if config.login is None else [identity_manager(config.domain)]
    policies = [] if config.judged_by is None else [policy_manager(config.domain)]
    return [*identities, *policies, *connector_addresses(config.back_ends, config.domain)]


@final
@attrs.frozen
class Node:
    """A running message node; made by `open_node`.

    Attributes:
        domain: Domain that the node serves.
        url: URL to which the stubs of Protofly connect.
        legacy_url: URL to which plain reTHINK stubs connect, with `?runtimeURL=` appended; None:
            the node does not serve them.
        session_url: URL to which reTHINK stubs with a session handshake connect; None: the node
            does not serve them.
        http_url: URL of health and metrics; None: no HTTP.
        rest_url: URL at which runtimes have sessions over HTTP; None: no such sessions.
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
        """Number of state machine transitions that no table allows; the log lists each of them."""
        return self.counters.monitor_violations

    def drops(self) -> DropLedger:
        """Return how many messages were dropped, by reason, and the most recent of them."""
        return self.counters.ledger()

    async def sessions(self) -> tuple[SessionView, ...]:
        """Return the current sessions, with the state of each.

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
        """Read the policy files again; if one of them is unusable, keep the policies in force.

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
    """Run a message node while the context is open; close its sessions when the context is left.

    Args:
        config: Configuration of the node.
        network: Network on which the node listens and dials.
        tracer: Receives the trace of the node.

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
    if not network.is_system:  # a simulation must not depend on the speed of the machine
        bounds.work_clock = trio.current_time
    about = config.otlp, config.otlp_sample, config.process_name, bounds.counters
    async with open_spans(tracer, *about) as seen, open_background() as nursery:
        sources = OpenListener(
            network.listen(Kind.WEBSOCKET, config.listen, _paths(config), bounds.gate)
        )
        listener = await nursery.start(sources.serve)
        with _files(config) as files:
            message_node = _make_message_node(config, network, seen, files, bounds)
            async with _serving(message_node, listener, sources) as node:
                yield node


@asynccontextmanager
async def _serving(
    node: MessageNode, listener: Listener, sources: "OpenListener"
) -> AsyncIterator[Node]:
    """Run the components of a node; at the end, close the listener, the links and the sessions."""
    rest = RestLinks(node.bounds.gate) if _has_rest(node.config) else None
    async with (
        _open_group(node),
        _login(node),
        _http(node, rest),
        open_supervisor("node", Strategy.REST_FOR_ONE, monitor=node.monitor) as node.supervisor,
    ):
        await node.start_parts((listener,) if rest is None else (listener, rest))
        node.readiness.ready(Part.NODE)
        is_orderly = False
        try:
            yield _handle(node, listener.address)
            is_orderly = True
        finally:
            node.readiness.lacking(Part.NODE, "it is going down")
            with trio.move_on_after(DRAIN_TIMEOUT / 2, shield=True):
                if rest is not None:
                    rest.close()
                await sources.close()
                await _drain(node.bus_ref)
                if not is_orderly:
                    # The node is cancelled, but its parts finish the work that they have begun.
                    await node.supervisor.stop_children()


@asynccontextmanager
async def _login(node: MessageNode) -> AsyncIterator[None]:
    """Open the identity provider of a node with logins; used tokens are kept in engine or file."""
    login = node.config.login
    if login is None:
        yield
        return
    used: UsedTokens | None = None
    if node.shared is not None:
        used = node.shared.tokens(node.login_clock)
    elif login.used_tokens is not None:
        count = partial(node.counters.count, Tally.WRITES_FAILED, KeptFile.USED_TOKENS)
        used = UsedTokenFile(login.used_tokens, on_failure=count)
    elif node.state is not None:
        count = partial(node.counters.count, Tally.WRITES_FAILED, KeptFile.STATE)
        used = UsedTokenFile(node.state.path, form=FORM, on_failure=count)
    node.provider = login.provider(node.login_clock)
    try:
        if used is not None:
            node.provider.remember(used)
        yield
    finally:
        await node.provider.aclose()


@asynccontextmanager
async def _open_group(node: MessageNode) -> AsyncIterator[None]:
    """Open the state that the nodes of a domain share, if the domain has several nodes."""
    config = node.config
    if config.engine is None:
        yield
        return
    # Not needed by the only node of a domain.
    from actors.node.group.shared import open_shared  # noqa: PLC0415

    secret = config.entropy(_MINT_KEY)
    policies = None if node.policing is None else node.policing.domain
    async with open_shared(
        config.engine, config.node_name, secret, node.counters, policies
    ) as node.shared:
        if config.http is not None and config.http.catalogue is not None:
            node.shared.catalogue.shown = config.http.catalogue
        yield


@asynccontextmanager
async def _http(node: MessageNode, rest: RestLinks | None) -> AsyncIterator[None]:
    """Serve health, metrics and sessions over HTTP while the components start, run and stop."""
    config, shared = node.config.http, node.shared
    if config is None:
        yield
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

    node.counters.watch(Gauge.TRACE_LOST, lambda: node.tracer.dropped)
    services = {} if rest is None else rest_services(rest, node.config.origins)
    extra_pages = {}
    if node.board is not None:
        services |= dashboard_services(config, node.board, _sources(node))
        extra_pages = {DASHBOARD: to_page}
    parts = probes(node, node.config, node.provider, shared)
    site = site_of(
        config,
        node.counters,
        ReadyPage(node.readiness, parts, {Part.ENGINE}),
        services,
        key_set(node.domain_keys),
        more=extra_pages,
        catalogue=None if shared is None else shared.catalogue,
    )
    async with open_http(node.network, config, site, node.monitor) as node.http_url:
        yield


def _sources(node: MessageNode) -> "Sources":
    from actors.node.dashboard.pages import Sources  # noqa: PLC0415

    config, shared = node.config, node.shared
    catalogue = None if config.http is None else config.http.catalogue
    records = node.file.load if shared is None else shared.known_records
    return Sources(
        records if config.back_ends.registry is None else None,
        None if node.policing is None else node.policing.store,
        "" if catalogue is None else catalogue.domain,
        config.monitor,
        None if shared is None else shared.colleagues,
    )


def _handle(node: MessageNode, address: str) -> Node:
    is_legacy, http_url = node.config.allow_legacy, node.http_url
    return Node(
        domain=node.config.domain,
        url=address + LINK,
        legacy_url=address + PLAIN if is_legacy else None,
        session_url=address + SESSION if is_legacy else None,
        http_url=http_url,
        rest_url=http_url + REST if http_url is not None and _has_rest(node.config) else None,
        counters=node.counters,
        bus=node.bus_ref,
        policing=node.policing,
    )


def _has_rest(config: NodeConfig) -> bool:
    return config.http is not None and config.http.rest


def _paths(config: NodeConfig) -> dict[str, str | None]:
    """Return the URL paths at which links are accepted, each with its WebSocket subprotocol."""
    plain: dict[str, str | None] = {PLAIN: None, SESSION: None} if config.allow_legacy else {}
    return {LINK: PROTOFLY_V1, **plain}


@attrs.frozen
class Files:
    """Open files of a node: records of the registry and, if configured, the sessions."""

    records: RecordFile
    state: StateFile | None = None


@contextmanager
def _files(config: NodeConfig) -> Iterator[Files]:
    state_path = config.state_file
    records = MemoryRecords() if config.registry is None else SqliteRecords(config.registry)
    with closing(records), ExitStack() as stack:
        state = None
        if state_path is not None:
            records.load()
            state = stack.enter_context(closing(StateFile(state_path)))
            state.load()
        yield Files(records, state)


async def _drain(bus: ActorRef[BusMessage]) -> None:
    """Close every session, and mark the runtime's registry records as disconnected."""
    with suppress(ActorStoppedError):
        await bus.ask(lambda done: lambda node: node.drain(done))
