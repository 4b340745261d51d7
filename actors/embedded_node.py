"""A message node inside a program."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs

from actors.kit.arguments import check_type
from actors.kit.http_client import check_plain
from actors.kit.ids import clock_offset, fresh_ids
from actors.node import app as node_app
from actors.node.app import Node
from actors.node.config import NodeConfig
from actors.resources import (
    Trace,
    bare_error,
    check_resources,
    check_trio,
    open_network,
    open_tracer,
)
from specs.addresses.address import domain_name
from transports.link import Network

__all__ = ["open_node"]


def open_node(
    domain: str | NodeConfig, *, network: Network | None = None, trace: Trace = None
) -> AbstractAsyncContextManager[Node]:
    """Run the message node of a domain while the context is open.

    The node listens before the block begins. When the block is left, the node closes its
    listener, closes all sessions in order, disconnects their records, and stops.

    Args:
        domain: The domain that the node serves, on a free port of 127.0.0.1; or a complete
            configuration.
        network: Network on which the node listens and dials; None: the network of the
            operating system. On that one, message ids and clock start at the time of day,
            for any configuration.
        trace: Directory or tracer that takes the trace of the node; None: no trace.

    Returns:
        An async context manager that yields the running node.

    An error of the block is raised as itself; several errors are raised as a group.

    If cancelled, the node still closes its sessions, for at most `DRAIN_TIMEOUT` / 2 seconds, and
    stops.

    Raises:
        TypeError: At the call: an argument is of a wrong kind.
        BadUrlError: The domain cannot be part of an address.
        PlainUrlError: The node of another domain, on another machine, would be dialled without
            TLS, and `NodeConfig.insecure` is not set; a `ValueError`.
        ListenError: The address to listen at is in use or not allowed.
        RegistryFileError: The file of the domain registry cannot be used.
        StateFileError: The file of the sessions cannot be used.
        PolicyFileError: A policy file cannot be used.
        TraceDirectoryError: The trace directory cannot be made or written.
        RestartLimitError: A part of the node crashes again and again.
    """
    check_type(domain, (str, NodeConfig), "domain")
    check_resources(network, trace)
    config = domain if isinstance(domain, NodeConfig) else NodeConfig(domain=domain)
    return _open_node(config, network, trace)


@asynccontextmanager
async def _open_node(
    config: NodeConfig, network: Network | None, trace: Trace
) -> AsyncIterator[Node]:
    check_trio()
    domain_name(config.domain)
    dialled = (domain.url for domain in config.foreign.domains.values())
    check_plain(dialled, network, insecure=config.insecure)
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
        open_tracer(trace, config.process_name) as tracer,
        open_network(network, config.client_tls) as carrier,
        node_app.open_node(config, carrier, tracer) as node,
    ):
        yield node
