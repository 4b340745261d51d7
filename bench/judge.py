"""Speed of judging traces by all claims: in one process, and by Spark.

The traces are of runtimes whose hyperties ask each other, with every hop: requests are the bulk
of any trace. Spark's session is started before; what is measured is the judgement.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
import orjson
from pyspark.sql import SparkSession

from bench.verdict import Verdict as Told
from fsm.judge.trace_files import folders_of, parts_in
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import combined, judge_folders
from spark.pipeline import Question, validate
from spark.run import convert
from spark.session import Effort, open_session
from specs.jsonvalue import JsonObject
from specs.trace import trace_folder

_REACH: Final = 60_000.0
"""Records per second by Spark from Parquet, all claims, two cores."""

_GAIN: Final = 1.8
"""Times as fast by two cores as by one."""

_EACH: Final = 12
"""Records of one request and its answer."""


@click.command()
@click.option("--records", default=400_000, help="Of all traces together.")
@click.option("--processes", default=4, help="How many wrote them.")
@click.option("--rounds", default=3)
@click.option("--cores", default=2)
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, records: int, processes: int, rounds: int, cores: int, as_json: bool) -> None:
    """Measure records per second of each judge, the median of some rounds."""
    with TemporaryDirectory() as directory:
        lines, columns = Path(directory, "lines"), Path(directory, "columns")
        count = sum(
            write_runtime(lines, f"ra{one}", records // processes) for one in range(processes)
        )
        alone = _rate(count // processes, lambda: _alone(next(lines.iterdir())), time.process_time)
        effort = Effort.LONG if count > _REACH else Effort.SHORT
        by_cores: dict[int, float] = {}
        from_lines = 0.0
        for used in sorted({cores, 1}, reverse=True):
            with (
                _on_cores(used),
                open_session({"spark.master": f"local[{used}]"}, effort=effort) as session,
            ):
                if used == cores:
                    convert(session, [str(lines)], str(columns))
                by_cores[used] = _by_spark(session, columns, count, rounds)
                if used == cores:
                    from_lines = _by_spark(session, lines, count, rounds)
    from_columns = by_cores[cores]
    gain = from_columns / by_cores[1]
    missed = [] if from_columns >= _REACH else [f"{from_columns:,.0f} of {_REACH:,.0f} records/s"]
    if cores > 1 and gain < _GAIN:
        missed.append(f"{gain:.2f}x of {_GAIN}x by {cores} cores")
    Told(
        bench="judge",
        what="records/s by Spark from Parquet / those to reach",
        ours=from_columns,
        peer=_REACH,
        ratio=from_columns / _REACH,
        reach=1.0,
        missed=tuple(missed),
        not_measured=("the start of Spark", "claims that need a direct link"),
        figures={
            "records": count,
            "load average": os.getloadavg()[0],
            "records/s": {
                "fsm judge, of its processor time": alone,
                "Spark from JSON Lines": from_lines,
                "Spark from Parquet": from_columns,
                "Spark from Parquet, one core": by_cores[1],
            },
            "gain by cores": gain,
        },
    ).tell(as_json=as_json)


@contextmanager
def _on_cores(count: int) -> Iterator[None]:
    """Let processes that are started inside use so many cores, Java's own threads included."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _by_spark(session: SparkSession, place: Path, count: int, rounds: int) -> float:
    asked = Question(traces=(str(place),))
    return statistics.median(
        _rate(count, lambda: validate(session, asked).verdict, time.perf_counter)
        for _ in range(rounds)
    )


def _rate(count: int, judge: Callable[[], Verdict], clock: Callable[[], float]) -> float:
    begun = clock()
    verdict = judge()
    taken = clock() - begun
    if verdict is not Verdict.CONFORMANT:
        raise click.ClickException(f"the trace is {verdict}")
    return count / taken


def _alone(place: Path) -> Verdict:
    judged = judge_folders(folders_of(parts_in([place])))
    return combined([one for folder in judged for one in folder.processes]).verdict


def write_runtime(directory: Path, node: str, records: int) -> int:
    """Write the trace of a runtime; return how many records it has."""
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
    """Yield what a runtime records of requests from one hyperty to another."""
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
    """Yield the records of a request and its answer."""
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


if __name__ == "__main__":
    main()
