"""How many records a second do `fsm judge` and Spark judge, and how long does a command take?

Ordinary case: traces of runtimes whose hyperties ask each other, with every hop, as requests are
the bulk of any trace; all claims, and those on machines alone. A session of Spark is started
before what is measured; the whole command starts its own, for a trace as large as that of the
demonstration.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs
import orjson
from pyspark.sql import SparkSession

from bench.report import BenchError, Row, program
from fsm.judge.trace_files import folders_of, parts_in
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import combine, judge_folders
from spark.pipeline import Question, validate
from spark.run import convert
from spark.session import open_session
from specs.jsonvalue import JsonObject
from specs.trace import trace_folder

_RATE: Final = 60_000.0
"""Target: records per second that Spark judges from Parquet, all claims, on two cores."""

_COMMAND: Final = 12.0
"""Target: seconds of the whole command for a trace like that of the demonstration."""

_EACH: Final = 12
"""Number of trace records for one request and its answer."""

_PROCESSES: Final = 4
_PARTIES: Final = 3
_CORES: Final = 2


def _by_spark(session: SparkSession, asked: Question) -> Verdict:
    return validate(session, asked).verdict


def _rate(
    count: int, judge: Callable[[], Verdict], clock: Callable[[], float] = time.perf_counter
) -> float:
    begun = clock()
    verdict = judge()
    taken = clock() - begun
    if verdict is not Verdict.CONFORMANT:
        raise BenchError(f"the trace is {verdict}")
    return count / taken


def _by_fsm(place: Path) -> Verdict:
    judged = judge_folders(folders_of(parts_in([place])))
    return combine([process for folder in judged for process in folder.processes]).verdict


def _rates(folder: Path, records: int) -> list[Row]:
    """Measure the records per second of `fsm judge` and of Spark on the same trace."""
    lines, columns = folder / "lines", folder / "columns"
    count = sum(
        write_runtime(lines, f"ra{number}", records // _PROCESSES) for number in range(_PROCESSES)
    )
    first = next(lines.iterdir())
    alone = _rate(count // _PROCESSES, partial(_by_fsm, first), time.process_time)
    whole = Question(traces=(str(columns),))
    asked = {
        "JSON Lines": Question(traces=(str(lines),)),
        "Parquet, claims on machines alone": attrs.evolve(whole, is_of_machines=True),
        "Parquet": whole,
    }
    rows = [Row(f"fsm judge, {count // _PROCESSES:,} records", alone, "records/s of CPU")]
    with open_session({"spark.master": f"local[{_CORES}]"}, is_short=count <= _RATE) as session:
        convert(session, [str(lines)], str(columns))
        _by_spark(session, whole)  # the first judgement compiles what all run
        for name, question in asked.items():
            rate = _rate(count, partial(_by_spark, session, question))
            reach = _RATE if question is whole else None
            what = f"Spark, {count:,} records, {name}"
            rows.append(Row(what, rate, "records/s", reach=reach, is_least=True))
    return rows


def _seconds(package: str, command: str, folder: Path) -> float:
    begun = time.perf_counter()
    words = [sys.executable, "-m", package, command, str(folder)]
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)  # noqa: S603  our own module
    return time.perf_counter() - begun


async def measure(records: int, demo: int) -> list[Row]:
    """Measure the records per second, then the duration of the whole command."""
    with TemporaryDirectory() as directory:
        rows, place = _rates(Path(directory), records), Path(directory, "demo")
        for number in range(_PARTIES):
            write_runtime(place, f"ra{number}", demo // _PARTIES)
        taken = _seconds("spark", "validate", place)
        rows.append(Row(f"`spark validate`, {demo:,} records", taken, "s", reach=_COMMAND))
        return [*rows, Row(f"`fsm judge`, {demo:,} records", _seconds("fsm", "judge", place), "s")]


def write_runtime(directory: Path, node: str, records: int) -> int:
    """Write an artificial trace of a runtime, and return its number of records."""
    folder = directory / trace_folder(f"r-{node}", node)
    folder.mkdir(parents=True)
    number = 0
    with Path(folder, "part-00000.jsonl").open("wb") as part:
        for number, message in enumerate(_runtime(node, records // _EACH), start=1):
            stamp: JsonObject = {
                "run": f"r-{node}", "node": node, "ln": number, "wall_ns": number,
                "mono_ns": number, "t": number / 10_000, "actor": "bus",
            }  # fmt: skip
            part.write(orjson.dumps(stamp | message) + b"\n")
    return number


def _runtime(node: str, requests: int) -> Iterator[JsonObject]:
    """Yield the trace records of a runtime in which one hyperty sends requests to another."""
    one, other = f"hyperty://a.ex/{node}/1", f"hyperty://a.ex/{node}/2"
    yield {"k": "start"}
    row: JsonObject = {"k": "table", "op": "add", "table": "listeners"}
    yield row | {"key": f"hyperty-runtime://a.ex/{node}/sm", "val": "sm"}
    for hyperty in (one, other):
        yield row | {"key": hyperty, "val": f"minibus:{hyperty}"}
    for number in range(1, requests + 1):
        yield from _request(one, other, number)
    yield {"k": "end"}


def _request(one: str, other: str, number: int) -> Iterator[JsonObject]:
    """Yield the trace records of one request and its answer."""
    asked = f"{one}#{number}>{other}"
    ends: JsonObject = {"id": number, "mid": asked, "type": "read", "from": one, "to": other}
    back: JsonObject = {
        "id": number, "mid": f"{asked}!200", "ref": asked, "type": "response", "from": other,
        "to": one, "code": 200,
    }  # fmt: skip
    step: JsonObject = {"k": "state", "op": "step", "machine": "transaction"}
    step |= {"key": f"{one}|{other}|{number}"}
    for message, by, digest in ((ends, one, "d1"), (back, other, "d2")):
        hop: JsonObject = {"k": "msg", "digest": digest, **message}
        yield {"k": "authz", "mid": message["mid"], "decision": "permit"}
        yield hop | {"op": "submit", "by": by}
        yield hop | {"op": "admit", "by": by}
        if message is back:
            yield hop | {"op": "callback"}
            yield step | {"old": "pending", "cause": "answered", "new": "final"}
        else:
            yield step | {"old": "[*]", "cause": "opened", "new": "pending"}
            minibus = f"minibus:{other}"
            yield hop | {"op": "deliver", "listener": minibus}
            yield hop | {"op": "deliver", "listener": other, "actor": minibus}


main = program(
    measure,
    {"records": (200_000, 2000), "demo": (73_000, 2000)},
)

if __name__ == "__main__":
    main()
