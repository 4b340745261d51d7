"""The HTTP listener of a node, from its pages to its socket."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from actors.kit.counters import Counters
from actors.kit.monitor import Monitor
from actors.kit.supervisor import ChildSpec, open_supervisor
from actors.node.errors import HttpPlaceError, OpenMetricsError
from actors.node.http.config import HttpConfig
from actors.node.http.door import HttpDoor
from actors.node.http.health import Probe, ReadyPage, health
from actors.node.http.metrics import MetricsPage
from actors.node.http.site import Gate, Site, is_loopback
from actors.node.standing import Part, Standing
from transports.errors import ListenError
from transports.sockets import bind_tcp
from transports.urls import read_host_port

__all__ = ["open_http", "site_of"]


def site_of(
    config: HttpConfig, counters: Counters, standing: Standing, probes: Mapping[Part, Probe]
) -> Site:
    """Make the pages of a node."""
    return Site(
        public={"/healthz": health, "/readyz": ReadyPage(standing, probes)},
        guarded={"/metrics": MetricsPage(counters)},
        gate=Gate(config.token),
    )


@asynccontextmanager
async def open_http(config: HttpConfig, site: Site, monitor: Monitor) -> AsyncIterator[str]:
    """Serve a site while the context is open; its URL.

    Raises:
        HttpPlaceError: The place to listen at is taken or not ours.
        OpenMetricsError: Everybody who reaches it could read the metrics.
    """
    try:
        listener, address = await bind_tcp(config.listen)
    except ListenError as exc:
        raise HttpPlaceError(exc.where, exc.reason) from exc
    async with listener:
        if config.token is None and not is_loopback(read_host_port(address)[0]):
            raise OpenMetricsError(address)
        async with open_supervisor("http", monitor=monitor) as supervisor:
            make = partial(HttpDoor, listener, site, monitor)
            await supervisor.start_child(ChildSpec("http-door", make))
            yield f"http://{address}"
