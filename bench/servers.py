"""Start the server processes that benches measure, nodes and a bare relay; read CPU and memory."""

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs
import orjson
import trio

from bench.report import BenchError

DOMAIN: Final = "a.example"
UNLIMITED: Final = (
    "--message-rate", "none", "--identity-rate", "none", "--handshake-rate", "none",
    "--max-unauthenticated", "none", "--max-unauthenticated-per-host", "none",
)  # fmt: skip
"""Options of a node without limits of rates, as all clients of a bench are on one machine."""

_SCHEDULED: Final = 2
"""Bits that select a process's CPU clock, in addition to its id (`clock_getcpuclockid(3)`)."""

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def processor_time(pid: int) -> float:
    """Return the seconds of CPU that a process has taken so far, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | _SCHEDULED)


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process uses now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


@attrs.define
class Server:
    """A running server process: a node, or the relay.

    Attributes:
        children: Ids of its node processes (`--processes`); empty: the process is the node itself.
        log: Lines that the server has written to stderr.
    """

    pid: int
    place: tuple[str, int]
    ready: dict = attrs.field(factory=dict)
    children: tuple[int, ...] = ()
    log: list[str] = attrs.field(factory=list)

    @property
    def nodes(self) -> tuple[int, ...]:
        return self.children or (self.pid,)

    def memory(self) -> int:
        """Return the bytes of memory that the node processes use now."""
        return sum(map(memory_of, self.nodes))

    def cpu(self) -> float:
        """Return the seconds of CPU that the node processes have used so far."""
        return sum(map(processor_time, self.nodes))


@asynccontextmanager
async def open_process(
    command: Sequence[str], code: Path | None = None, *, has_log: bool = False
) -> AsyncIterator[tuple[trio.Process, dict]]:
    """Run a command; provide the process and the JSON that it writes when ready.

    Args:
        command: Words of the command.
        code: The folder of another version of the project; None: this one.
        has_log: Whether its stderr is read.
    """
    env = os.environ if code is None else os.environ | {"PYTHONPATH": str(code)}
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=code, env=env,
        stderr=subprocess.PIPE if has_log else None,
    )  # fmt: skip
    try:
        line = b""
        while process.stdout is not None and not line.endswith(b"\n"):
            piece = await process.stdout.receive_some()
            if not piece:
                raise BenchError(f"{' '.join(command)} ended before it was ready")
            line += piece
        yield process, orjson.loads(line)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


@asynccontextmanager
async def open_node_process(*options: str, code: Path | None = None) -> AsyncIterator[Server]:
    """Run a node that serves all forms of messages, by default without limits of rates."""
    command = (sys.executable, "-m", "actors", "node", "--domain", DOMAIN, "--allow-legacy")
    words = (*command, *(options or UNLIMITED))
    async with open_process(words, code, has_log=True) as (process, ready):
        host, port = ready["url"].removeprefix("ws://").partition("/")[0].split(":")
        node = Server(process.pid, (host, int(port)), ready)
        node.children = tuple(process["pid"] for process in ready.get("processes", ()))

        async def keep_log() -> None:
            if process.stderr is not None:
                async for data in process.stderr:
                    node.log += bytes(data).decode().splitlines()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_log)
            yield node
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_relay() -> AsyncIterator[Server]:
    """Run the relay of `bench.relay` in a process."""
    async with open_process((sys.executable, "-m", "bench.relay")) as (process, ready):
        yield Server(process.pid, ("127.0.0.1", ready["port"]))
