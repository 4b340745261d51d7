"""`python -m tests.chaos`: nodes of one domain under load, and a fault every few seconds."""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import trio

from fsm.judge.trace_line import Verdict
from spark.pipeline import Question
from spark.run import Order
from spark.run import run as judged
from tests.chaos.faults import USUAL, Fault, Wrong, faults
from tests.chaos.scene import DOMAIN, Runtimes, Scene, open_runtimes, open_scene
from tests.chaos.verdict import Seen, broken, differences, lasted, seen_of, unanswered, unexplained
from tests.chaos.worker import Part

_PATIENCE = 180.0
"""Seconds after the last fault until everything must be settled."""

_LOOKING = 2.0
"""Seconds between two looks."""

_SHOWN = 20
"""Lines of each kind in the report."""


@attrs.frozen
class Result:
    """What became of a run.

    Attributes:
        lines: Figures.
        flaws: What is wrong; nothing: the run has passed.
    """

    lines: list[str]
    flaws: list[str]


def parts_of(asked: argparse.Namespace, nodes: list[str], scene: Scene) -> list[Part]:
    """Deal the runtimes out among processes."""
    names = [f"r{number}" for number in range(asked.runtimes)]
    return [
        Part(
            names=names[first :: asked.processes],
            domain=DOMAIN,
            nodes=nodes,
            key=str(scene.key),
            trace=str(scene.folder / "traces" / f"runtimes-{first}"),
            rate=asked.rate / asked.runtimes,
            durable=asked.durable,
            open=asked.open,
            objects=asked.objects // asked.runtimes,
            changes=asked.changes,
            seed=asked.seed,
        )
        for first in range(asked.processes)
    ]


async def run(asked: argparse.Namespace, folder: Path) -> Result:
    """Run nodes and runtimes, and all faults; return what runtimes have seen."""
    async with open_scene(folder, asked.nodes) as scene:
        urls = [node.url for node in scene.nodes]
        async with open_runtimes(parts_of(asked, urls, scene)) as runtimes:
            said = await runtimes.hear()
            both = {key: [one for part in said for one in part[key]] for key in ("urls", "things")}
            await runtimes.say(do="go", **both)
            began = time.monotonic()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, asked.seconds)
                for fault in made_up(asked):
                    nursery.start_soon(_later, scene, fault)
            await scene.all_up()
            await runtimes.say(do="stop")
            seen, unsettled = await _settled(runtimes)
            took = time.monotonic() - began
            await runtimes.say(do="end")
            statuses = await runtimes.ended()
        statuses += [*scene.statuses, *[await node.leave() for node in scene.nodes]]
        killed = [place for node in scene.nodes for place in node.killed]
        flaws = [*unsettled, *broken(seen)]
        if asked.faults == [Wrong.RESTART]:
            flaws += unanswered(seen)
        flaws += [f"a process ended with {status}" for status in statuses if status]
        lines = [*_figures(scene, seen, took)]
    more, found = await trio.to_thread.run_sync(_judged, folder / "traces", killed)
    return Result([*lines, *more], [*flaws, *found])


def made_up(asked: argparse.Namespace) -> Iterator[Fault]:
    """Make up the faults of a run."""
    return faults(asked.seed, asked.seconds, asked.every, asked.nodes, asked.faults)


async def _later(scene: Scene, fault) -> None:
    await trio.sleep(fault.at)
    await scene.suffer(fault)


async def _settled(runtimes: Runtimes) -> tuple[Seen, list[str]]:
    """Wait until everything is settled; return what was seen, and what never was."""
    until = trio.current_time() + _PATIENCE
    while True:
        await runtimes.say(do="report")
        seen = seen_of(await runtimes.hear())
        left = [*differences(seen)]
        if not left or trio.current_time() > until:
            return seen, left
        await trio.sleep(_LOOKING)


