"""Network and trace of an embedded node or runtime, and its errors without exception groups."""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TypeAlias

import trio

from actors.kit.arguments import PathInput, check_type
from actors.kit.errors import NotTrioError
from actors.kit.trace import NULL_TRACER, Tracer
from specs.errors import BadUrlError
from transports.link import Network
from transports.system import open_system_network
from transports.urls import read_websocket_url

Trace: TypeAlias = PathInput | Tracer | None
"""Destination of a trace: a directory that holds runs, a tracer, or None for no trace."""


@asynccontextmanager
async def open_network(
    network: Network | None, tls: ssl.SSLContext | None
) -> AsyncIterator[Network]:
    """Yield a given network, or open that of the operating system while the context is open.

    Args:
        network: The given network; None: open one.
        tls: Context of the opened network for `wss:` URLs.

    A given network stays open. If cancelled, the opened network is closed.
    """
    if network is None:
        async with open_system_network(tls) as system:
            yield system
    else:
        yield network


@asynccontextmanager
async def open_tracer(
    trace: Trace, name: str, *, bodies: bool = False, names: bool = False
) -> AsyncIterator[Tracer]:
    """Yield the tracer of one node or runtime while the context is open.

    Args:
        trace: Directory, tracer, or None for no trace.
        name: Name of the process in the trace; a given tracer has its own.
        bodies: Whether a directory gets bodies of messages.
        names: Whether a directory gets the names of users.

    If cancelled, a trace file ends without its END record; a given tracer stays as it is.

    Raises:
        TraceDirectoryError: The directory cannot be made or written.
    """
    match trace:
        case Tracer():
            yield trace
        case str() | PathLike():
            # Not needed by a program that keeps no files, and slow to import.
            from actors.kit.trace_file import open_trace  # noqa: PLC0415

            async with open_trace(Path(trace), name, bodies=bodies, names=names) as tracer:
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


def check_trio() -> None:
    """Refuse a coroutine of another loop than Trio's.

    Raises:
        NotTrioError: The caller does not run under Trio.
    """
    if not trio.lowlevel.in_trio_run():
        raise NotTrioError


def check_resources(network: Network | None, trace: Trace) -> None:
    """Refuse a network or trace of a wrong type.

    Args:
        network: The network.
        trace: Destination of the trace.

    Raises:
        TypeError: An argument has a wrong type.
    """
    check_type(network, (Network, NoneType), "network")
    if not isinstance(trace, PathLike):
        check_type(trace, (str, Tracer, NoneType), "trace")
