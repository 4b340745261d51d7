"""`node --processes`: what several processes do beside one, and how many sessions they have.

Messages of 100 bytes, many in a frame, between pairs of runtimes that connect as they come: a
pair is at one process or at two. Beside them the same pairs over `nats-server` alone. Updates of an
object go to many observers, some at each process: they cross once for all of them. The clients and
the NATS server need processors as well, so the gain depends on how many there are.

Sessions are opened by `bench.node.holder`, cut all at once and resumed by their tokens. `--full`
is 30,000 sessions at three processes; then each sends a request after a minute.
"""

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, final

import attrs
import click
import orjson
import trio

from bench.node.brokers import Nats, nats, open_broker
from bench.node.crowd import (
    UNLIMITED,
    Crowded,
    CrowdError,
    processor_time,
    quiet_node,
    raise_file_limit,
)
from bench.node.fan_out import measure_updates
from bench.node.routed import Figures, Pair, Runtimes, flow
from bench.verdict import Verdict
from tests.support.command import below
from tests.support.nats_server import PROGRAM

_PAIRS: Final = 16
_SIZE: Final = 100
_EACH: Final = 10_000
"""Sessions of one process of clients, and so of one source of connections."""

_OBSERVERS: Final = 1000
"""Of an update, unless there are fewer sessions."""

_REST: Final = 60.0
"""Seconds for which all sessions of a full run do nothing but answer pings."""


@final
@attrs.frozen
class Sessions:
    """The measured figures of sessions.

    Attributes:
        count: How many there were.
        errors: Connections and requests that failed, and connections that were closed.
        opened: Sessions opened in a second.
        resumed: Sessions resumed in a second, after all connections were cut at once.
        asked: Requests answered in a second.
        spread: Open descriptors of each process in the end: its sessions, and some more.
        kib: KiB of all processes for a session.
    """

    count: int
    errors: int
    opened: float
    resumed: float
    asked: float
    spread: tuple[int, ...]
    kib: float


async def measure_messages(count: int, rounds: int) -> dict[str, list[Figures]]:
    """Measure one process, two processes and NATS alone in turn.

    Args:
        count: Messages of a round.
        rounds: How many rounds.
    """
    taken: dict[str, list[Figures]] = {}
    async with AsyncExitStack() as opened:
        servers = {
            "one": await opened.enter_async_context(quiet_node(*UNLIMITED)),
            "two": await opened.enter_async_context(quiet_node(*UNLIMITED, "--processes", "2")),
            "nats": await opened.enter_async_context(open_broker(nats)),
        }
        beside = _server(servers["two"])
        for number in range(rounds):
            for name, server in servers.items():
                spent = processor_time(beside)
                taken.setdefault(name, []).append(await flow(server, _pairs(name, number), count))
                if name == "two":
                    # With what warms up: some more than one message in twenty.
                    cpu = (processor_time(beside) - spent) / count * 1e6
                    taken.setdefault("server", []).append(Figures(cpu, taken[name][-1].per_second))
    return taken


async def measure_fan_outs(observers: int, rounds: int) -> dict[str, list[float]]:
    """Measure an update to many observers by one process and by two, in turn, in milliseconds."""
    async with (
        quiet_node(*UNLIMITED) as one,
        quiet_node(*UNLIMITED, "--processes", "2") as two,
    ):
        return await measure_updates({"one": one, "two": two}, observers, rounds)


def _pairs(name: str, number: int) -> Sequence[Pair]:
    names = [f"{name}-{number}-{one}" for one in range(_PAIRS)]
    if name == "nats":
        return [Nats(one) for one in names]
    return [Runtimes(one, _SIZE, in_lines=True) for one in names]


