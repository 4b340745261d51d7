"""The composition root of a runtime: what it is built of, in which order, and how it ends."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, closing
from functools import partial
from typing import final

import attrs
import trio

from actors.keys.key_file import open_key_file
from actors.keys.runtime_key import SEED_BYTES, make_runtime_key
from actors.kit.counters import Counters, DropLedger
from actors.kit.log import get_logger
from actors.kit.plain_urls import check_plain
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.background import BackgroundTasks
from actors.kit.supervision.monitor import Monitor
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Intensity,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.kit.trace import Tracer
from actors.pipe.process import ProcessSandboxes, process_sandboxes
from actors.runtime.bus.message_bus import DeadMail, MessageBus
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.ports import CorePort
from actors.runtime.bus.transfers import Transfers
from actors.runtime.capabilities import hyperty_capabilities, protocol_capabilities
from actors.runtime.catalogue import SHIPPED, Evidence, StubMakers
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.parts import (
    DISCOVERY,
    PartClient,
    PartServices,
    RefusingPart,
    start_parts,
)
from actors.runtime.following import Followers, StepFeed
from actors.runtime.health import RuntimeHealth, serving_health
from actors.runtime.hop_trace import HopTrace
from actors.runtime.isolation.stub import StubCode, sandboxed_stub
from actors.runtime.link_guard import Beliefs, LinkGuard
from actors.runtime.objects.windows import RequestWindows
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.own_sender import OwnSender
from actors.runtime.p2p.profile import LINK_MAKERS
from actors.runtime.parts import RuntimeParts
from actors.runtime.policing import PEP, Policing, RuntimeUser
from actors.runtime.policy import Judge
from actors.runtime.registry.allocation import AddressAllocation
from actors.runtime.registry.registrations import Registrar
from actors.runtime.registry.registry import Registry, RegistryParts
from actors.runtime.registry.status import RuntimeStatus
from actors.runtime.runtime import Runtime
from actors.runtime.store.runtime_store import RuntimeStore, open_store
from actors.runtime.stubs import node_stub
from actors.runtime.stubs.catalogue import BuiltInCatalogue, Catalogue, Servers, StubKind
from actors.runtime.stubs.idp_credentials import IdpCredentials
from actors.runtime.stubs.loader import Loader, LoaderMessage, LoaderTools, RegistryIs
from actors.runtime.stubs.sandbox import Sandboxes
from actors.runtime.stubs.stub import StubConfig, StubContext, StubFactory
from actors.runtime.sync.context import (
    DataSchemas,
    SyncContext,
    SyncMessage,
)
from actors.runtime.sync.manager import SyncManager
from fsm.p2p.link_policy import NO_LINKS
from fsm.registry.resolve.config import ResolveConfig
from specs.limits.protocol import DRAIN_TIMEOUT
from transports.background import open_background
from transports.link import Network

_log = get_logger("actors.runtime")

_ONE_LIFE = Intensity(restarts=0)
"""The core parts share tables: a crash of one is a bug, and ends the runtime."""


@final
class Replay:
    """Sets the paths of the runtime again; parts that are made earlier than the runtime call it."""

    def __init__(self) -> None:
        self._run: Callable[[str, str | None], Awaitable[None]] | None = None

    def to(self, run: Callable[[str, str | None], Awaitable[None]]) -> None:
        """Set the function to call."""
        self._run = run

    async def run(self, domain: str, session: str | None) -> None:
        """Set the paths at the node of a domain again.

        Args:
            domain: Domain of the node.
            session: Name of the new session at it.

        If cancelled, some of them may be missing.
        """
        if self._run is not None:
            await self._run(domain, session)


@final
@attrs.frozen
class _Plan:
    """The objects that all parts of one runtime share."""

    config: RuntimeConfig
    network: Network
    tracer: StepFeed
    counters: Counters
    monitor: Monitor
    bus: MessageBus
    dead_mail: DeadMail
    replay: Replay
    store: RuntimeStore
    identity: OwnIdentity
    own: OwnSender
    processes: ProcessSandboxes
    guard: LinkGuard
    judge: Judge
    policing: Policing | None

    def hops(self, actor: str) -> HopTrace:
        """Make the pen of one part."""
        return HopTrace(self.tracer, actor, self.counters)

    def context(self, url: str, port: MiniBusPort, config: StubConfig) -> StubContext:
        """Put together what a stub may use (STB-13)."""
        domain, credentials = config.domain, self.config.credentials
        token = config.session or self.store.session(domain)
        return StubContext(
            url,
            port,
            attrs.evolve(config, credentials=credentials, session=token),
            self.network,
            self.tracer,
            self.config.ids,
            self.config.entropy,
            self.counters,
            remember=partial(self.store.keep_session, domain),
            identity=self.identity,
            own=self.own,
            guard=lambda: self.guard,
        )


@asynccontextmanager
async def open_runtime(
    config: RuntimeConfig, network: Network, tracer: Tracer
) -> AsyncIterator[Runtime]:
    """Run a runtime while the context is open; when it is left, the runtime leaves in order.

    With direct links wanted, the handler stub is deployed and its path is set before the block
    begins; if that fails, the runtime goes on without them (RT-01, P2P-02). Otherwise nothing is
    connected yet.

    Args:
        config: Configuration of the runtime.
        network: Network on which it dials and listens.
        tracer: Takes its trace.

    Yields:
        The running runtime.

    If cancelled, the runtime still leaves in order, for at most `DRAIN_TIMEOUT` seconds.

    Raises:
        BadUrlError: Domain or name cannot be part of an address.
        StoreFileError: The file of the store cannot be used.
        KeyFileError: The file of the runtime's key cannot be used.
        PolicyFileError: A policy file cannot be used.
        HttpPlaceError: Health and metrics cannot be served at that place.
        OpenMetricsError: Every client could read the metrics.
        RestartLimitError: A core part crashed, which is a bug; in a group.
        HypertyFailedError: A hyperty was given up, and `config.stop_on_failure` is set.
    """
    counters = Counters()
    if config.monitor:
        # Most processes judge nothing, and the claims take a while to import.
        from actors.kit.self_check import SelfCheck  # noqa: PLC0415

        tracer = SelfCheck.of(tracer, config.name, config.runtime, counters)
    monitor = Monitor(tracer, counters)
    with open_store(config.store) as store, process_sandboxes(config.sandboxes) as processes:
        identity = own_identity(config)
        own = OwnSender.of(config.runtime)
        judge, policing = _judged(config, own)
        feed = StepFeed(tracer)
        bus = MessageBus(own, judge, feed, counters, config.interceptors)
        plan = _Plan(
            config=config,
            network=network,
            tracer=feed,
            counters=counters,
            monitor=monitor,
            bus=bus,
            dead_mail=DeadMail(bus, counters),
            replay=Replay(),
            store=store,
            identity=identity,
            own=own,
            judge=judge,
            policing=policing,
            guard=_guard(config, identity),
            processes=processes,
        )
        with closing(bus):  # also after a bug: who waits outside for an answer hears of it
            async with (
                aclosing(plan.guard),
                serving_health(config, network, plan.tracer, monitor) as health,
                _running(plan, health) as runtime,
            ):
                yield runtime


def own_identity(config: RuntimeConfig) -> OwnIdentity:
    """Return the identity that a runtime begins with: its key, of which nothing was said yet.

    Args:
        config: Configuration of the runtime.

    Raises:
        KeyFileError: The file of the runtime's key cannot be used.
    """
    where = config.identity_file
    if where is None:
        return OwnIdentity(make_runtime_key(config.entropy(SEED_BYTES)))
    return OwnIdentity(open_key_file(where))


def _judged(config: RuntimeConfig, own: OwnSender) -> tuple[Judge, Policing | None]:
    """Return what rules on messages; its policies, unless the application decides itself."""
    policy = config.policy
    if isinstance(policy, Judge):
        return policy, None
    user = RuntimeUser(config.user, own)
    policing = Policing(
        policy, config.domain, user, lambda: trio.current_time() + config.clock_offset
    )
    return policing.judge, policing


def _guard(config: RuntimeConfig, identity: OwnIdentity) -> LinkGuard:
    beliefs = Beliefs(
        domain=config.domain,
        trust=config.believed,
        require=config.link_requirement,
        clock_offset=config.clock_offset,
    )
    return LinkGuard(identity, beliefs, config.entropy)


@asynccontextmanager
async def _running(plan: _Plan, health: RuntimeHealth | None) -> AsyncIterator[Runtime]:
    config, lost, seen = plan.config, plan.dead_mail, plan.monitor
    async with (
        open_supervisor(f"{config.name} followers", Strategy.PEERS, monitor=seen) as watching,
        open_supervisor(config.name, Strategy.ONE_FOR_ALL, _ONE_LIFE, lost, seen) as core,
        open_supervisor(f"{config.name} sandboxes", dead_letters=lost, monitor=seen) as isolated,
        open_background() as background,
    ):
        parts = await _start(plan, core, isolated, Followers(plan.tracer, watching))
        runtime = Runtime(parts, background)
        plan.replay.to(runtime.paths_lost)
        await runtime.boot()
        if health is not None:
            health.opened(runtime)
            runtime.http_url = health.url
        if config.stop_on_failure:
            background.start_soon(runtime.raise_failure)
        try:
            yield runtime
        finally:
            if health is not None:
                health.closing()
            with trio.move_on_after(DRAIN_TIMEOUT, shield=True):
                await runtime.leave()
            _log_drops(config.name, plan.counters.ledger())


def _log_drops(name: str, ledger: DropLedger) -> None:
    """Log what was not delivered; nothing if nothing was."""
    if ledger.total:
        counts = {str(reason): count for reason, count in ledger.counts.items()}
        _log.info("messages not delivered", runtime=name, total=ledger.total, **counts)


async def _start(
    plan: _Plan, core: Supervisor, isolated: Supervisor, followers: Followers
) -> RuntimeParts:
    config, own = plan.config, plan.config.runtime
    bus = plan.bus
    await core.start_child(ChildSpec("bus", lambda: bus))
    tasks = BackgroundTasks()
    await core.start_child(ChildSpec("background", lambda: tasks))
    if plan.policing is not None:
        await plan.policing.start(core, CorePort(f"{own}/{PEP}", bus))
    await plan.store.start(core)
    agent = CorePort(f"{own}/ua", bus)
    if isinstance(config.credentials, IdpCredentials):
        config.credentials.ask_by(
            agent,
            config.ids,
            plan.identity.key.thumbprint,
            has_gui=config.identity_gui is not None,
        )
    sandboxes = Sandboxes(isolated, bus, agent, plan.tracer, plan.counters)
    catalogue = _catalogue(plan)
    make_loader = partial(_loader, plan, agent, sandboxes, catalogue)
    loader = await core.start_child(ChildSpec("loader", make_loader))
    port = CorePort(f"{own}/registry", bus)
    registrar = Registrar(port, config.ids, tasks)
    tasks.spawn(registrar.keep_alive)
    status = RuntimeStatus(own, port, config.ids, is_published=config.publish_status)
    registry = await _registry(plan, core, status, bus, loader)
    port = CorePort(f"{own}/address-allocation", bus)
    refusing = partial(RefusingPart, port, "addresses are allocated by the node")
    await core.start_child(ChildSpec("address-allocation", refusing))
    allocation = AddressAllocation(config.domain, port, config.ids, tasks)
    sync_manager = await _sync_manager(
        plan, core, _SyncHelpers(bus, allocation, registrar, registry, catalogue)
    )
    discoverer = PartClient(CorePort(f"{own}/{DISCOVERY}", bus), config.ids).discoverer()
    parts = discoverer, plan.own, plan.identity, registry, sync_manager
    services = PartServices(*parts, config.identity_gui)
    await start_parts(core, bus, config.ids, services)
    return RuntimeParts(
        config=config,
        counters=plan.counters,
        monitor=plan.monitor,
        tracer=plan.tracer,
        bus=bus,
        agent=agent,
        sandboxes=sandboxes,
        processes=plan.processes,
        catalogue=catalogue,
        loader=loader,
        registrar=registrar,
        registry=registry,
        allocation=allocation,
        sync_manager=sync_manager,
        store=plan.store,
        followers=followers,
        identity=plan.identity,
        own=plan.own,
        discoverer=discoverer,
        policing=plan.policing,
        status=status,
        transfers=Transfers(config.largest_body),
        windows=RequestWindows(),
    )


def _makers(plan: _Plan) -> StubMakers:
    """Return the makers of fetched stubs: their code runs in sandbox processes."""
    spawn = plan.processes.open

    def code(archive: bytes, entry_point: str, endpoints: tuple[str, ...]) -> StubFactory:
        return sandboxed_stub(StubCode(archive, entry_point), endpoints, spawn)

    check = partial(check_plain, network=plan.network, insecure=plan.config.insecure)
    return StubMakers(
        SHIPPED,
        code,
        check,
        hyperties=hyperty_capabilities(plan.config),
        protocols=protocol_capabilities(plan.config),
    )


def _catalogue(plan: _Plan) -> Catalogue:
    """Return where stubs and data schemas are looked up."""
    config = plan.config
    factories: dict[StubKind, StubFactory] = {StubKind.NODE: node_stub.activate, **LINK_MAKERS}
    registries = {} if config.registry is None else {config.domain: config.registry}
    servers = Servers(SHIPPED["rest-registry"], registries)
    catalogue: Catalogue = BuiltInCatalogue(factories, config.dialled, servers)
    if config.catalogues is not None:
        # Signatures are slow to import, and not needed without fetching.
        from actors.runtime.catalogue import fetching  # noqa: PLC0415

        evidence = Evidence(plan.tracer, plan.counters, plan.identity)
        catalogue = fetching(catalogue, config.catalogues, _makers(plan), evidence)
    return catalogue


def _loader(plan: _Plan, agent: CorePort, sandboxes: Sandboxes, catalogue: Catalogue) -> Loader:
    tools = LoaderTools(plan.hops("loader"), plan.config.ids, plan.context)
    return Loader(agent, sandboxes, catalogue, tools)


async def _registry(
    plan: _Plan,
    core: Supervisor,
    status: RuntimeStatus,
    bus: MessageBus,
    loader: ActorRef[LoaderMessage],
) -> Registry:
    config = plan.config
    p2p = config.links if config.kinds else NO_LINKS
    resolve = ResolveConfig(
        config.runtime,
        config.domain,
        p2p,
        config.topology,
        stub_idle=config.stub_idle,
        has_catalogues=config.catalogues is not None,
    )
    parts = RegistryParts(
        port=CorePort(f"{config.runtime}/registry", bus),
        bus=bus,
        loader=loader,
        ids=config.ids,
        hops=plan.hops("registry"),
        paths_lost=plan.replay.run,
        status=status,
        kinds=config.kinds,
        p2p_host=config.p2p_host,
        ice=config.ice_source,
    )
    registry = Registry(resolve, parts)
    await core.start_child(ChildSpec("registry", lambda: registry))
    bus.join(registry)
    await loader.ask(lambda done: RegistryIs(registry, done))
    return registry


@final
@attrs.frozen
class _SyncHelpers:
    """The actors that the sync manager works with."""

    bus: MessageBus
    allocation: AddressAllocation
    registrar: Registrar
    registry: Registry
    catalogue: Catalogue


async def _sync_manager(
    plan: _Plan, core: Supervisor, helpers: _SyncHelpers
) -> ActorRef[SyncMessage]:
    config = plan.config
    context = SyncContext(
        runtime=config.runtime,
        domain=config.domain,
        bus=CorePort(f"{config.runtime}/sm", helpers.bus),
        allocation=helpers.allocation,
        registrar=helpers.registrar,
        ids=config.ids,
        tracer=plan.tracer,
        registry=helpers.registry,
        topology=config.topology,
        schemas=DataSchemas(helpers.catalogue),
        gate=plan.store.gate(),
        counters=plan.counters,
        lease=config.lease,
        entropy=config.entropy,
        clock_offset=config.clock_offset,
    )
    return await core.start_child(ChildSpec("sync-manager", partial(SyncManager, context)))
