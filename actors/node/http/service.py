"""The HTTP listener of a node: its socket and its pages."""

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Final, final

import trio
from typing_extensions import override

from actors.kit.counting.counters import Counters
from actors.kit.supervision.monitor import Monitor
from actors.kit.supervision.supervisor import ChildSpec, Restart, Supervisor, open_supervisor
from actors.node.config import HttpConfig
from actors.node.errors import HttpPlaceError, OpenMetricsError
from actors.node.health import Part, Readiness
from actors.node.http.conversation import Conversation
from actors.node.http.metrics import MetricsPage, Probe, ReadyPage, health
from actors.node.http.rest_link import RestLinks
from actors.node.http.rest_service import MessagesService, SessionService
from actors.node.http.site import Gate, HttpService, Site, WellKnown, is_loopback
from actors.node.links.acceptor import REST
from actors.node.session.listener import ListenerActor
from fsm.limits.unauthenticated_links import HostShares
from specs.limits.node import REST_CONNECTIONS, REST_PER_HOST
from specs.limits.protocol import HTTP_CONNECTIONS, HTTP_PER_HOST
from transports.errors import ListenError
from transports.gate import Everybody
from transports.link import Kind, Link, Listener, Network
from transports.urls import read_host_port

__all__ = ["open_http", "rest_services", "site_of"]

_MAILBOX = 1
"""The type of messages of a conversation: it gets none."""


@final
class HttpListener(ListenerActor):
    """Accepts HTTP connections; above the share of their host they are closed.

    Args:
        shares: Connections at once, in all and of one host.
    """

    def __init__(
        self, listener: Listener, site: Site, monitor: Monitor, shares: HostShares
    ) -> None:
        super().__init__("http-connections", (listener,), monitor)
        self._site = site
        self._shares = shares
        self._numbers = itertools.count(1)

    @override
    async def admit(self, link: Link, connections: Supervisor) -> None:
        host = link.host
        if not self._shares.enter(host):
            await trio.aclose_forcefully(link)
            return
        make = partial(Conversation, link, self._site, self._shares, host)
        spec = ChildSpec(f"http:{next(self._numbers)}", make, Restart.TEMPORARY, _MAILBOX)
        await connections.start_child(spec)


_NO_SERVICES: Final[Mapping[str, HttpService]] = MappingProxyType({})


def rest_services(links: RestLinks, origins: frozenset[str]) -> dict[str, HttpService]:
    """Make where sessions over HTTP are had.

    Args:
        links: Links over HTTP.
        origins: Permitted web origins.
    """
    return {
        f"{REST}/session": SessionService(links, origins),
        f"{REST}/messages": MessagesService(links),
    }


def site_of(
    config: HttpConfig,
    counters: Counters,
    readiness: Readiness,
    probes: Mapping[Part, Probe],
    services: Mapping[str, HttpService] = _NO_SERVICES,
) -> Site:
    """Make what a node serves.

    Args:
        config: The configuration.
        counters: Counters of the process.
        readiness: Readiness of the node.
        probes: Checks of readiness, by part.
        services: Further services, by path.
    """
    shown = config.catalogue
    return Site(
        public={"/healthz": health, "/readyz": ReadyPage(readiness, probes)},
        guarded={"/metrics": MetricsPage(counters)},
        gate=Gate(config.token),
        services=services,
        catalogue=None if shown is None else WellKnown(shown.domain, shown.directory),
    )


@asynccontextmanager
async def open_http(
    network: Network, config: HttpConfig, site: Site, monitor: Monitor
) -> AsyncIterator[str]:
    """Serve a site while the context is open; its URL.

    Args:
        network: Network that opens links.
        config: The configuration.
        site: The served paths.
        monitor: Monitor of the process.

    Raises:
        HttpPlaceError: The place to listen at is taken or not ours.
        OpenMetricsError: Every client that reaches it could read the metrics.
    """
    async with _listening(network, config) as listener:
        if config.token is None and not is_loopback(read_host_port(listener.address)[0]):
            raise OpenMetricsError(listener.address)
        limits = (
            (REST_CONNECTIONS, REST_PER_HOST) if config.rest else (HTTP_CONNECTIONS, HTTP_PER_HOST)
        )
        shares = HostShares(*limits)
        async with open_supervisor("http", monitor=monitor) as supervisor:
            make = partial(HttpListener, listener, site, monitor, shares)
            await supervisor.start_child(ChildSpec("http-door", make))
            yield f"{'http' if config.tls is None else 'https'}://{listener.address}"


@asynccontextmanager
async def _listening(network: Network, config: HttpConfig) -> AsyncIterator[Listener]:
    async with AsyncExitStack() as stack:
        try:
            listener = await stack.enter_async_context(
                network.listen(Kind.STREAM, config.listen, gate=Everybody(config.tls))
            )
        except ListenError as exc:
            raise HttpPlaceError(exc.where, exc.reason) from exc
        yield listener
