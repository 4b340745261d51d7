"""A runtime as its owner sees it, with a real node in memory (SC-01..05, 09, 11, 13)."""

import math
from contextlib import asynccontextmanager

import trio
import trio.testing
from typing_extensions import override

from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty, Refused
from fsm.judge.trace_line import Verdict, read_record
from fsm.judge.verdict import judge
from specs.message import Message
from specs.reply_code import Code
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.trace_files import records, whole
from transports.link import Kind
from transports.memory import MemoryNetwork


class Server(Hyperty):
    """Does what the value of a request says."""

    lives = 0

    def __init__(self) -> None:
        type(self).lives += 1
        self.began: list[int] = []
        self.events: list[Message] = []
        self.gate = trio.Event()

    @override
    async def on_request(self, message: Message) -> object:
        self.began.append(message.id)
        match message.body.get("value"):
            case "refuse":
                raise Refused(Code.FORBIDDEN, "not today")
            case "fail":
                raise ZeroDivisionError
            case "crash":
                self.spawn(self.fall)
                await trio.sleep(math.inf)
            case "wait":
                await self.gate.wait()
            case "sleep":
                await trio.sleep(math.inf)
        return message.body.get("value")

    async def fall(self) -> None:
        raise ZeroDivisionError

    @override
    async def on_event(self, message: Message) -> None:
        self.events.append(message)


class Caller(Hyperty):
    """Asks in its own name."""


class Place:
    """A node, and runtimes that come and go."""

    def __init__(self, network: MemoryNetwork, url: str) -> None:
        self.network = network
        self.url = url
        self.tracers: dict[str, MemoryTracer] = {}

    @asynccontextmanager
    async def runtime(self, name: str, url: str | None = None):
        tracer = self.tracers[name] = MemoryTracer()
        config = RuntimeConfig(domain="a.ex", name=name, node=url or self.url)
        async with open_runtime(config, self.network, tracer) as runtime:
            yield runtime

    def verdict(self, name: str) -> Verdict:
        lines = records(whole(self.tracers[name].facts))
        return judge(read_record(line) for line in lines).verdict

    def cut(self) -> None:
        for wire in self.network.open_wires(Kind.WEBSOCKET):
            wire.cut()


@asynccontextmanager
async def open_place():
    network, tracer = MemoryNetwork(), MemoryTracer()
    async with open_node(NodeConfig(domain="a.ex"), network, tracer) as node:
        place = Place(network, node.url)
        place.tracers["node"] = tracer
        yield place


@asynccontextmanager
async def open_pair():
    """A place, a caller in one runtime, a server in another."""
    async with open_place() as place, place.runtime("ra") as ra, place.runtime("rb") as rb:
        server, caller = Server(), Caller()
        there = await rb.deploy("server", lambda: server)
        await ra.deploy("caller", lambda: caller)
        yield place, caller, server, there


async def test_a_domain_that_does_not_exist_is_404_and_not_to_be_asked_again(autojump_clock):
    """RES-14: at first, and during the pause after that."""
    async with open_pair() as (_, caller, _, _):
        for to in ("domain://b.ex", "hyperty://b.ex/x"):
            answer = await caller.request(to, 1)
            assert (answer.code, "retryAfter" in answer.body) == (Code.NOT_FOUND, False)
            assert "no stub is described" in answer.body["description"]


# ---- the way to the node


# ---- coming and going
