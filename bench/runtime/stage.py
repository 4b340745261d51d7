"""A node, Bob and Alice with a live link: what `bench.runtime.paths` measures on."""

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, final

import attrs
import orjson
import trio
from typing_extensions import override

from actors.hyperties import Caller
from actors.kit.ids import fresh_ids
from actors.kit.trace import Tracer
from actors.resources import open_tracer
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from bench.node.crowd import processor_time
from fsm.engine import Step
from specs.jsonvalue import JsonObject
from specs.limits.protocol import DRAIN_TIMEOUT, P2P_TIMEOUT
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Fact
from transports.link import Kind
from transports.system import open_system_network

_DOMAIN: Final = "a.example"
_NO_LIMITS: Final = ("--message-rate", "none", "--identity-rate", "none")


class StageError(Exception):
    """A message took another route than the measured one."""


class Leg(StrEnum):
    """The route of requests."""

    NODE = "node"
    LINK = "link"


class Tracing(StrEnum):
    """Whether hops are traced, in all three processes."""

    OFF = "off"
    ON = "on"


@final
class _Watch(Tracer):
    """Passes facts on, and knows when the link is live, and its stub."""

    def __init__(self, inner: Tracer) -> None:
        self.hops, self.steps = inner.hops, inner.steps
        self.stub = ""
        self.is_live = trio.Event()
        self._inner = inner

    @property
    @override
    def messages(self) -> Tracer:
        return self._inner.messages

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._inner.record(actor, fact)

    @override
    def step(self, actor: str, step: Step) -> None:
        self._inner.step(actor, step)
        if step.machine == "p2p_connection" and step.new == "live":
            self.stub = step.key.rpartition("|")[2]
            self.is_live.set()


@final
@attrs.frozen
class Stage:
    """The participants of a measurement.

    Attributes:
        callers: Alice's, one for each path: Bob answers by the path he knows the asker from.
    """

    callers: dict[Leg, Caller]
    bob: str
    link: str
    children: tuple[int, ...]

    async def ask(self, path: Leg, number: int) -> None:
        """Ask Bob, and wait for his answer.

        Raises:
            StageError: It was no, or came another path.
        """
        body: JsonObject = {"value": {"number": number}}
        if path is Leg.NODE:
            body["p2p"] = False
        answer = await self.callers[path].ask(self.bob, MessageType.CREATE, body)
        came_by_link = answer.via[-1:] == (self.link,)
        if answer.code != Code.OK or came_by_link is not (path is Leg.LINK):
            raise StageError(f"answered {answer.code} by {answer.via}")

    def cpu(self) -> float:
        """Return the seconds of CPU that all processes have taken so far."""
        # A runtime with data channels has a child of its own, which is started late.
        children = set(self.children) | {
            one for pid in (os.getpid(), *self.children) for one in _children_of(pid)
        }
        return time.process_time() + sum(map(processor_time, children))


def _children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(one) for task in tasks for one in (task / "children").read_text().split()]


@asynccontextmanager
async def open_stage(kind: Kind, tracing: Tracing, traces: str) -> AsyncIterator[Stage]:
    """Start node, Bob and Alice, and let them have their link."""
    directory = Path(traces) / tracing if tracing is Tracing.ON else None
    trace = () if directory is None else ("--trace", str(directory))
    common = ("--domain", _DOMAIN, *trace)
    async with (
        _child("node", *common, "--allow-legacy", *_NO_LIMITS) as (node, node_ready),
        _child(
            "runtime",
            *common,
            *("--name", "bob", "--node", str(node_ready["url"]), "--p2p", str(kind)),
            *("--hyperty", "echo=actors.hyperties:Echo"),
        ) as (bob, ready),
        open_tracer(directory, "alice") as inner,
        open_system_network() as network,
    ):
        hyperties = ready["hyperties"]
        if not isinstance(hyperties, dict):
            raise StageError("bob has no hyperty")
        config = RuntimeConfig(
            domain=_DOMAIN, name="alice", node=str(node_ready["url"]), kinds=(kind,),
            ids=fresh_ids(),
        )  # fmt: skip
        watch, callers = _Watch(inner), {path: Caller() for path in Leg}
        async with open_runtime(config, network, watch) as runtime:
            for path, caller in callers.items():
                await runtime.deploy(path, partial(_give, caller))
            await callers[Leg.LINK].request(str(hyperties["echo"]), {"number": 0})
            with trio.fail_after(P2P_TIMEOUT):
                await watch.is_live.wait()
            yield Stage(callers, str(hyperties["echo"]), watch.stub, (node.pid, bob.pid))


def _give(caller: Caller) -> Caller:
    return caller


@asynccontextmanager
async def _child(*words: str) -> AsyncIterator[tuple[trio.Process, JsonObject]]:
    """Run a command of ours; give what it says when it is ready."""
    command = (sys.executable, "-m", "actors", *words)
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        yield process, await _first_line(process, command)
    finally:
        process.terminate()
        with trio.move_on_after(DRAIN_TIMEOUT, shield=True):
            await process.wait()
        process.kill()


async def _first_line(process: trio.Process, command: Sequence[str]) -> JsonObject:
    line = b""
    while process.stdout is not None and not line.endswith(b"\n"):
        piece = await process.stdout.receive_some()
        if not piece:
            raise StageError(f"{' '.join(command)} ended too early")
        line += piece
    ready = orjson.loads(line)
    if not isinstance(ready, dict):
        raise StageError(f"{' '.join(command)} is not ready")
    return ready
