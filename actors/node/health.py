"""Health of a node: metrics of its current state, and tests whether its components work."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from actors.http.metrics import Part, Probe
from actors.kit.counters import Gauge
from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import Reply
from actors.node.config import NodeConfig
from actors.node.host import NodeHost
from actors.node.login.provider import IdentityProvider
from actors.node.messages import BusMessage
from actors.node.session.exchange import Exchange
from fsm.machines.session import State

if TYPE_CHECKING:
    from actors.node.group.shared import Shared


def watch(exchange: Exchange) -> None:
    """Register the gauges of the bus; those of an earlier bus are replaced."""
    counters, tables = exchange.trace.counters, exchange.tables
    counters.watch(
        Gauge.SESSIONS,
        lambda: {
            State.OPEN: len(exchange.runtimes),
            State.DETACHED: len(exchange.sessions) - len(exchange.runtimes),
        },
    )
    counters.watch(Gauge.LINKS, lambda: len(exchange.ports))
    counters.watch(Gauge.LINKS_PENDING, lambda: len(exchange.ports) - len(exchange.runtimes))
    counters.watch(
        Gauge.OUTBOX_MESSAGES, lambda: sum(port.waiting for port in exchange.ports.values())
    )
    counters.watch(Gauge.ADDRESSES, lambda: len(tables.allocation))
    counters.watch(Gauge.SUBSCRIPTIONS, lambda: len(tables.subscriptions))
    counters.watch(Gauge.NAMES, lambda: len(exchange.names))


def probes(
    host: NodeHost, config: NodeConfig, provider: IdentityProvider | None, shared: "Shared | None"
) -> Mapping[Part, Probe]:
    """Return a test of each component; a test returns the fault as half a sentence, or None."""
    return {
        Part.BUS: partial(_bus, host),
        Part.LISTENER: partial(_ask, partial(_down, host, "listener")),
        Part.REGISTRY: partial(_records, host, config),
        Part.KEYS: partial(_ask, None) if provider is None else provider.why_not,
        Part.ENGINE: partial(_ask, None if shared is None else shared.why_not),
        Part.POLICIES: partial(_ask, None if shared is None else shared.policies.why_not),
    }


def _down(host: NodeHost, name: str) -> str | None:
    return None if host.supervisor.is_up(name) else "it is being started"


async def _bus(host: NodeHost) -> str | None:
    down = _down(host, "bus")
    if down is not None:
        return down
    try:
        await host.bus_ref.ask(_alive)
    except ActorStoppedError:
        return "it has stopped"
    return None


async def _records(host: NodeHost, config: NodeConfig) -> str | None:
    is_own = config.back_ends.registry is None
    down = _down(host, "registry" if is_own else "connector:registry")
    if down is not None or config.registry is None:
        return down
    return await trio.to_thread.run_sync(_unwritable, config.registry, abandon_on_cancel=True)


async def _ask(why_not: Callable[[], str | None] | None) -> str | None:
    await trio.lowlevel.checkpoint()
    return None if why_not is None else why_not()


def _unwritable(file: Path) -> str | None:
    """Return why a file cannot be written; its folder must be writable for the SQLite journal."""
    try:
        free = os.statvfs(file.parent).f_bavail
    except OSError as exc:
        return f"its file: {(exc.strerror or 'unreadable').lower()}"
    if not file.exists():
        return "its file is gone"
    if not os.access(file, os.W_OK) or not os.access(file.parent, os.W_OK):
        return "its file cannot be written"
    return None if free else "the disk of its file is full"


def _alive(reply: Reply[None]) -> BusMessage:
    return lambda _: reply.send(None)
