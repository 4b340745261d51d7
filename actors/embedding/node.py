"""A message node inside a program."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from actors.embedding.surroundings import Trace, bare_error, open_network, open_tracer
from actors.kit.time_of_day import clock_offset, fresh_ids
from actors.node import app
from actors.node.app import Node
from actors.node.config import NodeConfig
from specs.addresses.address import domain_name
from transports.network import Network

__all__ = ["open_node"]


@asynccontextmanager
async def open_node(
    domain: str | NodeConfig, *, network: Network | None = None, trace: Trace = None
) -> AsyncIterator[Node]:
    """Run the message node of a domain while the context is open; on leaving it drains.

    Args:
        domain: The domain it serves, on a free port of this machine only; or a whole
            configuration.
        network: Where it listens and dials; the operating system's network by default,
            where message ids and clock go by the time of day, whatever is configured.
        trace: Where its evidence goes.

    An error of the block comes out as itself, several at once as a group.

    Cancelled: sessions are closed in order, for some seconds at most.

    Raises:
        BadUrlError: The domain cannot be part of an address.
        ListenError: The place to listen at is taken or not ours.
        RegistryFileError: The file of the domain registry cannot be used.
        PolicyFileError: A policy file cannot be used.
        TraceDirectoryError: The trace directory cannot be made or written.
        RestartLimitError: A part of the node crashes again and again.
    """
    config = domain if isinstance(domain, NodeConfig) else NodeConfig(domain=domain)
    domain_name(config.domain)
    if network is None:
        config = attrs.evolve(config, ids=fresh_ids(), clock_offset=clock_offset())
    with bare_error():
        async with _serving(config, network, trace) as node:
            yield node


@asynccontextmanager
async def _serving(
    config: NodeConfig, network: Network | None, trace: Trace
) -> AsyncIterator[Node]:
    async with (
        open_tracer(trace, f"node.{config.domain}") as tracer,
        open_network(network) as carrier,
        app.open_node(config, carrier, tracer) as node,
    ):
        yield node
