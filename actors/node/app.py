"""The composition root of a message node."""

from collections.abc import AsyncIterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    closing,
    suppress,
)
from typing import final

import attrs
import trio

from actors.kit.counting.counters import Counters
from actors.kit.counting.drops import DropLedger
from actors.kit.counting.tally import Gauge
from actors.kit.errors import ActorStoppedError
from actors.kit.log import log_quietly
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import Strategy, open_supervisor
from actors.kit.trace import Tracer
from actors.node.assembly import LINK, PLAIN, SESSION, Plan, plan_of, start_parts
from actors.node.config import NodeConfig
from actors.node.health.probes import Parts
from actors.node.health.readiness import Part
from actors.node.http.rest_links import RestLinks
from actors.node.links.acceptor import REST
from actors.node.login.part import open_provider
from actors.node.messages import BusMessage, Drain, SessionView, Snapshot
from actors.node.policy.parts import Policing
from actors.node.registry.record_file import MemoryRecords, RecordFile, SqliteRecords
from actors.node.session.bounds import Bounds
from specs.limits.protocol import DRAIN_TIMEOUT
from transports.background import open_background
from transports.link import PROTOFLY_V1, Kind, Listener
from transports.network import Network

__all__ = ["Node", "NodeConfig", "open_node"]


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
        http_url: Where health and metrics are served; None: nowhere.
        rest_url: Where runtimes have sessions over HTTP; None: nowhere.
        counters: What it had to drop, and what its monitor saw.
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

    @property
    def monitor_violations(self) -> int:
        """How many steps were tried that no table declares; each is in log and trace."""
        return self.counters.monitor_violations

    def drops(self) -> DropLedger:
        """Show which messages were not delivered, and why: counted, and the last one by one."""
        return self.counters.ledger()

    async def sessions(self) -> tuple[SessionView, ...]:
        """Show how its sessions stand."""
        return await self._bus.ask(Snapshot)

    @property
    def has_policies(self) -> bool:
        """Whether it judges by policies."""
        return self._policing is not None

    async def reload_policies(self) -> str:
        """Have the policy files read again; return why they cannot be used, if they cannot."""
        return "" if self._policing is None else await self._policing.reload()


@asynccontextmanager
async def open_node(config: NodeConfig, network: Network, tracer: Tracer) -> AsyncIterator[Node]:
    """Run a message node while the context is open; on leaving it drains.

    Raises:
        ListenError: The place to listen at is taken or not ours.
        RegistryFileError: The file of the domain registry cannot be used.
        PolicyFileError: A policy file cannot be used.
        RestartLimitError: A part of the node crashes again and again; comes out of
            the context in a group.
    """
    log_quietly()
    bounds = Bounds(config.limits, config.origins, Counters())
    async with open_background() as nursery:
        entrance = _Entrance(
            network.listen(Kind.WEBSOCKET, config.listen, _doors(config), bounds.gate)
        )
        listener = await nursery.start(entrance.serve)
        with _records(config) as file:
            plan = plan_of(config, network, tracer, file, bounds)
            async with _serving(plan, listener, entrance) as node:
                yield node


@asynccontextmanager
async def _serving(plan: Plan, listener: Listener, entrance: "_Entrance") -> AsyncIterator[Node]:
    """Run the parts behind a listener; on leaving, close it, take leave and stop them."""
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
        parts.bus = bus = await start_parts(planned, listeners, supervisor)
        plan.standing.ready(Part.NODE)
        is_orderly = False
        try:
            yield _node(planned, listener.address, bus, http_url)
            is_orderly = True
        finally:
            plan.standing.lacking(Part.NODE, "it is going down")
            with trio.move_on_after(DRAIN_TIMEOUT / 2, shield=True):
                if rest is not None:
                    rest.close()
                await entrance.close()
                await _drain(bus)
                if not is_orderly:
                    # What the parts were told they do, though the node is cancelled.
                    await supervisor.stop_children()


@final
class _Entrance:
    """A listener in a task of its own: it is closed first of all, and everything else is open."""

    def __init__(self, opened: AbstractAsyncContextManager[Listener]) -> None:
        self._opened = opened
        self._is_closing = trio.Event()
        self._is_closed = trio.Event()

    async def serve(
        self, *, task_status: "trio.TaskStatus[Listener]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Listen until closed, or cancelled like the node."""
        try:
            async with self._opened as listener:
                task_status.started(listener)
                await self._is_closing.wait()
        finally:
            self._is_closed.set()

    async def close(self) -> None:
        """Take in nobody any more; who is in stays."""
        self._is_closing.set()
        await self._is_closed.wait()


@asynccontextmanager
async def _planned(plan: Plan) -> AsyncIterator[Plan]:
    """Add to a plan what has to be opened and closed."""
    async with open_provider(plan.config.login, plan.clock) as provider:
        yield attrs.evolve(plan, provider=provider)


@asynccontextmanager
async def _http(plan: Plan, parts: Parts, rest: RestLinks | None) -> AsyncIterator[str | None]:
    """Serve health, metrics and sessions from before the parts start until they have stopped."""
    config = plan.config.http
    if config is None:
        yield None
        return
    # Not needed by a node that serves no HTTP, and slow to import.
    from actors.node.http.service import desks_of, open_http, site_of  # noqa: PLC0415

    parts.provider = plan.provider
    plan.counters.watch(Gauge.TRACE_LOST, lambda: plan.tracer.dropped)
    desks = {} if rest is None else desks_of(rest, plan.config.origins)
    site = site_of(config, plan.counters, plan.standing, parts.probes(), desks)
    async with open_http(plan.network, config, site, plan.monitor) as url:
        yield url


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


def _doors(config: NodeConfig) -> dict[str, str | None]:
    """Say where one may connect, and by which subprotocol."""
    plain: dict[str, str | None] = {PLAIN: None, SESSION: None} if config.allow_legacy else {}
    return {LINK: PROTOFLY_V1, **plain}


def _records(config: NodeConfig) -> AbstractContextManager[RecordFile]:
    return closing(MemoryRecords() if config.registry is None else SqliteRecords(config.registry))


async def _drain(bus: ActorRef[BusMessage]) -> None:
    """Have every session closed and its records disconnected; then the parts stop."""
    with suppress(ActorStoppedError):
        await bus.ask(Drain)
