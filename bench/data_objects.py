"""Data objects: how fast one changes, how fast a change reaches a thousand, how much it takes.

Rates are of this process's CPU: node and both runtimes live in it, over a network in
memory. The fan-out is over real sockets, from a node process.
"""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Final, final

import attrs
import click
import orjson
import trio
from typing_extensions import override

import actors
from actors.kit.log import configure_log
from bench.crowd import raise_file_limit
from bench.fan_out import FanOut, measure_fan_out
from bench.object_sizes import ENTRIES, Weighed, weigh
from specs.message import Message
from transports.memory import MemoryNetwork

__all__ = ["FLOOR", "REACH", "WANTED", "Rates", "measure_rates"]

REACH: Final = 12.0
"""Time of a fan-out through the node, in times of the same bytes written by hand (ours)."""

FLOOR: Final = 0.9
"""Changes that an observer gets, at the least, in plain requests in the same time (ours).

A third of what rounds of 1,000 changes reached (2.9, on a busy machine): below it, something
is far slower than it was. Much shorter rounds say little: those of 20 changes reached 1.1.
"""

WANTED: Final = 15.0
"""Milliseconds to the last of 1,000 observers (DESIGN section 11); shown, not judged."""

_DOMAIN: Final = "a.example"


@final
@attrs.frozen
class Rates:
    """One round, per second of CPU.

    Attributes:
        alone: Changes of an object that nobody observes.
        observed: Changes of an object until its one observer has applied them all.
        requests: Plain requests from the observer to the reporter, one after the other.
    """

    alone: float
    observed: float
    requests: float


@final
class _Host(actors.Hyperty):
    """Answers, and lets everybody observe."""

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
@click.option("--observers", default=1000, show_default=True, help="Who gets an update.")
@click.option("--rounds", default=7, show_default=True, help="Rounds the medians are over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(changes: int, observers: int, rounds: int, *, as_json: bool) -> None:
    """Measure data objects."""
    configure_log()
    raise_file_limit()
    rates = trio.run(measure_rates, changes, rounds)
    taken = trio.run(measure_fan_out, observers, rounds)
    ratio = median(one.node / one.raw for one in taken)
    told = _told(rates, taken, trio.run(weigh))
    if as_json:
        head = {"schema": "protofly.bench/1", "bench": "data_objects", "reach": REACH}
        judged = {"ratio": round(ratio, 2), "observed_floor": FLOOR}
        print(orjson.dumps({**head, **judged, **told}).decode())
    else:
        _show(told, observers, ratio)
    sys.exit(0 if ratio <= REACH and told["observed_in_requests"] >= FLOOR else 1)


def _told(rates: list[Rates], taken: list[FanOut], weighed: Weighed) -> dict[str, float]:
    return {
        "alone_per_second": round(median(one.alone for one in rates)),
        "observed_per_second": round(median(one.observed for one in rates)),
        "requests_per_second": round(median(one.requests for one in rates)),
        "alone_in_requests": round(median(one.alone / one.requests for one in rates), 2),
        "observed_in_requests": round(median(one.observed / one.requests for one in rates), 2),
        "fan_out_ms": round(median(one.node for one in taken), 2),
        "fan_out_raw_ms": round(median(one.raw for one in taken), 2),
        "fan_out_wanted_ms": WANTED,
        "change_bytes": len(weighed.change),
        "whole_bytes": len(weighed.whole),
    }


def _show(told: dict[str, float], observers: int, ratio: float) -> None:
    plain = told["requests_per_second"]
    print(f"plain requests       {plain:8,.0f}/s")
    for name in ("alone", "observed"):
        rate, times = told[f"{name}_per_second"], told[f"{name}_in_requests"]
        print(f"changes, {name:<12}{rate:8,.0f}/s  {times:5.2f}x of plain requests")
    print(f"                     an observer is to get at least {FLOOR:.1f}x of plain requests")
    print(f"one of {ENTRIES} entries takes {told['change_bytes']:.0f} bytes, the whole object "
          f"{told['whole_bytes']:,.0f}")  # fmt: skip
    print(f"to the last of {observers:,} observers {told['fan_out_ms']:.1f} ms (wanted "
          f"{WANTED:.0f} ms of 1,000), by hand {told['fan_out_raw_ms']:.1f} ms: "
          f"{ratio:.1f}x (reach {REACH:.0f}x)")  # fmt: skip


if __name__ == "__main__":
    main()
