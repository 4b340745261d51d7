"""Requests by the thousand: how long they take, and that none is lost or doubled."""

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, final

import attrs
import trio

from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import Code

__all__ = ["Ask", "Latencies", "NumberedRequests", "compared", "measure"]

Ask: TypeAlias = Callable[[Json], Awaitable[Message]]
"""Asks the counting hyperty with a value; gives its answer."""

WORKERS: Final = 8
"""Requests under way at once while the link is cut (ours)."""


@final
@attrs.frozen
class Latencies:
    """How long requests took, one after the other, in microseconds."""

    requests: int
    p50_us: float
    p99_us: float
    per_second: float

    def as_json(self) -> JsonObject:
        """The figures, rounded."""
        return {
            "requests": self.requests,
            "p50_us": round(self.p50_us, 1),
            "p99_us": round(self.p99_us, 1),
            "per_second": round(self.per_second),
        }


def compared(by_node: Latencies, by_link: Latencies) -> list[str]:
    """Return both side by side, as the lines of a table."""
    ratios = (
        by_link.p50_us / by_node.p50_us,
        by_link.p99_us / by_node.p99_us,
        by_link.per_second / by_node.per_second,
    )
    return [
        f"{'':<12}{'requests':>9}{'p50':>12}{'p99':>12}{'per second':>12}",
        _row("by the node", by_node),
        _row("by the link", by_link),
        f"{'link / node':<21}" + "".join(f"{one:>12.2f}" for one in ratios),
    ]


def _row(way: str, taken: Latencies) -> str:
    p50, p99 = (f"{one:,.0f} us" for one in (taken.p50_us, taken.p99_us))
    return f"{way:<12}{taken.requests:>9,}{p50:>12}{p99:>12}{taken.per_second:>12,.0f}"


@final
class NumberedRequests:
    """Gives every request a number of its own and keeps which were answered well.

    Attributes:
        sent: Numbers given out.
        answered: Requests that were answered 200.
        failures: Codes of the other answers.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self.failures: list[int] = []
        self._progress = trio.Event()

    async def one(self, ask: Ask) -> None:
        """Ask once."""
        self.sent += 1
        answer = await ask({"number": self.sent})
        if answer.code == Code.OK:
            self.answered += 1
        else:
            self.failures.append(answer.code)
        self._progress.set()
        self._progress = trio.Event()

    async def keep_asking(self, ask: Ask, enough: trio.Event) -> None:
        """Ask from several tasks at once until it is enough; all answers are awaited."""
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(self._work, ask, enough)

    async def _work(self, ask: Ask, enough: trio.Event) -> None:
        while not enough.is_set():
            await self.one(ask)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each answer."""
        while not reached():
            await self._progress.wait()


async def measure(requests: NumberedRequests, ask: Ask, count: int) -> Latencies:
    """Ask `count` times, one after the other."""
    taken: list[int] = []
    began = time.perf_counter_ns()
    for _ in range(count):
        start = time.perf_counter_ns()
        await requests.one(ask)
        taken.append(time.perf_counter_ns() - start)
    total = time.perf_counter_ns() - began
    taken.sort()
    return Latencies(
        requests=count,
        p50_us=taken[count // 2] / 1e3,
        p99_us=taken[min(count - 1, count * 99 // 100)] / 1e3,
        per_second=count * 1e9 / total,
    )
