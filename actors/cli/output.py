"""The output of commands on stdout: one JSON object per line.

The tracer of a command: files with `--trace`, nothing without.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from actors.cli.echo import echo
from actors.kit.trace import NULL_TRACER, Tracer
from actors.kit.trace_file import open_trace


@asynccontextmanager
async def open_tracer(
    directory: Path | None, node: str, *, bodies: bool = False, names: bool = False
) -> AsyncIterator[Tracer]:
    """Open the trace of a process, if one is wanted; see `open_trace`.

    Args:
        directory: Directory of the traces.
        node: Name of the process.
        bodies: Whether bodies of messages are recorded.
        names: Whether the names of users are.
    """
    if directory is None:
        yield NULL_TRACER
        return
    async with open_trace(directory, node, bodies=bodies, names=names) as tracer:
        yield tracer


def say(schema: str, **fields: object) -> None:
    """Print one object of a schema, at once."""
    echo(orjson.dumps({"schema": f"protofly.{schema}/1", **fields}).decode())


def say_ready(role: str, domain: str, **fields: object) -> None:
    """Print the ready line: the first line of a process that serves.

    Args:
        role: `node` or `runtime`.
        domain: Domain of the process.
        **fields: Further fields of the line.
    """
    say("ready", role=role, domain=domain, **fields, pid=os.getpid())
