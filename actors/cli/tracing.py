"""The tracer of a command: files with `--trace`, nothing without."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from actors.kit.trace import NULL_TRACER, Tracer, open_trace

__all__ = ["open_tracer"]


@asynccontextmanager
async def open_tracer(directory: Path | None, node: str) -> AsyncIterator[Tracer]:
    """Open the trace of a process, if one is wanted."""
    if directory is None:
        yield NULL_TRACER
        return
    async with open_trace(directory, node) as tracer:
        yield tracer
