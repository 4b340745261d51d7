"""Assembly of a runtime: makes its components, starts them in order, and stops them at the end."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from functools import partial

import attrs
import trio

from actors.http.metrics import Part, Readiness
from actors.keys.key_file import open_key_file
from actors.keys.runtime_key import SEED_BYTES, make_runtime_key
from actors.kit.counters import Counters, DropLedger, Gauge
from actors.kit.http_client import check_plain
from actors.kit.log import get_logger
from actors.kit.otlp import open_spans
from actors.kit.supervision.actor import BackgroundTasks
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Intensity,
    Monitor,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.kit.trace import Tracer
from actors.pipe.process import process_sandboxes
from actors.runtime.bus.message_bus import DeadMail, MessageBus
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.ports import CorePort
from actors.runtime.catalogue import (
    SHIPPED,
    Evidence,
    FetchingCatalogue,
    StubMakers,
    hyperty_capabilities,
    protocol_capabilities,
)
from actors.runtime.config import RuntimeConfig
from actors.runtime.following import Followers, StepFeed
from actors.runtime.hop_trace import HopTrace
from actors.runtime.isolation import StubCode, sandboxed_stub
from actors.runtime.link_guard import LinkGuard
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.own_parts import DISCOVERY, RefusingPart, discoverer_of, start_parts
from actors.runtime.own_sender import OwnSender
from actors.runtime.p2p.stub import LINK_MAKERS
from actors.runtime.policing import PEP, Policing
from actors.runtime.policy import Judge
from actors.runtime.registry.allocation import AddressAllocation
from actors.runtime.registry.registrations import Registrar, RuntimeStatus
from actors.runtime.registry.registry import Registry
from actors.runtime.runtime import Runtime
from actors.runtime.store.runtime_store import open_store
from actors.runtime.stubs import node_stub
from actors.runtime.stubs.catalogue import BuiltInCatalogue, Catalogue, StubKind
from actors.runtime.stubs.credentials import IdpCredentials
from actors.runtime.stubs.loader import Loader
from actors.runtime.stubs.sandbox import Sandboxes
from actors.runtime.stubs.stub import StubConfig, StubContext, StubFactory
from actors.runtime.sync.manager import SyncManager
from actors.runtime.sync.output import SyncOutput
from fsm.p2p.dialling import NO_LINKS
from fsm.registry.resolve.links import ResolveConfig
from specs.bodies.word import StatusValue
from specs.limits.protocol import DRAIN_TIMEOUT
from specs.reply_code import Code
from transports.link import Network
from transports.sockets import open_background

_log = get_logger("actors.runtime")

_ONE_LIFE = Intensity(restarts=0)
"""Restart limit of the core components: they share state, so any crash ends the runtime."""


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
        HttpPlaceError: Health and metrics cannot be served at the configured place.
        OpenMetricsError: Every client could read the metrics.
        RestartLimitError: A core part crashed, which is a bug; in a group.
        HypertyFailedError: A hyperty was given up, and `config.stop_on_failure` is set.
    """
    counters = Counters()
    spans = open_spans(tracer, config.otlp, config.otlp_sample, config.name, counters)
    async with spans as seen, _open_parts(config, network, seen, counters) as runtime:
        yield runtime


@asynccontextmanager
async def _open_parts(
    config: RuntimeConfig, network: Network, tracer: Tracer, counters: Counters
) -> AsyncIterator[Runtime]:
    if config.monitor:
        # Most processes judge nothing, and the claims take a while to import.
        from actors.kit.self_check import SelfCheck  # noqa: PLC0415

        tracer = SelfCheck(tracer, config.name, config.runtime, counters)
    monitor = Monitor(tracer, counters)
    with open_store(config.store) as store, process_sandboxes(config.sandboxes) as processes:
        identity, feed = own_identity(config), StepFeed(tracer)
        runtime = Runtime(config, network, counters, monitor, feed, store, processes, identity)
        judge, runtime.policing = _make_judge(config, runtime.own)
        runtime.bus = MessageBus(runtime.own, judge, feed, counters, config.interceptors)
        runtime.guard = _guard(config, identity)
        with closing(runtime.bus):  # also after a bug: waits for answers outside end then
            async with (
                aclosing(runtime.guard),
                _serving_health(runtime) as readiness,
                _running(runtime, readiness),
            ):
                yield runtime


def own_identity(config: RuntimeConfig) -> OwnIdentity:
    """Return the identity that a runtime starts with: its key, without statements about the key.

    Args:
        config: Configuration of the runtime.

    Raises:
        KeyFileError: The file of the runtime's key cannot be used.
    """
    where = config.identity_file
    if where is None:
        return OwnIdentity(make_runtime_key(config.entropy(SEED_BYTES)))
    return OwnIdentity(open_key_file(where))


