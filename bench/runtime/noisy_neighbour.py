"""A hyperty that misbehaves: the latency between two others of its runtime (R11)."""

import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial
from typing import Final, final

import attrs
import click
import trio
from typing_extensions import override

from actors.hyperties import Caller, Echo
from actors.kit.log import Level, configure_log
from actors.kit.supervision.actor import Actor, Delivery
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.runtime import Runtime
from bench.runtime.beside import Pair, judged
from bench.runtime.local import open_local
from specs.jsonvalue import Json
from specs.message import Message, MessageType

_PAUSE: Final = 0.001
"""Seconds between two requests of the two: they are no flood themselves."""

_STARTING: Final = 0.2
"""Seconds until the third does nothing but what it is there for."""


class Noise(StrEnum):
    """The misbehaviour of the third runtime."""

    FLOODING = "flooding"
    """It posts requests without end, to a fourth that answers."""

    FLOODING_US = "flooding-us"
    """The same, to one of the two."""

    CRASHING = "crashing"
    """It crashes on each request, and is asked again and again."""

    STUCK = "stuck"
    """It never answers, and is asked more than fits its mailbox."""


@final
class Flooder(Actor[Delivery]):
    """Posts requests without end."""

    def __init__(self, to: str, port: MiniBusPort) -> None:
        self._to = to
        self._port = port

    @override
    async def start(self) -> None:
        self.spawn(self._flood)

    @override
    async def handle(self, message: Delivery) -> None:
        """Take no note of answers."""

    async def _flood(self) -> None:
        number = 0
        while True:
            number += 1
            await self._port.post(Message(number, MessageType.CREATE, self._port.url, self._to))


class Crashing(Hyperty):
    """Crashes on each request."""

    @override
    async def on_request(self, message: Message) -> Json:
        raise RuntimeError(message.id)


class Stuck(Hyperty):
    """Answers nothing."""

    @override
    async def on_request(self, message: Message) -> Json:
        await trio.sleep_forever()


@final
@attrs.frozen
class Stage:
    """The two, and where the third is to come."""

    runtime: Runtime
    caller: Caller
    echo: str


async def _p99(stage: Stage, requests: int) -> float:
    """Return the p99 of so many requests, one after the other, in milliseconds."""
    taken: list[float] = []
    for _ in range(requests):
        begun = time.process_time()
        await stage.caller.request(stage.echo)
        taken.append(time.process_time() - begun)
        await trio.sleep(_PAUSE)
    return sorted(taken)[int(requests * 0.99)] * 1e3


async def _flooding(stage: Stage) -> tuple[str, ...]:
    to = await stage.runtime.deploy("fourth", Echo)
    return to, await stage.runtime.host("third", partial(Flooder, to))


async def _flooding_us(stage: Stage) -> tuple[str, ...]:
    return (await stage.runtime.host("third", partial(Flooder, stage.echo)),)


async def _crashing(stage: Stage) -> tuple[str, ...]:
    to = await stage.runtime.deploy("third", Crashing)
    return to, await stage.runtime.host("fourth", partial(Flooder, to))


async def _stuck(stage: Stage) -> tuple[str, ...]:
    to = await stage.runtime.deploy("third", Stuck)
    return to, await stage.runtime.host("fourth", partial(Flooder, to))


_NOISES: Final[dict[Noise, Callable[[Stage], Awaitable[tuple[str, ...]]]]] = {
    Noise.FLOODING: _flooding,
    Noise.FLOODING_US: _flooding_us,
    Noise.CRASHING: _crashing,
    Noise.STUCK: _stuck,
}


async def measure(noise: Noise, requests: int, rounds: int) -> list[Pair]:
    """Measure without and with the third, by turns."""
    found: list[Pair] = []
    async with open_local() as runtime:
        caller = Caller()
        await runtime.deploy("caller", lambda: caller)
        stage = Stage(runtime, caller, await runtime.deploy("echo", Echo))
        await _p99(stage, requests // 10)
        for _ in range(rounds):
            quiet = await _p99(stage, requests)
            guests = await _NOISES[noise](stage)
            await trio.sleep(_STARTING)
            loud = await _p99(stage, requests)
            for guest in reversed(guests):
                await runtime.undeploy(guest)
            found.append(Pair(quiet, loud))
    return found


@click.command("bench.runtime.noisy_neighbour")
@click.option("--requests", default=2_000, show_default=True, help="Requests of the two.")
@click.option("--rounds", default=3, show_default=True, help="Rounds the median is over.")
@click.option("--noise", "noises", type=click.Choice([*map(str, Noise)]), multiple=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(requests: int, rounds: int, noises: tuple[str, ...], *, as_json: bool) -> None:
    """Measure what a hyperty that misbehaves costs others; exit with 1 if it is too much."""
    configure_log(Level.ERROR)
    wanted = tuple(map(Noise, noises or Noise))
    pairs = {str(one): trio.run(measure, one, requests, rounds) for one in wanted}
    judged("noisy_neighbour", pairs, "ms of CPU").tell(as_json=as_json)


if __name__ == "__main__":
    main()
