"""The health of a runtime: its gauges, and its probes for `/readyz`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import trio

from actors.http.metrics import Part, Readiness
from actors.kit.counters import Gauge
from actors.kit.supervision.supervisor import Monitor
from actors.kit.trace import Tracer
from actors.runtime.config import RuntimeConfig
from actors.runtime.runtime import Runtime
from specs.bodies.word import StatusValue
from transports.link import Network


class RuntimeHealth:
    """Watches a runtime from its start to its end.

    Args:
        has_node: Whether its domain has a message node.

    Attributes:
        readiness: Whether it runs.
        url: URL of its pages; None: they are not served.
    """

    def __init__(self, *, has_node: bool) -> None:
        self.readiness = Readiness(Part.RUNTIME)
        self.url: str | None = None
        self._has_node = has_node
        self._runtime: Runtime | None = None

    def opened(self, runtime: Runtime) -> None:
        """Record that the runtime is open."""
        self._runtime = runtime
        runtime.counters.watch(Gauge.HYPERTIES, lambda: runtime.hyperties)
        self.readiness.ready(Part.RUNTIME)

    def closing(self) -> None:
        """Record that the runtime is closing."""
        self.readiness.lacking(Part.RUNTIME, "it is going down")

    def probes(self) -> Mapping[Part, Callable[[], Awaitable[str | None]]]:
        """Return a probe for each part, which returns the reason if the part cannot serve."""
        return {Part.SESSION: self._session, Part.HYPERTIES: self._hyperties}

    async def _session(self) -> str | None:
        await trio.lowlevel.checkpoint()
        if self._runtime is None or not self._has_node:
            return None
        status = self._runtime.status.value
        return None if status is StatusValue.LIVE else f"the connection to the node is {status}"

    async def _hyperties(self) -> str | None:
        await trio.lowlevel.checkpoint()
        failure = None if self._runtime is None else self._runtime.failure
        # The exception may contain secrets.
        return None if failure is None else f"the hyperty {failure.name!r} was given up"


@asynccontextmanager
async def serving_health(
    config: RuntimeConfig, network: Network, tracer: Tracer, monitor: Monitor
) -> AsyncIterator[RuntimeHealth | None]:
    """Serve health, readiness and metrics over HTTP, if that is configured.

    Args:
        config: Configuration of the runtime.
        network: Network on which it listens.
        tracer: Takes the trace of the runtime.
        monitor: Monitor of the process, with its counters.

    If cancelled, connections are closed.

    Raises:
        HttpPlaceError: The place to listen at is taken or not ours.
        OpenMetricsError: Every client that reaches it could read the metrics.
    """
    if config.http is None:
        yield None
        return
    # Not needed by a runtime that serves no HTTP, and slow to import.
    from actors.http.metrics import OF_RUNTIMES, ReadyPage  # noqa: PLC0415
    from actors.http.service import open_http, site_of  # noqa: PLC0415

    health = RuntimeHealth(has_node=config.node is not None)
    monitor.counters.watch(Gauge.TRACE_LOST, lambda: tracer.dropped)
    ready = ReadyPage(health.readiness, health.probes())
    site = site_of(config.http, monitor.counters, ready, shown=OF_RUNTIMES)
    async with open_http(network, config.http, site, monitor) as url:
        health.url = url
        yield health