def _figures(scene: Scene, seen: Seen, took: float) -> Iterator[str]:
    done = Counter(fault.wrong.value for fault in scene.done)
    yield f"{took:.0f} s, faults: {', '.join(f'{n} {what}' for what, n in sorted(done.items()))}"
    for kind, name in (("b/", "best effort"), ("d/", "durable")):
        codes = Counter(code for number, code in seen.codes.items() if number.startswith(kind))
        answers = ", ".join(f"{times} with {code}" for code, times in sorted(codes.items()))
        yield f"{sum(codes.values())} requests, {name}: answered {answers}"
    for percent in 50, 99, 100:
        yield f"{percent} of 100 requests were answered within {lasted(seen, percent)} ms"
    copies = sum(map(len, seen.copies.values()))
    yield f"{len(seen.things)} objects, {copies} copies"


def _judged(traces: Path, killed: list[Path]) -> tuple[list[str], list[str]]:
    findings = judged(Order(question=Question(traces=(str(traces),)))).findings
    runs = {run.name.removeprefix("run="): run.parent for run in traces.glob("*/run=*")}
    line = f"{findings.events} records of {len(findings.nodes)} processes judged by Spark"
    lines = [f"{line}: {findings.verdict.value}, {len(killed)} of them were killed"]
    flaws = [*unexplained(findings, killed, runs)]
    if findings.verdict is Verdict.VIOLATIONS and not flaws:
        flaws = ["Spark found violations"]
    return lines, flaws


def _above_zero(text: str) -> float:
    """Read a number that something is divided by."""
    with suppress(ValueError):
        if 0 < (number := float(text)) < math.inf:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")


def _fault(text: str) -> Wrong:
    with suppress(ValueError):
        return Wrong(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no fault: choose among {', '.join(Wrong)}")


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (number := float(text)) <= 1:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 1")


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if text.isdecimal() and int(text) >= least:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")

    return read


def read_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the options of a run; None: those of the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    number, count = _above_zero, _at_least(1)
    parser.add_argument("--seconds", type=number, default=600.0, help="how long faults happen")
    parser.add_argument("--every", type=number, default=5.0, help="seconds from fault to fault")
    parser.add_argument(
        "--faults", nargs="+", type=_fault, default=[*USUAL], metavar="FAULT",
        help=f"what goes wrong, of {', '.join(Wrong)} (default: all but restart)",
    )  # fmt: skip
    parser.add_argument("--rate", type=number, default=200.0, help="requests per second of all")
    parser.add_argument("--durable", type=_share, default=0.2, help="share of durable ones")
    parser.add_argument("--open", type=count, default=500, help="requests of a runtime at once")
    parser.add_argument("--objects", type=count, default=48, help="data objects of all")
    parser.add_argument("--changes", type=number, default=0.1, help="changes of each per second")
    parser.add_argument("--nodes", type=count, default=3)
    parser.add_argument("--runtimes", type=_at_least(2), default=8, help="each asks the others")
    parser.add_argument("--processes", type=count, default=2, help="processes with runtimes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep traces here")
    asked = parser.parse_args(words)
    if asked.objects < asked.runtimes:
        parser.error(
            f"{asked.objects} objects are too few for {asked.runtimes} runtimes: each reports one"
        )
    if asked.processes > asked.runtimes:
        parser.error(f"{asked.processes} processes are too many for {asked.runtimes} runtimes")
    return asked


def main() -> int:
    asked = read_options()
    with TemporaryDirectory() as place:
        folder = Path(place) if asked.folder is None else asked.folder
        folder.mkdir(parents=True, exist_ok=True)
        result = trio.run(run, asked, folder)
    for line in result.lines:
        print(line)
    for flaw in result.flaws[:_SHOWN]:
        print(f"wrong: {flaw}")
    if len(result.flaws) > _SHOWN:
        print(f"and {len(result.flaws) - _SHOWN} more")
    print("failed" if result.flaws else "passed")
    return 1 if result.flaws else 0


if __name__ == "__main__":
    sys.exit(main())
