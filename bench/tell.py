"""In-process `tell` of a typed message against a raw Trio memory channel."""

import time
from statistics import median
from typing import Final, final

import attrs
import click
import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from bench.verdict import Verdict

REACH: Final = 6.0
"""Times the raw channel that a `tell` must reach (DESIGN section 11)."""

_BUFFER: Final = 64


@final
@attrs.frozen
class Rates:
    """Messages per second of CPU time in one round."""

    raw: float
    tell: float
    ask: float


@final
@attrs.frozen
class _Add:
    number: int


@final
@attrs.frozen
class _Get:
    reply: Reply[int]


@final
class _Adder(Actor[_Add]):
    """Adds, and reports when it has reached the goal."""

    def __init__(self) -> None:
        self.sum = 0
        self.goal = 0
        self.is_reached = trio.Event()

    @override
    async def handle(self, message: _Add) -> None:
        self.sum += message.number

    @override
    async def drained(self) -> None:
        if self.sum == self.goal:
            self.is_reached.set()


@final
class _Answerer(Actor[_Get]):
    @override
    async def handle(self, message: _Get) -> None:
        message.reply.send(1)


async def measure(messages: int, rounds: int) -> list[Rates]:
    """Measure raw channel, `tell` and `ask` by turns, so that a busy machine hits all."""
    adder = _Adder()
    async with open_supervisor("bench") as supervisor:
        child = await supervisor.start_child(ChildSpec("adder", lambda: adder))
        asked = await supervisor.start_child(ChildSpec("answerer", _Answerer))
        return [
            Rates(
                raw=await _raw(messages),
                tell=await _tell(child, adder, messages),
                ask=await _ask(asked, messages // 10),
            )
            for _ in range(rounds)
        ]


async def _raw(messages: int) -> float:
    send, receive = trio.open_memory_channel[_Add](_BUFFER)
    message = _Add(1)
    began = time.process_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_receive_all, receive)
        async with send:
            for _ in range(messages):
                await send.send(message)
    return messages / (time.process_time() - began)


async def _receive_all(receive: trio.MemoryReceiveChannel[_Add]) -> None:
    total = 0
    async for message in receive:
        total += message.number


async def _tell(ref: ActorRef[_Add], adder: _Adder, messages: int) -> float:
    adder.goal += messages
    adder.is_reached = trio.Event()
    message = _Add(1)
    began = time.process_time()
    for _ in range(messages):
        await ref.tell(message)
    await adder.is_reached.wait()
    return messages / (time.process_time() - began)


async def _ask(ref: ActorRef[_Get], messages: int) -> float:
    began = time.process_time()
    for _ in range(messages):
        await ref.ask(_Get)
    return messages / (time.process_time() - began)


@click.command()
@click.option("--messages", default=100_000, show_default=True, help="Messages in a round.")
@click.option("--rounds", default=7, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(messages: int, rounds: int, *, as_json: bool) -> None:
    """Measure `tell` against a raw memory channel."""
    rates = trio.run(measure, messages, rounds)
    ratio = median(rate.tell / rate.raw for rate in rates)
    raw, tell, ask = (median(column) for column in zip(*map(attrs.astuple, rates), strict=True))
    Verdict(
        bench="tell",
        what="calls of tell per second of CPU / sends of a raw memory channel",
        ours=tell,
        peer=raw,
        ratio=ratio,
        reach=REACH,
        missed=() if ratio >= REACH else ("calls of tell are too few for sends",),
        figures={"ask_per_second": round(ask)},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