def _make_judge(config: RuntimeConfig, own: OwnSender) -> tuple[Judge, Policing | None]:
    """Return the judge of messages; and the policies, unless the judge is the application's."""
    policy = config.policy
    if isinstance(policy, Judge):
        return policy, None
    policing = Policing(
        policy,
        config.domain,
        config.user,
        own,
        lambda: trio.current_time() + config.clock_offset,
    )
    return policing, policing


def _guard(config: RuntimeConfig, identity: OwnIdentity) -> LinkGuard:
    return LinkGuard(
        identity,
        domain=config.domain,
        trust=config.believed,
        require=config.link_requirement,
        clock_offset=config.clock_offset,
        entropy=config.entropy,
    )


@asynccontextmanager
async def _running(runtime: Runtime, readiness: Readiness) -> AsyncIterator[None]:
    config, monitor = runtime.config, runtime.monitor
    dead = DeadMail(runtime.bus, runtime.counters)
    async with (
        open_supervisor(f"{config.name} followers", Strategy.PEERS, monitor=monitor) as watching,
        open_supervisor(config.name, Strategy.ONE_FOR_ALL, _ONE_LIFE, dead, monitor) as core,
        open_supervisor(f"{config.name} sandboxes", dead_letters=dead, monitor=monitor) as isolated,
        open_background() as runtime.background,
    ):
        runtime.followers = Followers(runtime.tracer, watching)
        await _start(runtime, core, isolated)
        await runtime.boot()
        if runtime.http_url is not None:
            runtime.counters.watch(Gauge.HYPERTIES, lambda: runtime.hyperties)
        readiness.ready(Part.RUNTIME)
        if config.stop_on_failure:
            runtime.background.start_soon(runtime.raise_failure)
        try:
            yield
        finally:
            readiness.lacking(Part.RUNTIME, "it is going down")
            with trio.move_on_after(DRAIN_TIMEOUT, shield=True):
                await runtime.leave()
            _log_drops(config.name, runtime.counters.ledger())


@asynccontextmanager
async def _serving_health(runtime: Runtime) -> AsyncIterator[Readiness]:
    """Serve health, readiness and metrics over HTTP if the configuration names an address for them.

    Raises:
        HttpPlaceError: The address is in use, or may not be listened on.
        OpenMetricsError: Every client that reaches the address could read the metrics.
    """
    config, monitor, readiness = runtime.config, runtime.monitor, Readiness(Part.RUNTIME)
    if config.http is None:
        yield readiness
        return
    # The modules are slow to import, and only needed to serve HTTP.
    from actors.http.metrics import OF_RUNTIMES, ReadyPage  # noqa: PLC0415
    from actors.http.service import open_http, site_of  # noqa: PLC0415

    async def session() -> str | None:
        await trio.lowlevel.checkpoint()
        is_live = config.node is None or runtime.status.value is StatusValue.LIVE
        return None if is_live else f"the connection to the node is {runtime.status.value}"

    async def hyperties() -> str | None:
        await trio.lowlevel.checkpoint()
        failure = runtime.failure
        # The exception may contain secrets.
        return None if failure is None else f"the hyperty {failure.name!r} was given up"

    monitor.counters.watch(Gauge.TRACE_LOST, lambda: runtime.tracer.dropped)
    ready = ReadyPage(readiness, {Part.SESSION: session, Part.HYPERTIES: hyperties})
    site = site_of(config.http, monitor.counters, ready, shown=OF_RUNTIMES)
    async with open_http(runtime.network, config.http, site, monitor) as runtime.http_url:
        yield readiness


def _log_drops(name: str, ledger: DropLedger) -> None:
    """Log the numbers of messages that were not delivered, if there are any."""
    if ledger.total:
        counts = {str(reason): count for reason, count in ledger.counts.items()}
        _log.info("messages not delivered", runtime=name, total=ledger.total, **counts)