def _descriptors(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def _server(node: Crowded) -> int:
    """Return the NATS server of several processes."""
    found = (
        pid
        for pid in below(node.process.pid)
        if Path(f"/proc/{pid}/comm").read_text().strip() == "nats-server"
    )
    return next(found)


async def measure_sessions(count: int, processes: int, rest: float) -> Sessions:
    """Open sessions, cut and resume all of them, and let each send a request.

    Args:
        count: How many.
        processes: Processes of the node.
        rest: Seconds between the last two.
    """
    options = (*UNLIMITED, "--processes", str(processes))
    async with quiet_node(*options) as node, _open_holders(node, count) as holders:
        memory = node.memory()
        _, opened = await holders.do(b"open")
        grown = node.memory() - memory
        _, resumed = await holders.do(b"resume")
        await trio.sleep(rest)
        errors, asked = await holders.do(b"ask")
        return Sessions(
            count=count,
            errors=errors,
            opened=count / opened,
            resumed=count / resumed,
            asked=count / asked,
            spread=tuple(map(_descriptors, node.nodes)),
            kib=grown / count / 1024,
        )


@final
@attrs.frozen
class _Holders:
    """The processes of the clients."""

    processes: list[trio.Process] = attrs.field(factory=list)

    async def do(self, order: bytes) -> tuple[int, float]:
        """Let all of them do something; return the errors so far, and the seconds it took."""
        errors: list[int] = []
        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for process in self.processes:
                nursery.start_soon(self._do, process, order, errors)
        return sum(errors), time.perf_counter() - began

    async def _do(self, process: trio.Process, order: bytes, errors: list[int]) -> None:
        if process.stdin is None or process.stdout is None:
            return
        await process.stdin.send_all(order + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            piece = await process.stdout.receive_some()
            if not piece:
                raise CrowdError("a process of clients has ended")
            line += piece
        errors.append(orjson.loads(line)["errors"])


@asynccontextmanager
async def _open_holders(node: Crowded, count: int) -> AsyncIterator[_Holders]:
    host, port = node.place
    holders = _Holders()
    try:
        for number, first in enumerate(range(0, count, _EACH)):
            options = {
                "host": host, "port": port, "name": f"h{number}",
                "source": f"127.0.0.{2 + number}", "count": min(_EACH, count - first),
            }  # fmt: skip
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", "bench.node.holder", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            holders.processes.append(process)
        yield holders
    finally:
        for process in holders.processes:
            process.kill()
        with trio.CancelScope(shield=True):
            for process in holders.processes:
                await process.wait()


def _medians(taken: Mapping[str, Sequence[Figures]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "cpu": statistics.median(one.cpu for one in figures),
            "per_second": statistics.median(one.per_second for one in figures),
        }
        for name, figures in taken.items()
    }


@click.command()
@click.option("--messages", default=160_000, show_default=True, help="Messages of a round.")
@click.option("--rounds", default=3, show_default=True, help="Rounds the median is over.")
@click.option("--sessions", default=1000, show_default=True, help="Sessions, and observers.")
@click.option("--full", is_flag=True, help="30,000 sessions at three processes.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(*, messages: int, rounds: int, sessions: int, full: bool, as_json: bool) -> None:
    """Measure several processes of a node; exit 1 if a session failed."""
    if PROGRAM is None:
        raise click.ClickException("nats-server is not installed")
    raise_file_limit()
    gc.disable()
    sizes = (30_000, 3, _REST) if full else (sessions, 2, 0.0)
    taken = _medians(trio.run(measure_messages, messages, rounds))
    updates = trio.run(measure_fan_outs, min(sessions, _OBSERVERS), 10 * rounds)
    held = trio.run(measure_sessions, *sizes)
    one, two = (taken[name]["per_second"] for name in ("one", "two"))
    Verdict(
        bench="processes",
        what="messages/s of two processes / of one",
        ours=two,
        peer=one,
        ratio=two / one,
        reach=None,
        missed=(f"{held.errors} errors",) if held.errors else (),
        not_measured=("TLS", "logins", *(() if full else ("30,000 sessions: --full",))),
        figures={
            "messages": taken,
            "update_ms": {name: statistics.median(each) for name, each in updates.items()},
            "sessions": attrs.asdict(held),
        },
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
