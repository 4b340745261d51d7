"""Makes the login of a node: its provider once, its connector anew after each crash."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.node.login.connector import ConnectorParts, IdentityConnector
from actors.node.login.login import Login
from actors.node.login.provider import IdentityProvider
from actors.node.messages import BusMessage
from actors.node.tables import NodeAddresses

__all__ = ["open_provider", "start_connector"]


@asynccontextmanager
async def open_provider(
    login: Login | None, clock: Callable[[], float]
) -> AsyncIterator[IdentityProvider | None]:
    """Hold the provider while the context is open; what it has seen outlives connectors."""
    if login is None:
        yield None
        return
    provider = login.provider(login.clock or clock)
    try:
        yield provider
    finally:
        await provider.aclose()


async def start_connector(
    provider: IdentityProvider | None,
    addresses: NodeAddresses,
    supervisor: Supervisor,
    bus: ActorRef[BusMessage],
) -> None:
    """Start the connector, if somebody is to log in."""
    if provider is not None:
        parts = ConnectorParts(addresses.identities, addresses.session, bus, provider)
        await supervisor.start_child(ChildSpec("idm", partial(IdentityConnector, parts)))
