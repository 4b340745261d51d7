"""What does a hyperty that misbehaves cost the others of its runtime?

Ordinary case: two hyperties of a runtime exchange requests, one at a time, while a third one floods
them or others, crashes or is stuck within the runtime, or spins, floods or ends in a sandbox
process of its own; beside the same two without it. What counts is the time that 99 of 100 requests
stay below.
"""

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO
from typing import Final, TypeAlias

import trio

import actors
from actors.hyperties import Echo
from actors.kit.log import configure_log
from bench.report import Row, percentile, program, ratio
from bench.servers import DOMAIN
from specs.reply_code import Code
from tests.support.runtime.rough import Rough
from transports.memory import MemoryNetwork
from transports.sockets import open_background

_REACH: Final = 2.0
"""Target: time of the two hyperties' requests with the third, as a multiple of that without."""

_PAUSE: Final = 0.001
_STARTING: Final = 0.2
_FLOODERS: Final = 32

Misbehave: TypeAlias = Callable[[], Awaitable[object]]
"""Type of functions that make the third hyperty misbehave once more."""

Third: TypeAlias = Callable[[actors.Runtime, str], Awaitable[Misbehave]]
"""Type of functions that deploy the third hyperty, which misbehaves."""


class _Crashing(actors.Hyperty):
    async def on_request(self, message: actors.Message) -> None:
        raise RuntimeError(message.id)


class _Stuck(actors.Hyperty):
    async def on_request(self, _: actors.Message) -> None:
        await trio.sleep_forever()


async def _within(
    made: type[actors.Hyperty] | None, runtime: actors.Runtime, echo: str
) -> Misbehave:
    """Make a third hyperty flood one of class `made` with requests; None: flood `echo`."""
    third = await runtime.deploy(Echo, "third")
    to = echo if made is None else (await runtime.deploy(made, "fourth")).url
    return partial(third.request, to)


async def _apart(how: str, runtime: actors.Runtime, _: str) -> Misbehave:
    """Make a hyperty in a sandbox process misbehave, again after each recovery."""
    other = await runtime.deploy(Echo, "other")
    rough = await runtime.deploy_apart(Rough, "rough")

    async def well() -> int:
        return (await other.request(rough.url, "well?")).code

    async def provoke() -> None:
        nonlocal rough
        await other.request(rough.url, how)
        while (code := await well()) == Code.UNAVAILABLE:  # noqa: ASYNC110
            await trio.sleep(_PAUSE)
        if code == Code.NOT_FOUND:
            rough = await runtime.deploy_apart(Rough, "rough")

    await well()
    return provoke


_WITHIN: Final = {
    "asks a fourth without end": Echo,
    "asks one of the two without end": None,
    "asks one that crashes, without end": _Crashing,
    "asks one that is stuck, without end": _Stuck,
}
_APART: Final = ("exit", "flood", "spin")
THIRDS: Final = {
    **{what: (partial(_within, made), _FLOODERS) for what, made in _WITHIN.items()},
    **{f"{how} in a sandbox process": (partial(_apart, how), 1) for how in _APART},
}


@asynccontextmanager
async def _open_runtime() -> AsyncIterator[actors.Runtime]:
    network = MemoryNetwork()
    async with (
        actors.open_node(DOMAIN, network=network) as node,
        actors.open_runtime(DOMAIN, "r", node=node.url, network=network) as runtime,
    ):
        yield runtime


async def _p99(ask: Callable[[], Awaitable[object]], seconds: float) -> float:
    """Return the milliseconds that 99 of 100 requests do not exceed."""
    taken = []
    until = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < until:
        await ask()
        taken.append(time.perf_counter() - begun)
        await trio.sleep(_PAUSE)
    return percentile(taken, 99) * 1e3


async def _pair(third: Third, at_once: int, seconds: float) -> tuple[float, float]:
    """Return the milliseconds of the two hyperties' requests without and with the third one."""
    async with _open_runtime() as runtime:
        caller, echo = await runtime.deploy(Echo, "caller"), await runtime.deploy(Echo, "echo")
        ask = partial(caller.request, echo.url, 1)
        misbehave = await third(runtime, echo.url)
        await _p99(ask, seconds / 4)
        quiet = await _p99(ask, seconds)

        async def go_on() -> None:
            while True:
                await misbehave()

        async with open_background() as background:
            for _ in range(at_once):
                background.start_soon(go_on)
            await trio.sleep(_STARTING)
            return quiet, await _p99(ask, seconds)


async def measure(rounds: int, seconds: float) -> list[Row]:
    """Measure each kind of misbehaviour."""
    configure_log(stream=StringIO())  # each crash would be told
    rows = []
    for what, (third, at_once) in THIRDS.items():
        pairs = [await _pair(third, at_once, seconds) for _ in range(rounds)]
        quiet, loud = zip(*pairs, strict=True)
        rows.append(Row(what, statistics.median(loud), "ms"))
        rows.append(Row(f"{what}: in times without it", ratio(loud, quiet), "x", reach=_REACH))
    return rows


main = program(measure, {"rounds": (2, 1), "seconds": (0.5, 0.1)})

if __name__ == "__main__":
    main()
