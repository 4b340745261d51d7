"""The health of a node: gauges of what it holds, and probes of its parts."""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

from actors.http.metrics import Part
from actors.kit.counters import Gauge
from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef, Reply
from actors.kit.supervision.supervisor import Supervisor
from actors.node.login.provider import IdentityProvider
from actors.node.messages import BusMessage
from actors.node.session.exchange import Exchange
from fsm.machines.session import State


def watch(exchange: Exchange) -> None:
    """Have the gauges of the bus read from an exchange; it replaces the one before a crash."""
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
        Gauge.OUTBOX_MESSAGES, lambda: sum(len(port.outbox) for port in exchange.ports.values())
    )
    counters.watch(Gauge.ADDRESSES, lambda: len(tables.allocation))
    counters.watch(Gauge.SUBSCRIPTIONS, lambda: len(tables.subscriptions))
    counters.watch(Gauge.NAMES, lambda: len(exchange.names))


_BUS: Final = ("bus",)
_LISTENER: Final = ("listener",)
_RECORDS: Final = ("registry", "record-writer")
_CONNECTOR: Final = ("connector:registry",)
"""Names of parts at the supervisor of the node."""


@attrs.define
class Parts:
    """The running parts, from outside; there is nothing to ask before they have started.

    Attributes:
        registry: File of the domain registry; None: there is none.
        has_records: Whether the domain registry is the node's own, not a service behind it.
        engine: Returns why the engine of the domain cannot be reached; None: there is none.
        policies: Returns why the policies of the domain cannot be read; None: they are the node's.
    """

    registry: Path | None
    has_records: bool = attrs.field(kw_only=True)
    supervisor: Supervisor | None = None
    bus: ActorRef[BusMessage] | None = None
    provider: IdentityProvider | None = None
    engine: Callable[[], str | None] | None = None
    policies: Callable[[], str | None] | None = None

    def probes(self) -> Mapping[Part, Callable[[], Awaitable[str | None]]]:
        """Return how each part is asked; the answer is half a sentence if something is wrong."""
        return {
            Part.BUS: self._bus,
            Part.LISTENER: self._listener,
            Part.REGISTRY: self._records,
            Part.KEYS: self._keys,
            Part.ENGINE: partial(_asked, self.engine),
            Part.POLICIES: partial(_asked, self.policies),
        }

    def _down(self, names: tuple[str, ...]) -> str | None:
        supervisor = self.supervisor
        is_up = supervisor is not None and all(map(supervisor.is_up, names))
        return None if is_up else "it is being started"

    async def _bus(self) -> str | None:
        down = self._down(_BUS)
        if down is not None or self.bus is None:
            return down
        try:
            await self.bus.ask(_alive)
        except ActorStoppedError:
            return "it has stopped"
        return None

    async def _listener(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return self._down(_LISTENER)

    async def _records(self) -> str | None:
        down = self._down(_RECORDS if self.has_records else _CONNECTOR)
        if down is not None or self.registry is None:
            return down
        return await trio.to_thread.run_sync(_unwritable, self.registry, abandon_on_cancel=True)

    async def _keys(self) -> str | None:
        if self.provider is None:
            await trio.lowlevel.checkpoint()
            return None
        return await self.provider.why_not()


async def _asked(why_not: Callable[[], str | None] | None) -> str | None:
    await trio.lowlevel.checkpoint()
    return None if why_not is None else why_not()


def _unwritable(file: Path) -> str | None:
    """Look at a file and what holds it: SQLite writes a journal beside it."""
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
