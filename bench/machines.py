"""Speed of judging only the claims on machines, by columns, for traces of three shapes.

`many`: entities of a few steps each; `one`: all steps are of one entity; `skewed`: one entity of a
hundred has nine of ten steps, with all others of them.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import chain, cycle, islice
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Final

import click

from bench.verdict import Verdict as Told
from fsm.judge.trace_files import folders_of, parts_in
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import combined, judge_folders
from spark.files import part_of
from spark.findings import Scope
from spark.pipeline import Question, validate
from spark.run import convert
from spark.session import Effort, open_session
from spark.workers.screen import screened
from specs.trace import trace_folder

_REACH: Final = 2_000_000.0
"""Records per second from Parquet, two cores."""

_REACH_LINES: Final = 400_000.0
"""Records per second from JSON Lines, two cores."""

_CYCLE: Final = (("open", "link-lost", "detached"), ("detached", "reopened", "open"))
_FIRST: Final = ("[*]", "opened", "open")
LAST: Final = ("open", "close", "closed")
REPLAYED: Final = 200_000
"""Records that are replayed step by step, to compare with."""

_LINE: Final = (
    b'{"run":"r-%b","node":"%b","ln":%d,"wall_ns":%d,"mono_ns":%d,"t":%.4f,"actor":"bus",'
    b'"k":"state","op":"step","machine":"session","key":"mn|%d","old":"%b","cause":"%b","new":"%b"}\n'
)
_EDGE: Final = (
    b'{"run":"r-%b","node":"%b","ln":%d,"wall_ns":%d,"mono_ns":%d,"t":%.4f,"actor":"trace",'
    b'"k":"%b"}\n'
)

Row = tuple[str, str, str]


@click.command()
@click.option("--records", default=1_000_000, help="Of each trace.")
@click.option("--processes", default=4, help="How many wrote each.")
@click.option("--rounds", default=3, help="Rounds the median of `many` is over.")
@click.option("--cores", default=2)
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, records: int, processes: int, rounds: int, cores: int, as_json: bool) -> None:
    """Measure records per second, the median of some rounds."""
    figures: dict[str, object] = {"records": records, "load average": os.getloadavg()[0]}
    with (
        TemporaryDirectory() as directory,
        open_session({"spark.master": f"local[{cores}]"}, effort=Effort.LONG) as session,
    ):
        rates: dict[str, float] = {}
        for shape, steps in _SHAPES.items():
            lines, columns = Path(directory, shape, "lines"), Path(directory, shape, "columns")
            writers = 1 if shape == "one" else processes
            count = sum(
                write_process(lines, f"n{one}", steps(records // writers - 2))
                for one in range(writers)
            )
            convert(session, [str(lines)], str(columns))

            def by_spark(place: Path) -> Verdict:
                asked = Question(traces=(str(place),), scope=Scope.MACHINES)
                return validate(session, asked).verdict

            places = {"Parquet": columns} | ({"JSON Lines": lines} if shape == "many" else {})
            for name, place in places.items():
                key = f"{shape}, {name}"
                taken = rounds if shape == "many" else 1
                rates[key] = median_rate(taken, count, by_spark, place, time.perf_counter)
                rates[f"{key}, columns alone"] = median_rate(
                    1, count, by_columns, place, time.process_time
                )
            rmtree(Path(directory, shape))
        replayed = Path(directory, "replayed")
        count = write_process(replayed, "n", many(min(records, REPLAYED)))
        rates["fsm judge"] = median_rate(1, count, by_fsm, replayed, time.process_time)
    ours, peer = rates["many, Parquet"], rates["fsm judge"]
    missed = [
        f"{name}: {rates[name]:,.0f} of {reach:,.0f} records/s"
        for name, reach in (("many, Parquet", _REACH), ("many, JSON Lines", _REACH_LINES))
        if rates[name] < reach
    ]
    Told(
        bench="machines",
        what="records/s of machine claims by Spark from Parquet / by fsm judge in one process",
        ours=ours,
        peer=peer,
        ratio=ours / peer,
        reach=None,
        missed=tuple(missed),
        not_measured=("the start of Spark", "the conversion to Parquet"),
        figures=figures | {"records/s": rates},
    ).tell(as_json=as_json)


def many(records: int) -> Iterator[tuple[int, Row]]:
    """Entities of four steps each."""
    life = (_FIRST, *_CYCLE, LAST)
    for at in range(records - records % len(life)):
        yield at // len(life), life[at % len(life)]


def _one(records: int) -> Iterator[tuple[int, Row]]:
    """One entity."""
    turns = (records - 2) // len(_CYCLE)
    steps = chain((_FIRST,), islice(cycle(_CYCLE), turns * len(_CYCLE)), (LAST,))
    return ((0, step) for step in steps)


def _skewed(records: int) -> Iterator[tuple[int, Row]]:
    """Of a thousand entities ten have nine tenths of the records, in turns with the others."""
    light = records // 10 // 4
    heavy = max(light // 100, 1)
    turns = max((records - 4 * light) // heavy // len(_CYCLE), 1)
    numbers = range(light, light + heavy)
    yield from ((number, _FIRST) for number in numbers)
    others = many(4 * light)
    for turn in range(turns):
        for step in _CYCLE:
            yield from ((number, step) for number in numbers)
        if turn % 2:
            yield from islice(others, 4 * light // max(turns // 2, 1))
    yield from others
    yield from ((number, LAST) for number in numbers)


_SHAPES: Final = {"many": many, "one": _one, "skewed": _skewed}


def write_process(directory: Path, node: str, steps: Iterator[tuple[int, Row]]) -> int:
    """Write the trace of a process; return how many records it has.

    Args:
        directory: The directory of runs.
        node: Name of the process.
        steps: Number of an entity, and a row that it follows, each.
    """
    folder = directory / trace_folder(f"r-{node}", node)
    folder.mkdir(parents=True)
    name = node.encode()
    words = {row: tuple(word.encode() for word in row) for row in (_FIRST, *_CYCLE, LAST)}
    with Path(folder, "part-00000.jsonl").open("wb", buffering=1 << 20) as part:
        part.write(_EDGE % (name, name, 1, 1, 1, 0.0, b"start"))
        ln = 1
        for ln, (entity, row) in enumerate(steps, start=2):
            part.write(_LINE % (name, name, ln, ln, ln, ln / 10_000, entity, *words[row]))
        part.write(_EDGE % (name, name, ln + 1, ln, ln, ln / 10_000, b"end"))
    return ln + 1


def median_rate(
    rounds: int,
    count: int,
    judge: Callable[[Path], Verdict],
    place: Path,
    clock: Callable[[], float],
) -> float:
    """Return how many records a second are judged, the median of some rounds."""
    rates = []
    for _ in range(rounds):
        begun = clock()
        verdict = judge(place)
        rates.append(count / (clock() - begun))
        if verdict is not Verdict.CONFORMANT:
            raise click.ClickException(f"the trace is {verdict}")
    return statistics.median(rates)


def by_columns(place: Path) -> Verdict:
    """Judge in this process, by the columns that Spark's workers judge by."""
    files = [str(file) for end in ("parquet", "jsonl") for file in place.rglob(f"part-*.{end}")]
    for folder in folders_of(map(part_of, files)):
        if screened(folder).entities:
            return Verdict.VIOLATIONS
    return Verdict.CONFORMANT


def by_fsm(place: Path) -> Verdict:
    """Judge in this process, record by record."""
    judged = judge_folders(folders_of(parts_in([place])))
    return combined([one for folder in judged for one in folder.processes]).verdict


if __name__ == "__main__":
    main()
