"""The command `python -m spark`: data on stdout, everything else on stderr."""

import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, final

import click

from spark.errors import SparkMissingError, TraceMissingError
from specs.errors import ProtoflyError

if TYPE_CHECKING:
    from spark.run import Outcome

__all__ = ["Exit", "main"]


@final
class Exit(IntEnum):
    """What the exit status says."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    NO_TRACE = 3


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Judge traces by the declared machines, with Spark."""


@main.command()
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True)
@click.option(
    "--report",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write report.html, summary.json, violations.parquet and drawings there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the verdict last.")
@click.option("--master", metavar="URL", help="Spark master [default: all cores here].")
@click.option(
    "--allow-quarantine", is_flag=True, help="Lines that cannot be read leave the verdict alone."
)
def validate(
    *,
    traces: tuple[str, ...],
    report: Path | None,
    as_json: bool,
    master: str | None,
    allow_quarantine: bool,
) -> None:
    """Judge the traces at TRACE...: directories of runs, runs, nodes of a run, or files.

    Only the steps of machines are judged; which claims are not checked is said with the
    verdict, and `python -m fsm judge` checks them. Exits with 0 if the steps are
    conformant, with 1 if they are not or the traces do not tell all, with 3 if there is
    no trace.
    """
    try:
        _check_there(traces)
        outcome = _carry_out(traces, report, master, allow_quarantine=allow_quarantine)
    except TraceMissingError as exc:
        _fail(exc, Exit.NO_TRACE)
    except ProtoflyError as exc:
        _fail(exc, Exit.NOT_CONFORMANT)
    for line in outcome.as_json() if as_json else outcome.as_text():
        print(line)
    sys.exit(Exit.CONFORMANT if outcome.is_conformant else Exit.NOT_CONFORMANT)


def _check_there(traces: tuple[str, ...]) -> None:
    """Find out about a wrong local path before Spark takes its seconds to start."""
    for trace in traces:
        is_local = "://" not in trace and not trace.startswith("file:")
        if is_local and not set(trace) & set("*?[{") and not Path(trace).exists():
            raise TraceMissingError(trace, "there is nothing")


def _carry_out(
    traces: tuple[str, ...], report: Path | None, master: str | None, *, allow_quarantine: bool
) -> "Outcome":
    try:
        # Spark is an extra and takes a second to import: only those who judge pay for it.
        from spark.run import Order, Quarantine, run  # noqa: PLC0415
    except ImportError as exc:
        raise SparkMissingError(f"{exc}: run pip install 'protofly[spark]'") from exc
    quarantine = Quarantine.ALLOWED if allow_quarantine else Quarantine.COUNTS
    return run(Order(traces=traces, report=report, master=master, quarantine=quarantine))


def _fail(error: ProtoflyError, code: Exit) -> NoReturn:
    print(f"Error: {error}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main(prog_name="python -m spark")
