"""Cost of counting for a message that a node routes, and of a scrape of the counts."""

import math
import time
import timeit
from typing import Final

import click
import trio

from actors.http.metrics import MetricsPage
from actors.kit.counters import Counters, Form, Gauge, Timing
from bench.verdict import Verdict

BUDGET: Final = 12.0
"""Microseconds of a node that a routed message may cost (DESIGN section 11)."""

REACH: Final = 0.03
"""Part of that which counting must stay under."""

_ROUNDS: Final = 200_000
_SCRAPES: Final = 200


def per_message(counters: Counters) -> float:
    """Return microseconds of CPU to count one message of one frame, as a node does."""
    traffic = counters.traffic[Form.LINK]

    def counted() -> None:
        traffic.received += 1
        counters.permitted += 1
        counters.admitted += 1
        traffic.sent += 1

    def nothing() -> None:
        pass

    def best(work: object) -> float:
        return min(timeit.repeat(work, timer=time.process_time, number=_ROUNDS, repeat=5))  # type: ignore[arg-type] # called

    return (best(counted) - best(nothing)) / _ROUNDS * 1e6


def per_scrape(counters: Counters) -> float:
    """Return milliseconds of one scrape."""
    page = MetricsPage(counters)

    async def scrape() -> float:
        begun = trio.current_time()
        for _ in range(_SCRAPES):
            await page()
        return (trio.current_time() - begun) / _SCRAPES * 1e3

    return trio.run(scrape)


def measure() -> dict[str, float]:
    """Return all figures."""
    counters = Counters()
    message = per_message(counters)
    for gauge in Gauge:
        counters.watch(gauge, lambda: 1)
    for seconds in (0.0001, 0.01, math.pi):
        counters.took(Timing.COMMIT, seconds)
    return {
        "ratio": round(message / BUDGET, 4),
        "message_us": round(message, 3),
        "scrape_ms": round(per_scrape(counters), 3),
    }


@click.command("bench.runtime.counting")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(*, as_json: bool) -> None:
    """Measure what counting costs; exit with 1 if that is too much."""
    figures = measure()
    ratio = figures.pop("ratio")
    Verdict(
        bench="counting",
        what="us of CPU to count one message / us that a node may take for it",
        ours=figures.pop("message_us"),
        peer=BUDGET,
        ratio=ratio,
        reach=REACH,
        missed=() if ratio <= REACH else ("counting costs too much",),
        not_measured=("what a node really takes for a message",),
        figures=figures,
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
