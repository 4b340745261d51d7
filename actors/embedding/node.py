"""A message node inside a program."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from actors.embedding.surroundings import Trace, bare_error, open_network, open_tracer
from actors.kit.ids import clock_offset, fresh_ids
from actors.node import app
from actors.node.app import Node
from actors.node.config import NodeConfig
from specs.addresses.address import domain_name
from transports.link import Network

__all__ = ["open_node"]


@asynccontextmanager
async def open_node(
    domain: str | NodeConfig, *, network: Network | None = None, trace: Trace = None
) -> AsyncIterator[Node]:
    """Run the message node of a domain while the context is open.

    The node listens before the block begins. When the block is left, the node closes its
    listener, closes all sessions in order, disconnects their records, and stops.

    Args:
        domain: The domain that the node serves, on a free port of 127.0.0.1; or a complete
            configuration.
        network: Network on which the node listens and dials; None: the network of the
            operating system. On that one, message ids and clock start at the time of day,
            whatever the configuration says.
        trace: Directory or tracer that takes the trace of the node; None: no trace.

    Yields:
        The running node.

    An error of the block is raised as itself; several errors are raised as a group.

    If cancelled, the node still closes its sessions, for at most `DRAIN_TIMEOUT` / 2 seconds, and
    stops.

    Raises:
        BadUrlError: The domain cannot be part of an address.
        ListenError: The address to listen at is in use or not allowed.
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
