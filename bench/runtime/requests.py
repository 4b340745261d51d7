"""What does a request cost, with its answer: within a runtime, by the node, by a direct link?

Ordinary case: one request at a time, so that every task is woken up for it. Best case: 16 requests
at a time, of which each mailbox has several when its task is woken up. The node and Bob are
processes of their own, Alice is this one, and CPU is that of all together. What traces and the
monitor cost is measured for all ways, in the same run.
"""

import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs
import trio

import actors
from actors.hyperties import Caller, Echo
from bench.report import BenchError, Case, Row, interleaved, program, ratio
from bench.servers import DOMAIN, UNLIMITED, open_process, processor_time
from specs.jsonvalue import JsonObject
from specs.limits.bus import CONTENTION
from specs.message import MessageType
from specs.reply_code import Code
from transports.link import Kind
from transports.webrtc.extra import is_webrtc_installed

_AT_ONCE: Final = 16
_REACHES: Final = {"with traces": 0.85}
"""Target: throughput with traces, as a share of that without."""

_LINK: Final = 0.5
"""Target: time and CPU of a request by a direct link, as a share of those by the node."""

_KINDS: Final = (Kind.UNIX, Kind.TCP, Kind.WEBSOCKET, Kind.WEBRTC)
_JUDGED: Final = (Kind.UNIX, Kind.TCP)
_PATIENCE: Final = 30.0
_BODY: Final[JsonObject] = {"value": {"number": 1}}
_BY_NODE: Final[JsonObject] = {**_BODY, "p2p": False}