async def _start(runtime: Runtime, core: Supervisor, isolated: Supervisor) -> None:
    """Create the components of a runtime and start them in the order of their dependencies."""
    config, bus, ids = runtime.config, runtime.bus, runtime.ids
    tasks = BackgroundTasks()
    await core.start_child(ChildSpec("bus", lambda: bus))
    await core.start_child(ChildSpec("background", lambda: tasks))
    if runtime.policing is not None:
        await runtime.policing.start(core, runtime.port(PEP))
    await runtime.store.start(core)
    runtime.agent = runtime.port("ua")
    if isinstance(config.credentials, IdpCredentials):
        config.credentials.ask_by(
            runtime.agent,
            ids,
            runtime.identity.key.thumbprint,
            has_gui=config.identity_gui is not None,
        )
    runtime.sandboxes = Sandboxes(isolated, bus, runtime.agent, runtime.tracer, runtime.counters)
    runtime.catalogue = _catalogue(runtime)
    refusing = partial(
        RefusingPart, runtime.agent, "the loader of a runtime answers nothing", Code.NOT_FOUND
    )
    await core.start_child(ChildSpec("loader", refusing))
    runtime.loader = Loader(
        runtime.agent,
        runtime.sandboxes,
        runtime.catalogue,
        tasks,
        _hops(runtime, "loader"),
        ids,
        partial(_stub_context, runtime),
    )
    port = runtime.port("registry")
    runtime.registrar = Registrar(port, ids, tasks)
    tasks.spawn(runtime.registrar.keep_alive)
    runtime.status = RuntimeStatus(runtime.url, port, ids, is_published=config.publish_status)
    runtime.registry = registry = _registry(runtime, port)
    await core.start_child(ChildSpec("registry", lambda: registry))
    bus.join(registry)
    runtime.loader.registry = registry
    port = runtime.port("address-allocation")
    refusing = partial(RefusingPart, port, "addresses are allocated by the node")
    await core.start_child(ChildSpec("address-allocation", refusing))
    runtime.allocation = AddressAllocation(config.domain, port, ids, tasks)
    runtime.sync = sync = _sync_manager(runtime)
    await core.start_child(ChildSpec("sync-manager", lambda: sync))
    runtime.discoverer = discoverer_of(runtime.port(DISCOVERY), ids)
    await start_parts(runtime, core)


def _makers(runtime: Runtime) -> StubMakers:
    """Return the factories of fetched stubs, whose code runs in sandbox processes."""
    config, spawn = runtime.config, runtime.processes.open

    def code(archive: bytes, entry_point: str, endpoints: tuple[str, ...]) -> StubFactory:
        return sandboxed_stub(StubCode(archive, entry_point), endpoints, spawn)

    return StubMakers(
        SHIPPED,
        code,
        partial(check_plain, network=runtime.network, insecure=config.insecure),
        hyperties=hyperty_capabilities(config),
        protocols=protocol_capabilities(config),
    )


def _catalogue(runtime: Runtime) -> Catalogue:
    """Return the catalogue of stubs and data schemas."""
    config = runtime.config
    factories: dict[StubKind, StubFactory] = {StubKind.NODE: node_stub.activate, **LINK_MAKERS}
    registries = {} if config.registry is None else {config.domain: config.registry}
    activate = SHIPPED["rest-registry"]
    catalogue: Catalogue = BuiltInCatalogue(factories, config.dialled, registries, activate)
    if config.catalogues is not None:
        evidence = Evidence(runtime.tracer, runtime.counters, runtime.identity)
        catalogue = FetchingCatalogue(catalogue, config.catalogues, _makers(runtime), evidence)
    return catalogue


def _hops(runtime: Runtime, part: str) -> HopTrace:
    return HopTrace(runtime.tracer, part, runtime.counters)


def _stub_context(runtime: Runtime, url: str, port: MiniBusPort, config: StubConfig) -> StubContext:
    """Return the context of a stub: all that it may use of the runtime (STB-13)."""
    domain, store = config.domain, runtime.store
    token = config.session or store.session(domain)
    return StubContext(
        url,
        port,
        attrs.evolve(config, credentials=runtime.config.credentials, session=token),
        runtime.network,
        runtime.tracer,
        runtime.ids,
        runtime.config.entropy,
        runtime.counters,
        remember=partial(store.keep_session, domain),
        identity=runtime.identity,
        own=runtime.own,
        guard=lambda: runtime.guard,
    )


def _registry(runtime: Runtime, port: CorePort) -> Registry:
    config = runtime.config
    resolve = ResolveConfig(
        config.runtime,
        config.domain,
        config.links if config.kinds else NO_LINKS,
        config.topology,
        stub_idle=config.stub_idle,
        has_catalogues=config.catalogues is not None,
    )
    return Registry(resolve, runtime, port, _hops(runtime, "registry"))


def _sync_manager(runtime: Runtime) -> SyncManager:
    bus, gate, registry = runtime.port("sm"), runtime.store.gate(), runtime.registry
    out = SyncOutput(runtime.config, bus, gate, runtime.tracer, runtime.counters, registry)
    return SyncManager(out, runtime.allocation, runtime.registrar, runtime.catalogue)
