"""Messages from hyperty to hyperty of one runtime, by MiniBUS and Message BUS, all checks on.

Judged are those between hyperties, whose handlers may wait and whose bodies are copied. What the
same way takes between bare components, that answer in their own mailbox, is shown beside it.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from statistics import median
from typing import Final, final

import attrs
import click
import trio
from typing_extensions import override

from actors.hyperties import Caller, Echo
from actors.kit.log import configure_log
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.config import RuntimeConfig
from actors.runtime.runtime import Runtime
from bench.verdict import Verdict
from specs.limits.bus import CONTENTION
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from transports.memory import MemoryNetwork

REACH: Final = 60_000.0
"""Messages per second of CPU between hyperties (DESIGN section 11): half as many round trips."""

_DOMAIN: Final = "a.example"
_ASKING: Final = 16
"""Requests of hyperties that are open at a time."""

_WINDOW: Final = 64
"""Requests of bare components that are open at a time."""


@final
@attrs.frozen
class Rates:
    """Messages per second of CPU in one round; a request and its answer are two.

    Attributes:
        bare: Between components that are actors themselves.
        hyperties: Between hyperties, whose handlers may wait.
    """

    bare: float
    hyperties: float


@final
class Answering(Actor[Delivery]):
    """Answers requests in its own mailbox."""

    def __init__(self, port: MiniBusPort) -> None:
        self._port = port

    @override
    async def handle(self, message: Delivery) -> None:
        await self._port.post(reply_to(message.message, Code.OK))


@final
class Asking(Actor[Delivery]):
    """Asks anew whenever it is answered."""

    def __init__(self, port: MiniBusPort) -> None:
        self._port = port
        self._to = ""
        self._id = 0
        self._left = 0
        self._open = 0
        self._is_done = trio.Event()

    async def ask(self, to: str, messages: int) -> None:
        """Ask so often, and wait for the last answer."""
        self._to, self._left, self._is_done = to, messages, trio.Event()
        for _ in range(_WINDOW):
            await self._next()
        await self._is_done.wait()

    @override
    async def handle(self, message: Delivery) -> None:
        self._open -= 1
        await self._next()
        if not self._open:
            self._is_done.set()

    async def _next(self) -> None:
        if self._left:
            self._left, self._id, self._open = self._left - 1, self._id + 1, self._open + 1
            url = self._port.url
            await self._port.post(Message(self._id, MessageType.CREATE, url, self._to))


@asynccontextmanager
async def open_local() -> AsyncIterator[Runtime]:
    """Run a node, and a runtime without P2P, in this process."""
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain=_DOMAIN), network, NULL_TRACER) as node:
        config = RuntimeConfig(domain=_DOMAIN, name="local", node=node.url)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            yield runtime


async def measure(requests: int, rounds: int) -> list[Rates]:
    """Measure both ways by turns, so that a busy machine hits both."""
    made: list[Asking] = []

    def asking(port: MiniBusPort) -> Asking:
        made.append(Asking(port))
        return made[-1]

    async with open_local() as runtime:
        caller = Caller()
        await runtime.deploy("caller", lambda: caller)
        echo = await runtime.deploy("echo", Echo)
        answering = await runtime.host("answering", Answering)
        await runtime.host("asking", asking)
        return [
            Rates(
                bare=await _rate(partial(made[0].ask, answering, requests), requests),
                hyperties=await _rate(partial(_ask, caller, echo, requests // 4), requests // 4),
            )
            for _ in range(rounds)
        ]


async def _rate(work: Callable[[], Awaitable[None]], requests: int) -> float:
    # No other sender was active lately, so no share applies.
    await trio.sleep(1.2 * CONTENTION)
    began = time.process_time()
    await work()
    return 2 * requests / (time.process_time() - began)


async def _ask(caller: Caller, to: str, requests: int) -> None:
    async def some() -> None:
        for _ in range(requests // _ASKING):
            await caller.request(to)

    async with trio.open_nursery() as nursery:
        for _ in range(_ASKING):
            nursery.start_soon(some)


@click.command("bench.runtime.local")
@click.option("--requests", default=20_000, show_default=True, help="Requests in a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(requests: int, rounds: int, *, as_json: bool) -> None:
    """Measure messages between hyperties of one runtime; exit with 1 if they are too few."""
    configure_log()
    rates = trio.run(measure, requests, rounds)
    bare, hyperties = (median(column) for column in zip(*map(attrs.astuple, rates), strict=True))
    ratio = hyperties / REACH
    Verdict(
        bench="local",
        what="messages per second of CPU between hyperties of one runtime / those to reach",
        ours=hyperties,
        peer=REACH,
        ratio=ratio,
        reach=1.0,
        missed=() if ratio >= 1 else (f"{hyperties:,.0f} messages of {REACH:,.0f}",),
        not_measured=("hop tracing", "a policy with rules", "hyperties in processes of their own"),
        figures={"bare_per_second": round(bare), "bare_in_reach": round(bare / REACH, 3)},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