@attrs.define
class _Stage:
    """Processes to measure: a node, Bob with a hyperty, and Alice with another and a link to Bob.

    Attributes:
        ways: Functions, one for each route, that send a request and wait for the answer.
    """

    ways: dict[str, Callable[[], Awaitable[object]]]
    children: tuple[int, ...]
    was_by_link: bool = False

    def cpu(self) -> float:
        """Return the seconds of CPU that all processes have taken so far."""
        # A runtime with data channels has a child of its own, which is started late.
        all_ = {child for pid in (os.getpid(), *self.children) for child in _children_of(pid)}
        return time.process_time() + sum(map(processor_time, all_ | set(self.children)))

    async def cost(self, way: str, requests: int, at_once: int) -> tuple[float, float]:
        """Return the median microseconds of a request by one route, and microseconds of CPU."""
        taken, ask = list[float](), self.ways[way]
        if ("link" in way) is not self.was_by_link:
            # The askers of a runtime hold each other to their share while both are active.
            await trio.sleep(1.2 * CONTENTION)
        self.was_by_link = "link" in way

        async def some() -> None:
            for _ in range(requests // at_once):
                began = time.perf_counter()
                await ask()
                taken.append(time.perf_counter() - began)

        spent = self.cpu()
        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(some)
        return statistics.median(taken) * 1e6, (self.cpu() - spent) / len(taken) * 1e6


def _given(caller: Caller) -> Caller:
    return caller


def _children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


@asynccontextmanager
async def _open_stage(kind: Kind, folder: Path | None, *options: str) -> AsyncIterator[_Stage]:
    """Start node, Bob and Alice, with a trace in a folder or with options of the commands."""
    command = (sys.executable, "-m", "actors")
    traced = () if folder is None else ("--trace", str(folder))
    common = ("--domain", DOMAIN, *traced, *options)
    async with AsyncExitStack() as opened:
        started = open_process((*command, "node", *common, "--allow-legacy", *UNLIMITED))
        node, ready = await opened.enter_async_context(started)
        words = ("--name", "bob", "--node", ready["url"], "--p2p", str(kind))
        hyperty = ("--hyperty", "echo=actors.hyperties:Echo")
        started = open_process((*command, "runtime", *common, *words, *hyperty))
        bob, bob_ready = await opened.enter_async_context(started)
        far = bob_ready["hyperties"]["echo"]
        config = actors.RuntimeConfig(
            domain=DOMAIN, name="alice", node=ready["url"], kinds=(kind,),
            monitor=bool(options),
        )  # fmt: skip
        opening = actors.open_runtime(config, trace=folder)
        alice = await opened.enter_async_context(opening)
        near = (await alice.deploy(Echo)).url
        # Bob answers by the way that he knows an asker from.
        by_node, by_link = Caller(), Caller()
        for caller in (by_node, by_link):
            await alice.deploy(partial(_given, caller))
        with trio.fail_after(_PATIENCE):
            await by_link.request(far, 0)
            while [link.status.value for link in await alice.links()] != ["live"]:  # noqa: ASYNC110
                await trio.sleep(0.01)
        answer = await by_node.ask(far, MessageType.CREATE, _BY_NODE)

        async def ask(caller: Caller, to: str, body: JsonObject, *, is_by_node: bool) -> None:
            back = await caller.ask(to, MessageType.CREATE, body)
            if back.code != Code.OK or (back.via == answer.via) is not is_by_node:
                raise BenchError(f"answered {back.code} by {back.via}")

        yield _Stage(
            {
                "within a runtime": partial(ask, by_node, near, _BODY, is_by_node=False),
                "by the node": partial(ask, by_node, far, _BY_NODE, is_by_node=True),
                f"by a link of {kind}": partial(ask, by_link, far, _BODY, is_by_node=False),
            },
            (node.pid, bob.pid),
        )


async def _kind(kind: Kind, requests: int, rounds: int, *, is_first: bool) -> list[Row]:
    """Measure requests with one kind of link; with the first kind, also all other routes."""
    with TemporaryDirectory() as folder:
        stages = {"": _open_stage(kind, None)}
        if is_first:
            stages["with traces"] = _open_stage(kind, Path(folder))
            stages["with the monitor"] = _open_stage(kind, None, "--monitor")
        async with AsyncExitStack() as opened:
            works = {}
            for how, opening in stages.items():
                stage = await opened.enter_async_context(opening)
                for way in stage.ways:
                    await stage.cost(way, requests, _AT_ONCE)
                    for at_once in (1, _AT_ONCE):
                        work = partial(stage.cost, way, requests, at_once)
                        works[how, way, at_once] = work
            taken = await interleaved(rounds, works)
    rows = []
    for (how, way, at_once), pairs in taken.items():
        case = Case.ORDINARY if at_once == 1 else Case.BEST
        what = f"{way}, {at_once} at a time"
        (times, cpus), (plain_times, plain_cpus) = (
            zip(*some, strict=True)
            for some in (pairs, taken["", way if how else "by the node", at_once])
        )
        if how:
            reach, name = _REACHES.get(how), f"{what}: throughput {how}, in that without"
            rows.append(Row(name, ratio(plain_cpus, cpus), "x", case, reach, is_least=True))
        elif is_first or "link" in way:
            rows += [Row(what, statistics.median(cpus), "us of CPU", case)]
            rows += [Row(what, statistics.median(times), "us", case)] * (at_once == 1)
        if not how and "link" in way:
            reach, what = _LINK if kind in _JUDGED else None, f"{what}, in that by the node"
            both = ("time", times, plain_times) if at_once == 1 else ("CPU", cpus, plain_cpus)
            rows.append(Row(f"{what}: {both[0]}", ratio(*both[1:]), "x", case, reach))
    return rows


async def measure(requests: int, rounds: int, kinds: int) -> list[Row]:
    """Measure requests with the first `kinds` kinds of links."""
    rows: list[Row] = []
    for kind in _KINDS[:kinds]:
        if kind is not Kind.WEBRTC or is_webrtc_installed():
            rows += await _kind(kind, requests, rounds, is_first=kind is _KINDS[0])
    return rows


main = program(measure, {"requests": (128, 16), "rounds": (2, 1), "kinds": (4, 1)})

if __name__ == "__main__":
    main()
