"""How long Spark takes to judge many processes with one small file each."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from bench.judge import write_runtime
from bench.verdict import Verdict as Told
from fsm.judge.trace_line import Verdict
from spark.run import Order, Question, run

_REACH: Final = 60.0
"""Seconds for 5,000 processes, the start of Spark included, two cores."""


@click.command()
@click.option("--processes", default=5_000, help="Each with one file.")
@click.option("--cores", default=2)
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, processes: int, cores: int, as_json: bool) -> None:
    """Measure the seconds of one judgement."""
    with TemporaryDirectory() as directory:
        count = sum(write_runtime(Path(directory), f"ra{one}", 12) for one in range(processes))
        asked = Question(traces=(directory,))
        begun = time.perf_counter()
        outcome = run(Order(question=asked, settings={"spark.master": f"local[{cores}]"}))
        taken = time.perf_counter() - begun
    if outcome.findings.verdict is not Verdict.CONFORMANT:
        raise click.ClickException(f"the trace is {outcome.findings.verdict}")
    Told(
        bench="small_files",
        what="seconds by Spark for all processes / those allowed",
        ours=taken,
        peer=_REACH,
        ratio=taken / _REACH,
        reach=1.0,
        missed=() if taken <= _REACH else (f"{taken:.1f} of {_REACH:.0f} s",),
        figures={"processes": processes, "records": count},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
