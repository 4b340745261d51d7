"""Seconds of the whole command that judges a trace as large as that of the demonstration."""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from bench.judge import write_runtime
from bench.verdict import Verdict as Told

_REACH: Final = 12.0
"""Seconds, the start of Java and Spark included, two cores."""

_PROCESSES: Final = 3


@click.command()
@click.option("--records", default=73_000, help="Of three processes together.")
@click.option("--rounds", default=3)
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, records: int, rounds: int, as_json: bool) -> None:
    """Measure the fastest of some rounds."""
    with TemporaryDirectory() as directory:
        count = sum(
            write_runtime(Path(directory), f"ra{one}", records // _PROCESSES)
            for one in range(_PROCESSES)
        )
        ours = min(_seconds("spark", "validate", directory) for _ in range(rounds))
        alone = min(_seconds("fsm", "judge", directory) for _ in range(rounds))
    Told(
        bench="command",
        what="seconds of `python -m spark validate` / those allowed",
        ours=ours,
        peer=_REACH,
        ratio=ours / _REACH,
        reach=1.0,
        missed=() if ours <= _REACH else (f"{ours:.1f} of {_REACH:.0f} s",),
        figures={
            "records": count,
            "load average": os.getloadavg()[0],
            "seconds of `python -m fsm judge`": alone,
        },
    ).tell(as_json=as_json)


def _seconds(package: str, command: str, directory: str) -> float:
    begun = time.perf_counter()
    done = subprocess.run(  # noqa: S603  our own module
        [sys.executable, "-m", package, command, directory],
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise click.ClickException(f"{package} {command} ended with {done.returncode}")
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
