"""What benches measure from outside: processes of nodes, and of a bare relay."""

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
"""Options of a node whose peers all sit on one machine, and hurry."""

_SCHEDULED: Final = 2
"""The clock of all threads of a process, beside its number (`clock_getcpuclockid(3)`)."""

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def processor_time(pid: int) -> float:
    """Return the seconds of CPU that a process has taken so far, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | _SCHEDULED)


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


@attrs.define
class Server:
    """A process of a node, or of what stands for it.

    Attributes:
        children: Its processes, each a node (`--processes`); empty: it is the node itself.
        log: What it says on stderr.
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
        """Return the bytes of memory that the nodes have."""
        return sum(map(memory_of, self.nodes))

    def cpu(self) -> float:
        """Return the seconds of CPU that the nodes have taken so far."""
        return sum(map(processor_time, self.nodes))


@asynccontextmanager
async def open_process(
    command: Sequence[str], code: Path | None = None, *, has_log: bool = False
) -> AsyncIterator[tuple[trio.Process, dict]]:
    """Run a command; give the line of JSON that it writes when it is ready.

    Args:
        command: Its words.
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
    """Run a node that serves all wire forms, by default without the limits of hosts."""
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
    """Run the bare relay."""
    async with open_process((sys.executable, "-m", "bench.relay")) as (process, ready):
        yield Server(process.pid, ("127.0.0.1", ready["port"]))
