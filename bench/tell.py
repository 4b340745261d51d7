"""In-process `tell` of a typed message against a raw Trio memory channel."""

import sys
import time
from statistics import median
from typing import Final, final

import attrs
import click
import orjson
import trio
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef, Reply
from actors.kit.supervisor import ChildSpec, Restart, open_supervisor

__all__ = ["REACH", "Rates", "measure"]

REACH: Final = 6.0
"""Times the raw channel that a tell must reach (DESIGN section 11)."""

_BUFFER: Final = 64


@final
@attrs.frozen
class Rates:
    """Messages per second of CPU time, each a median over the rounds."""

    raw: float
    tell: float
    ask: float

    @property
    def ratio(self) -> float:
        """How many tells go by in the time of one raw message."""
        return self.tell / self.raw


@final
@attrs.frozen
class _Add:
    number: int


@final
@attrs.frozen
class _Sum:
    reply: Reply[int]


@final
class _Adder(Actor[_Add | _Sum]):
    def __init__(self) -> None:
        self._sum = 0

    @override
    async def handle(self, message: _Add | _Sum) -> None:
        match message:
            case _Add(number):
                self._sum += number
            case _Sum(reply):
                reply.send(self._sum)


async def measure(messages: int, rounds: int) -> Rates:
    """Measure raw channel, tell and ask by turns, so that a busy machine hits all."""
    raw: list[float] = []
    tell: list[float] = []
    ask: list[float] = []
    message = _Add(1)
    async with open_supervisor("bench") as supervisor:
        adder = await supervisor.start_child(ChildSpec("adder", _Adder, Restart.TEMPORARY))
        for _ in range(rounds):
            raw.append(await _raw(message, messages))
            tell.append(await _tell(adder, message, messages))
            ask.append(await _ask(adder, messages // 10))
    return Rates(median(raw), median(tell), median(ask))


async def _raw(message: _Add, messages: int) -> float:
    send, receive = trio.open_memory_channel[_Add](_BUFFER)
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


async def _tell(adder: ActorRef[_Add | _Sum], message: _Add, messages: int) -> float:
    began = time.process_time()
    for _ in range(messages):
        await adder.tell(message)
    await adder.ask(_Sum)
    return messages / (time.process_time() - began)


async def _ask(adder: ActorRef[_Add | _Sum], messages: int) -> float:
    began = time.process_time()
    for _ in range(messages):
        await adder.ask(_Sum)
    return messages / (time.process_time() - began)


@click.command()
@click.option("--messages", default=100_000, show_default=True, help="Messages in a round.")
@click.option("--rounds", default=7, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(messages: int, rounds: int, *, as_json: bool) -> None:
    """Measure tells against a raw memory channel."""
    rates = trio.run(measure, messages, rounds)
    if as_json:
        told = {"schema": "protofly.bench/1", "bench": "tell", "reach": REACH}
        told |= {"ratio": round(rates.ratio, 2), "per_second": attrs.asdict(rates)}
        print(orjson.dumps(told).decode())
    else:
        print(f"raw channel {rates.raw:12,.0f}/s   1.0x")
        print(f"tell        {rates.tell:12,.0f}/s {rates.ratio:5.1f}x (reach {REACH:.0f}x)")
        print(f"ask         {rates.ask:12,.0f}/s {rates.ask / rates.raw:5.1f}x")
    sys.exit(0 if rates.ratio >= REACH else 1)


if __name__ == "__main__":
    main()
