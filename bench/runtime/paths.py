"""Requests between the same two runtimes by a link of their own, against by the message node.

Three processes for each stage: a node, Bob, and Alice, which is this one. All figures
of a kind of link are taken by turns, so that a busy machine hits all of them.
"""

import time
from collections.abc import Sequence
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, final

import attrs
import click
import trio

from actors.kit.log import configure_log
from bench.runtime.stage import Leg, Stage, Tracing, open_stage
from bench.verdict import Verdict
from specs.limits.bus import CONTENTION
from transports.link import DIRECT, Kind
from transports.webrtc.process import is_webrtc_installed

REACH: Final = 0.5
"""What unix and tcp must stay under, p50 and CPU by the link in those by the node (DESIGN section
11)."""

TRACING_REACH: Final = 0.85
"""Throughput with hop tracing in that without, as the CPU allows both (DESIGN section 11)."""

_JUDGED: Final = (Kind.UNIX, Kind.TCP)
_INSTALLED: Final = tuple(
    kind for kind in DIRECT if kind is not Kind.WEBRTC or is_webrtc_installed()
)
_IN_FLIGHT: Final = 32
_WARM_UP: Final = 200


@final
@attrs.frozen
class Taken:
    """One round by one path.

    Attributes:
        p50: Microseconds of a request, one after the other.
        p99: The same of the slowest in a hundred.
        per_second: Requests with 32 in flight.
        cpu: Microseconds of all three processes for each of those.
    """

    p50: float
    p99: float
    per_second: float
    cpu: float


@final
@attrs.frozen
class Figures:
    """Medians over rounds, for one kind of link.

    Attributes:
        paths: By tracing, then by path.
        latency: p50 by the link in p50s by the node.
        cpu: CPU by the link in CPU by the node.
        tracing: By path, throughput with hop tracing in throughput without; both as the
            CPU allows them, since a busy machine lends its cores now to one, now to the other.
    """

    paths: dict[Tracing, dict[Leg, Taken]]
    latency: float
    cpu: float
    tracing: dict[Leg, float]


async def measure(kind: Kind, requests: int, rounds: int) -> Figures:
    """Measure both paths, with and without tracing, by turns."""
    with TemporaryDirectory() as traces:
        async with (
            open_stage(kind, Tracing.OFF, traces) as plain,
            open_stage(kind, Tracing.ON, traces) as traced,
        ):
            stages = {Tracing.OFF: plain, Tracing.ON: traced}
            for stage in stages.values():
                for path in Leg:
                    await _in_turn(stage, path, _WARM_UP)
            taken = [
                {(tracing, path): await _take(stage, path, requests)
                 for tracing, stage in stages.items() for path in Leg}
                for _ in range(rounds)
            ]  # fmt: skip
    return _figures(taken)


async def _take(stage: Stage, path: Leg, requests: int) -> Taken:
    # The askers are two hyperties of one runtime: each is held to its share beside the other.
    await trio.sleep(CONTENTION)
    latencies = sorted(await _in_turn(stage, path, requests))
    spent, began = stage.cpu(), time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(_IN_FLIGHT):
            nursery.start_soon(_in_turn, stage, path, requests // _IN_FLIGHT)
    taken, spent = time.perf_counter() - began, stage.cpu() - spent
    count = requests // _IN_FLIGHT * _IN_FLIGHT
    return Taken(
        p50=latencies[requests // 2] / 1e3,
        p99=latencies[requests * 99 // 100] / 1e3,
        per_second=count / taken,
        cpu=spent * 1e6 / count,
    )


async def _in_turn(stage: Stage, path: Leg, count: int) -> list[int]:
    """Ask one after the other; return the nanoseconds each took."""
    taken: list[int] = []
    for number in range(count):
        began = time.perf_counter_ns()
        await stage.ask(path, number)
        taken.append(time.perf_counter_ns() - began)
    return taken


def _figures(rounds: Sequence[dict[tuple[Tracing, Leg], Taken]]) -> Figures:
    def taken(tracing: Tracing, path: Leg) -> Taken:
        columns = zip(*(attrs.astuple(one[tracing, path]) for one in rounds), strict=True)
        return Taken(*map(median, columns))

    node, link = (Tracing.OFF, Leg.NODE), (Tracing.OFF, Leg.LINK)
    return Figures(
        paths={tracing: {path: taken(tracing, path) for path in Leg} for tracing in Tracing},
        latency=median(one[link].p50 / one[node].p50 for one in rounds),
        cpu=median(one[link].cpu / one[node].cpu for one in rounds),
        tracing={
            path: median(one[Tracing.OFF, path].cpu / one[Tracing.ON, path].cpu for one in rounds)
            for path in Leg
        },
    )


@click.command()
@click.option("--requests", default=640, show_default=True, help="Requests in a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--kind", "kinds", type=click.Choice([*map(str, DIRECT)]), multiple=True)
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(requests: int, rounds: int, kinds: tuple[str, ...], *, as_json: bool) -> None:
    """Measure requests by a link against requests by the node."""
    configure_log()
    wanted = tuple(map(Kind, kinds)) or _INSTALLED
    figures = {kind: trio.run(measure, kind, requests, rounds) for kind in wanted}
    _judged(figures).tell(as_json=as_json)


def _judged(figures: dict[Kind, Figures]) -> Verdict:
    """Judge p50 and CPU of the kinds that have a number; the worst of them is shown."""
    judged = {kind: one for kind, one in figures.items() if kind in _JUDGED} or figures
    ratios = {(kind, "latency"): one.latency for kind, one in judged.items()}
    ratios |= {(kind, "cpu"): one.cpu for kind, one in judged.items()}
    kind, what = max(ratios, key=ratios.__getitem__)
    column, unit = ("p50", "us p50") if what == "latency" else ("cpu", "us of CPU")
    paths = figures[kind].paths[Tracing.OFF]
    missed = [
        f"{kind} {what}: {ratio:.2f}x, reach {REACH:.2f}x"
        for (kind, what), ratio in ratios.items()
        if ratio > REACH
    ]
    missed += [
        f"{kind} traced, by the {path}: {ratio:.2f}x, reach {TRACING_REACH:.2f}x"
        for kind, one in judged.items()
        for path, ratio in one.tracing.items()
        if ratio < TRACING_REACH
    ]
    unmeasured = [str(kind) for kind in (*_JUDGED, Kind.WEBRTC) if kind not in figures]
    return Verdict(
        bench="paths",
        what=f"{unit} of a request by a link of {kind} / by the node",
        ours=getattr(paths[Leg.LINK], column),
        peer=getattr(paths[Leg.NODE], column),
        ratio=ratios[kind, what],
        reach=REACH,
        missed=tuple(missed),
        not_measured=(*unmeasured, "links between two machines"),
        figures={
            "tracing_reach": TRACING_REACH,
            "kinds": {str(kind): attrs.asdict(one) for kind, one in figures.items()},
        },
    )


if __name__ == "__main__":
    main()
