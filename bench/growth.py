"""How the time of Spark grows: with the size of a trace, and with its shape.

Only claims on machines are judged, from Parquet. `many`: entities of four steps; `one`: all steps
are of one entity; `skewed`: of a hundred entities one has nine of ten steps. A judgement is linear
if a record costs about the same in each.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from os import getloadavg
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Final

import attrs
import click
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # ships no types
from pyspark.sql import SparkSession

from bench.verdict import Verdict as Told
from fsm.judge.trace_line import Verdict
from spark.findings import Scope
from spark.pipeline import Question, validate
from spark.session import Effort, open_session
from specs.trace import Kind, Op, trace_folder

_REACH: Final = 1.3
"""Times that a record may cost more in a large or lopsided trace than in a small even one."""

_SPILL: Final = 2.0
"""Times of the input that Spark may spill."""

_PROCESSES: Final = 4
_CHUNK: Final = 1 << 20
_LIFE: Final = 4
_LONG: Final = 3_600
"""Steps of a frequent entity, so that 1 % of the entities have 90 % of the records."""

_LONG_SHARE: Final = _LONG * 10 // 9
"""Records for each of them, those of the others included."""

_OLD: Final = ("[*]", "open", "detached", "open")
_CAUSE: Final = ("opened", "link-lost", "reopened", "close")
_NEW: Final = ("open", "detached", "open", "closed")

_Numbers = npt.NDArray[np.int64]
_Shape = Callable[[_Numbers, int], tuple[_Numbers, _Numbers, _Numbers]]


def _many(rows: _Numbers, _: int) -> tuple[_Numbers, _Numbers, _Numbers]:
    return rows // _LIFE, rows % _LIFE, np.full(len(rows), _LIFE)


def _one(rows: _Numbers, count: int) -> tuple[_Numbers, _Numbers, _Numbers]:
    return np.zeros(len(rows), np.int64), rows, np.full(len(rows), count)


def _skewed(rows: _Numbers, count: int) -> tuple[_Numbers, _Numbers, _Numbers]:
    frequent = count // _LONG_SHARE
    turn, place = rows // 10, rows % 10
    heavy = turn * 9 + place - 1
    is_light = place == 0
    return (
        np.where(is_light, frequent + turn // _LIFE, heavy % frequent),
        np.where(is_light, turn % _LIFE, heavy // frequent),
        np.where(is_light, _LIFE, _LONG),
    )


_SHAPES: Final[dict[str, _Shape]] = {"many": _many, "one": _one, "skewed": _skewed}
"""Of some rows, how many there are in all: the number of the entity, of its step, and of steps."""


@click.command()
@click.option("--records", default=1_000_000, help="Of the small trace.")
@click.option("--times", default=50, help="How many times as large the large one is.")
@click.option("--lopsided", default=10, help="The same for those of one, and of skewed entities.")
@click.option("--cores", default=2)
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, records: int, times: int, lopsided: int, cores: int, as_json: bool) -> None:
    """Measure the time of a record in each trace."""
    traces = {
        f"many, {records:,}": ("many", records),
        f"many, {records * times:,}": ("many", records * times),
        f"one, {records * lopsided:,}": ("one", records * lopsided),
        f"skewed, {records * lopsided:,}": ("skewed", records * lopsided),
    }
    with TemporaryDirectory() as directory:
        log = Path(directory, "log")
        log.mkdir()
        settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri()}
        settings["spark.master"] = f"local[{cores}]"
        settings |= {f"spark.eventLog.{one}": "false" for one in ("compress", "rolling.enabled")}
        with open_session(settings, effort=Effort.LONG) as session:
            warm = Path(directory, "warm")
            write_columns(warm, "many", records)
            _seconds(session, warm)
            taken = {
                name: _measured(session, Path(directory, shape), shape, count)
                for name, (shape, count) in traces.items()
            }
        spilled = sum(map(_spilled, log.rglob("*")))
    costs = {name: one.seconds / one.records * 1e6 for name, one in taken.items()}
    small, *others = costs.values()
    size = max(one.bytes for one in taken.values())
    missed = [
        f"{name}: {cost / small:.2f}x" for name, cost in costs.items() if cost > _REACH * small
    ]
    if spilled > _SPILL * size:
        missed.append(f"{spilled:,} bytes were spilled, {size:,} read")
    Told(
        bench="growth",
        what="us of a record in the trace where it costs most / in the small one",
        ours=max(others),
        peer=small,
        ratio=max(others) / small,
        reach=_REACH,
        missed=tuple(missed),
        not_measured=("the start of Spark", "claims on messages"),
        figures={
            "load average": getloadavg()[0],
            "seconds": {name: one.seconds for name, one in taken.items()},
            "us a record": costs,
            "bytes of the largest input": size,
            "bytes spilled by all": spilled,
        },
    ).tell(as_json=as_json)


@attrs.frozen
class _Taken:
    records: int
    bytes: int
    seconds: float


def _measured(session: SparkSession, place: Path, shape: str, count: int) -> _Taken:
    """Write a trace, judge it, and remove it."""
    records = write_columns(place, shape, count)
    size = sum(file.stat().st_size for file in place.rglob("part-*"))
    taken = _Taken(records, size, _seconds(session, place))
    rmtree(place)
    return taken


def _seconds(session: SparkSession, place: Path) -> float:
    begun = time.perf_counter()
    found = validate(session, Question(traces=(str(place),), scope=Scope.MACHINES))
    taken = time.perf_counter() - begun
    if found.verdict is not Verdict.CONFORMANT:
        raise click.ClickException(f"the trace is {found.verdict}")
    return taken


def _spilled(log: Path) -> int:
    """Return how many bytes Spark wrote to disk for want of memory, by its own log of events."""
    events = map(orjson.loads, log.read_bytes().splitlines())
    return sum(event.get("Task Metrics", {}).get("Disk Bytes Spilled", 0) for event in events)


def write_columns(directory: Path, shape: str, records: int) -> int:
    """Write a trace as `convert` does, without its lines; return how many records it has.

    Args:
        directory: The directory of runs.
        shape: How many steps the entities have.
        records: About how many; all steps of an entity are there.
    """
    processes = 1 if shape == "one" else _PROCESSES
    whole = _LONG_SHARE if shape == "skewed" else _LIFE
    count = max(records // processes // whole, 1) * whole
    for number in range(processes):
        folder = directory / trace_folder(f"r-{number}", f"n{number}")
        folder.mkdir(parents=True)
        chunks = _chunks(_SHAPES[shape], count)
        first = next(chunks)
        with pq.ParquetWriter(folder / "part-00000.parquet", first.schema) as file:
            file.write_table(first)
            for chunk in chunks:
                file.write_table(chunk)
    return (count + 2) * processes


def _chunks(shape: _Shape, count: int) -> Iterator[pa.Table]:
    """Yield the records of a process."""
    yield _table([1], "start")
    for since in range(0, count, _CHUNK):
        rows = np.arange(since, min(since + _CHUNK, count))
        entity, visit, visits = shape(rows, count)
        middle = (visit - 1) % 2 + 1
        step = np.where(visit == 0, 0, np.where(visit == visits - 1, _LIFE - 1, middle))
        words = {"old": _OLD, "cause": _CAUSE, "new": _NEW}
        yield _table(
            rows + 2,
            Kind.STATE,
            op=pa.repeat(Op.STEP, len(rows)),
            machine=pa.repeat("session", len(rows)),
            key=pa.array(entity).cast(pa.string()),
            **{name: pa.array(texts).take(pa.array(step)) for name, texts in words.items()},
        )
    yield _table([count + 2], "end")


def _table(numbers: Sequence[int] | _Numbers, kind: str, **fields: pa.Array) -> pa.Table:
    size = len(numbers)
    ln = np.asarray(numbers)
    texts = ("op", "machine", "key", "old", "cause", "new")
    columns = {name: fields.get(name, pa.nulls(size, pa.string())) for name in texts}
    return pa.table({"ln": ln, "t": ln / 10_000, "k": pa.repeat(kind, size), **columns})


if __name__ == "__main__":
    main()
