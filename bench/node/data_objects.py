"""Data objects: how fast one changes, how fast a change reaches a thousand, how much it takes.

Rates are of this process's CPU: node and both runtimes live in it, over a network in
memory. The fan-out is over real sockets, from a node process; that upstream's node is not run
here, and what an observer's runtime does with an update, the verdict says.
"""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Final, final

import attrs
import click
import trio
from typing_extensions import override

import actors
from actors.kit.log import configure_log
from bench.node.crowd import percentile, raise_file_limit
from bench.node.fan_out import FanOut, Others, measure_fan_out, measure_others
from bench.node.object_sizes import ENTRIES, Weighed, weigh
from bench.verdict import Verdict
from specs.message import Message
from transports.memory import MemoryNetwork

REACH: Final = 12.0
"""Time of a fan-out through the node, in times of the same bytes written by hand (ours)."""

FLOOR: Final = 0.9
"""Changes that an observer gets, at the least, in plain requests in the same time (ours).

A third of what rounds of 1,000 changes reached (2.9, on a busy machine): below it, something
is far slower than it was. Much shorter rounds say little: those of 20 changes reached 1.1.
"""

WANTED: Final = 15.0
"""Milliseconds to the last of 1,000 observers (DESIGN section 11); of fewer it is not judged."""

OTHERS: Final = 5.0
"""Milliseconds of requests of others during fan-outs to 1,000, of which 99 % take less."""

_CROWD: Final = 1000

_DISTURBED: Final = 8
"""Fan-outs during which others ask, for each round: 99 % needs many requests."""

_DOMAIN: Final = "a.example"


@final
@attrs.frozen
class Rates:
    """One round, per second of CPU.

    Attributes:
        alone: Changes of an object without observers.
        observed: Changes of an object until its one observer has applied them all.
        requests: Plain requests from the observer to the reporter, one after the other.
    """

    alone: float
    observed: float
    requests: float


@final
class _Host(actors.Hyperty):
    """Answers, and accepts every observer."""

    @override
    async def on_subscribe(self, url: str, observer: str) -> None:
        pass

    @override
    async def on_request(self, message: Message) -> None:
        pass


async def measure_rates(changes: int, rounds: int) -> list[Rates]:
    """Measure all three by turns."""
    async with _two() as (reporter, observer):
        return [
            Rates(
                alone=await _changed(reporter, None, changes),
                observed=await _changed(reporter, observer, changes),
                requests=await _asked(observer, reporter.url, changes),
            )
            for _ in range(rounds)
        ]


@asynccontextmanager
async def _two() -> AsyncIterator[tuple[actors.Deployed, actors.Deployed]]:
    network = MemoryNetwork()
    async with (
        actors.open_node(_DOMAIN, network=network) as node,
        actors.open_runtime(_DOMAIN, "ra", node=node.url, network=network) as here,
        actors.open_runtime(_DOMAIN, "rb", node=node.url, network=network) as there,
    ):
        yield await here.deploy(_Host), await there.deploy(_Host)


async def _changed(
    reporter: actors.Deployed, observer: actors.Deployed | None, changes: int
) -> float:
    async with reporter.report("comm", {"n": 0}) as thing:
        if observer is None:
            return await _rate(thing, None, changes)
        async with observer.observe(thing.url) as copy:
            return await _rate(thing, copy, changes)


async def _rate(
    thing: actors.ReportedObject, copy: actors.ObservedObject | None, changes: int
) -> float:
    began = time.process_time()
    for number in range(changes):
        await thing.set("n", number)
    if copy is not None:
        await copy.wait_for(lambda value: value["n"] == changes - 1)
    return changes / (time.process_time() - began)


async def _asked(observer: actors.Deployed, to: str, requests: int) -> float:
    began = time.process_time()
    for number in range(requests):
        await observer.request(to, number)
    return requests / (time.process_time() - began)


@click.command()
@click.option("--changes", default=1000, show_default=True, help="Changes in a round.")
@click.option("--observers", default=1000, show_default=True, help="Observers of an update.")
@click.option("--rounds", default=7, show_default=True, help="Rounds the medians are over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(changes: int, observers: int, rounds: int, *, as_json: bool) -> None:
    """Measure data objects."""
    configure_log()
    raise_file_limit()
    rates = trio.run(measure_rates, changes, rounds)
    taken = trio.run(measure_fan_out, observers, rounds)
    others = trio.run(measure_others, observers, _DISTURBED * rounds)
    ratio = median(one.node / one.raw for one in taken)
    figures = _figures(rates, taken, others, trio.run(weigh))
    is_crowd = observers >= _CROWD
    Verdict(
        bench="data_objects",
        what=f"ms until the last of {observers:,} observers has a change / written by hand",
        ours=figures["fan_out_ms"],
        peer=figures["fan_out_raw_ms"],
        ratio=ratio,
        reach=REACH,
        missed=tuple(_missed(figures, ratio, is_crowd=is_crowd)),
        not_measured=(
            *(() if is_crowd else (f"the fan-out to {_CROWD:,}, wanted in {WANTED:.0f} ms",)),
            "what the runtime of an observer does with a change that was fanned out",
            "upstream's node",
        ),
        figures={
            "observed_floor": FLOOR,
            "fan_out_wanted_ms": WANTED,
            "others_wanted_ms": OTHERS,
            **figures,
        },
    ).tell(as_json=as_json)


def _missed(figures: dict[str, float], ratio: float, *, is_crowd: bool) -> Iterator[str]:
    if ratio > REACH:
        yield f"the fan-out takes {ratio:.1f}x of what it takes by hand"
    if figures["observed_in_requests"] < FLOOR:
        yield f"an observer gets {figures['observed_in_requests']:.2f} changes a plain request"
    if is_crowd and figures["fan_out_ms"] > WANTED:
        yield f"the fan-out takes {figures['fan_out_ms']:.1f} ms of {WANTED:.0f} ms"
    if is_crowd and figures["others_p99_ms"] > OTHERS:
        yield f"others wait {figures['others_p99_ms']:.1f} ms of {OTHERS:.0f} ms meanwhile"


def _figures(
    rates: list[Rates], taken: list[FanOut], others: Others, weighed: Weighed
) -> dict[str, float]:
    return {
        "alone_per_second": round(median(one.alone for one in rates)),
        "observed_per_second": round(median(one.observed for one in rates)),
        "requests_per_second": round(median(one.requests for one in rates)),
        "alone_in_requests": round(median(one.alone / one.requests for one in rates), 2),
        "observed_in_requests": round(median(one.observed / one.requests for one in rates), 2),
        "fan_out_ms": round(median(one.node for one in taken), 2),
        "fan_out_raw_ms": round(median(one.raw for one in taken), 2),
        "others_p50_ms": round(median(others.node), 2),
        "others_p99_ms": round(percentile(others.node, 99), 2),
        "others_p99_raw_ms": round(percentile(others.raw, 99), 2),
        "others_requests": len(others.node),
        "entries": ENTRIES,
        "change_bytes": len(weighed.change),
        "whole_bytes": len(weighed.whole),
    }


if __name__ == "__main__":
    main()
