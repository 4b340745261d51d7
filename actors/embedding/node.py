"""A message node inside a program, and the network and tracer of nodes and runtimes there."""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeAlias

import attrs

from actors.kit.ids import clock_offset, fresh_ids
from actors.kit.trace import NULL_TRACER, Tracer
from actors.node import app
from actors.node.app import Node
from actors.node.config import NodeConfig
from specs.addresses.address import domain_name
from specs.errors import BadUrlError
from transports.link import Network
from transports.system import open_system_network
from transports.urls import read_websocket_url

__all__ = ["Trace", "bare_error", "check_dialled", "open_network", "open_node", "open_tracer"]

Trace: TypeAlias = Path | Tracer | None
"""Destination of a trace: a directory that holds runs, a tracer, or None for no trace."""


@asynccontextmanager
async def open_network(
    network: Network | None, tls: ssl.SSLContext | None
) -> AsyncIterator[Network]:
    """Yield a given network, or open that of the operating system while the context is open.

    Args:
        network: The given one; None: there is none.
        tls: What the other one dials `wss:` URLs with.

    A given network stays open. If cancelled, the opened network is closed.
    """
    if network is None:
        async with open_system_network(tls) as system:
            yield system
    else:
        yield network


@asynccontextmanager
async def open_tracer(trace: Trace, name: str) -> AsyncIterator[Tracer]:
    """Yield the tracer of one node or runtime while the context is open.

    Args:
        trace: Directory, tracer, or None for no trace.
        name: Name of the process in the trace; a given tracer has its own.

    If cancelled, a trace file ends without its END record; a given tracer stays as it is.

    Raises:
        TraceDirectoryError: The directory cannot be made or written.
    """
    match trace:
        case Tracer():
            yield trace
        case Path():
            # Not needed by a program that keeps no files, and slow to import.
            from actors.kit.trace_file import open_trace  # noqa: PLC0415

            async with open_trace(trace, name) as tracer:
                yield tracer
        case None:
            yield NULL_TRACER


def check_dialled(node: str) -> None:
    """Refuse a node URL that the network of the operating system cannot dial.

    Raises:
        BadUrlError: `node` is not a WebSocket URL.
    """
    try:
        read_websocket_url(node)
    except ValueError as exc:
        raise BadUrlError(node, str(exc)) from exc


@contextmanager
def bare_error() -> Iterator[None]:
    """Raise a single error as itself, without the exception groups of the nurseries around it.

    Raises:
        BaseException: The single error of the block.
        BaseExceptionGroup: Several errors of the block.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            if len(error.exceptions) > 1:
                raise
            error = error.exceptions[0]
        raise error from error.__cause__


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
            for any configuration.
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
        open_network(network, config.client_tls) as carrier,
        app.open_node(config, carrier, tracer) as node,
    ):
        yield node
