"""What nodes and runtimes of a program stand in: a network, and who keeps their trace."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeAlias

from actors.kit.trace import NULL_TRACER, Tracer
from specs.errors import BadUrlError
from transports.network import Network
from transports.system import open_system_network
from transports.urls import read_websocket_url

__all__ = ["Trace", "bare_error", "check_dialled", "open_network", "open_tracer"]

Trace: TypeAlias = Path | Tracer | None
"""Where evidence goes: a directory for runs, a tracer, or nowhere."""


@asynccontextmanager
async def open_network(network: Network | None) -> AsyncIterator[Network]:
    """Use a network, or the operating system's."""
    if network is None:
        async with open_system_network() as system:
            yield system
    else:
        yield network


@asynccontextmanager
async def open_tracer(trace: Trace, name: str) -> AsyncIterator[Tracer]:
    """Keep the trace of one node or runtime.

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
    """Refuse the URL of a node that the operating system's network cannot dial.

    Raises:
        BadUrlError: It is none.
    """
    try:
        read_websocket_url(node)
    except ValueError as exc:
        raise BadUrlError(node, str(exc)) from exc


@contextmanager
def bare_error() -> Iterator[None]:
    """Let one error come out as itself, not in the groups of all nurseries on its way."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            if len(error.exceptions) > 1:
                raise
            error = error.exceptions[0]
        raise error from error.__cause__
