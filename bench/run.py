"""Run every bench, each in a process of its own: none warms up or slows down another."""

import os
import platform
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import click
import orjson

from bench.report import SCHEMA, Report, table

BENCHES: Final = (
    "calls",
    "runtime.requests",
    "runtime.footprint",
    "runtime.neighbours",
    "node.routed",
    "node.options",
    "node.sessions",
    "node.objects",
    "node.hostile",
    "node.group",
    "judge",
    "explorer",
)
"""Names of the benches: modules below this folder, which print a line of JSON with `--json`."""

RESULTS: Final = Path(__file__).with_name("results.md")
"""File with the figures of the last run of all benches."""

_LOGGED: Final = 50
"""Lines of the log of a bench that are shown when it fails."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object per bench and line.")
@click.option("--small", "is_small", is_flag=True, help="Smallest sizes: do they all run?")
@click.argument("names", nargs=-1, type=click.Choice(BENCHES))
def main(names: tuple[str, ...], *, as_json: bool, is_small: bool) -> None:
    """Run the benches NAMES, or all; exit 1 if one fails.

    A run of all at their usual sizes writes its figures to `bench/results.md`, too.
    """
    reports, begun = [], time.monotonic()
    for name in names or BENCHES:
        report = run(name, *(("--small",) if is_small else ()))
        reports.append(report)
        click.echo(orjson.dumps(report) if as_json else _shown(report))
    if not (names or is_small):
        RESULTS.write_text(page(reports, time.monotonic() - begun))
    sys.exit(any("failed" in report for report in reports))


def run(name: str, *options: str) -> Report:
    """Run a bench, and return its report; show its log only if the bench fails."""
    command = [sys.executable, "-m", f"bench.{name}", "--json", *options]
    with TemporaryFile("w+") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, check=False)  # noqa: S603  our own module
        if not done.returncode:
            return orjson.loads(done.stdout)
        log.seek(0)
        sys.stderr.writelines(deque(log, maxlen=_LOGGED))
    why = f"bench.{name} ended with {done.returncode} and no figures"
    return {"schema": SCHEMA, "bench": f"bench.{name}", "failed": why}


def page(reports: Sequence[Report], seconds: float) -> str:
    """Return the Markdown page with the figures of all benches."""
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load at the end {load}"
    head = f"# Results of `make bench`\n\n{machine}, {seconds / 60:.1f} minutes.\n"
    return "\n".join([head, *(f"```\n{_shown(report)}\n```\n" for report in reports)])


def _shown(report: Report) -> str:
    return report.get("failed") or table(report)


if __name__ == "__main__":
    main()
