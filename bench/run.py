"""Run every benchmark: what it compares, and whether it reaches its number."""

import os
import platform
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Final

import click
import orjson

from bench.verdict import SCHEMA

RESULTS: Final = Path(__file__).with_name("results.md")
"""Where the figures of a run of all benchmarks are kept."""

BENCHES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "tell": (),
        "calls": (),
        "runtime.local": (),
        "runtime.noisy_neighbour": ("--requests", "400"),
        "runtime.counting": (),
        "runtime.paths": ("--requests", "256", "--rounds", "2"),
        "runtime.links": (),
        "monitor": (),
        "node.policy": (),
        "node.routed": ("--messages", "10000"),
        "node.crossing": ("--messages", "8000", "--rounds", "3"),
        "node.processes": ("--messages", "40000", "--rounds", "2"),
        "node.latency": ("--messages", "200"),
        "node.brokers": (),
        "node.growing_node": ("--most-addresses", "100000", "--most-records", "100000"),
        "node.load": ("--seconds", "6"),
        "node.slowloris": ("--seconds", "5"),
        "node.slow_reader": ("--seconds", "14", "--rounds", "1"),
        "node.slow_crowd": ("--seconds", "14"),
        "node.burst": (),
        "node.dashboard": ("--seconds", "3", "--rounds", "2"),
        "node.data_objects": ("--rounds", "3"),
        "node.login": (),
        "engine.clients": ("--messages", "32768", "--rounds", "3"),
        "runtime.two_domains": (),
        "product": (),
        "judge": ("--rounds", "1"),
        "machines": ("--rounds", "2"),
        "peers": (),
        "growth": ("--times", "5", "--lopsided", "2"),
        "command": ("--rounds", "1"),
        "small_files": ("--processes", "3000"),
        "runtime.hostile_hyperty": ("--rounds", "1"),
        "runtime.hostile_sandbox": ("--rounds", "1"),
    }
)
"""Modules below this folder, with the options they are run with here: some take minutes at
their usual sizes. Each takes `--json`, prints one `bench.verdict.Verdict`, and exits with 0 if it
reaches its numbers, if there are any, with 1 if not."""

SMALL: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "tell": ("--messages", "2000", "--rounds", "1"),
        "calls": ("--rounds", "20"),
        "runtime.local": ("--requests", "256", "--rounds", "1"),
        "runtime.noisy_neighbour": ("--requests", "50", "--rounds", "1", "--noise", "flooding"),
        "runtime.counting": (),
        "monitor": ("--requests", "256", "--rounds", "1"),
        "runtime.paths": ("--requests", "32", "--rounds", "1", "--kind", "unix"),
        "runtime.links": ("--trips", "100", "--rounds", "1", "--kind", "unix"),
        "node.policy": ("--messages", "200", "--rounds", "1"),
        "node.routed": ("--messages", "400", "--rounds", "1"),
        "node.crossing": ("--messages", "400", "--rounds", "1"),
        "node.processes": ("--messages", "400", "--rounds", "1", "--sessions", "40"),
        "node.brokers": ("--messages", "400", "--rounds", "1"),
        "node.latency": ("--messages", "40", "--rounds", "1"),
        "node.growing_node": (
            "--most-sessions",
            "100",
            "--most-addresses",
            "1000",
            "--most-records",
            "10000",
            "--messages",
            "400",
        ),
        "node.load": ("--idle", "40", "--active", "10", "--seconds", "1"),
        "node.slowloris": ("--attackers", "40", "--seconds", "1"),
        "node.slow_reader": ("--peers", "4", "--rate", "200", "--seconds", "14", "--rounds", "1"),
        "node.slow_crowd": ("--size", "20", "--seconds", "14"),
        "node.burst": ("--subscribers", "50", "--updates", "10"),
        "node.dashboard": ("--size", "40", "--seconds", "1", "--rounds", "1"),
        "node.data_objects": ("--changes", "20", "--observers", "20", "--rounds", "2"),
        "node.login": (),
        "engine.clients": ("--messages", "512", "--rounds", "1"),
        "runtime.two_domains": ("--requests", "20"),
        "product": ("session",),
        "judge": ("--records", "2000", "--processes", "1", "--rounds", "1"),
        "machines": ("--records", "2000", "--processes", "1", "--rounds", "1"),
        "peers": ("--records", "2000"),
        "growth": ("--records", "2000", "--times", "2", "--lopsided", "2"),
        "command": ("--records", "2000", "--rounds", "1"),
        "small_files": ("--processes", "20"),
        "runtime.hostile_hyperty": ("--rounds", "1", "--how", "spin"),
        "runtime.hostile_sandbox": ("--rounds", "1", "--how", "spin"),
    }
)
"""Options that make each as small as it can be: it shows that it runs, its figures mean little."""

_LOGGED: Final = 50
"""Lines of the log of a bench that are shown when it fails."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object per benchmark and line.")
@click.option("--small", "is_small", is_flag=True, help="Smallest sizes: do they all run?")
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHES)))
def main(names: tuple[str, ...], *, as_json: bool, is_small: bool) -> None:
    """Run the benchmarks NAMES, or all; exit 1 if one fails or misses its number.

    A run of all at their usual sizes writes its figures to `bench/results.md`, too.
    """
    sizes = SMALL if is_small else BENCHES
    is_reached, lines, begun = True, [], time.monotonic()
    for name in names or BENCHES:
        line, code = _run(name, *sizes[name])
        is_reached = is_reached and code == 0
        lines.append(line)
        click.echo(line if as_json else _row(line))
    if not (names or is_small):
        RESULTS.write_text(results(lines, time.monotonic() - begun))
    sys.exit(0 if is_reached else 1)


def results(lines: Iterable[str], seconds: float) -> str:
    """Return the page of the figures of benchmarks.

    Args:
        lines: The line of JSON of each.
        seconds: How long all of them took.
    """
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load at the end {load}"
    machine += f", {seconds / 60:.1f} minutes"
    head = ["| benchmark | compared | figures | ratio | to reach | |", "|---|---|---|---|---|---|"]
    return "\n".join(["# Results of `make bench`", "", machine, "", *head, *map(_cells, lines), ""])


def _cells(line: str) -> str:
    one = orjson.loads(line)
    figures = "" if one["ours"] is None else f"{one['ours']:,.2f} / {one['peer']:,.2f}"
    ratio, reach = ("" if x is None else f"{x:.2f}x" for x in (one["ratio"], one["reach"]))
    missed = "<br>".join(f"missed: {why}" for why in one["missed"]) or "reached"
    cells = (one["bench"], one.get("what", ""), figures, ratio, reach, missed)
    return f"| {' | '.join(cells)} |"


def _run(name: str, *options: str) -> tuple[str, int]:
    """Run one in a process of its own: none warms up or slows down another.

    What it logs is shown only if it fails: some let hyperties fail by the thousand.
    """
    command = [sys.executable, "-m", f"bench.{name}", "--json", *options]
    with TemporaryFile("w+") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, check=False)  # noqa: S603  our own module
        line = done.stdout.strip()
        if not line:
            log.seek(0)
            sys.stderr.writelines(deque(log, maxlen=_LOGGED))
    return line or _failed(name, done.returncode), done.returncode


def _failed(name: str, code: int) -> str:
    """Return the line of a benchmark that printed none; its error is on stderr."""
    why = f"it ended with {code} and no figures"
    none = dict.fromkeys(("ours", "peer", "ratio", "reach"))
    return orjson.dumps(
        {"schema": SCHEMA, "bench": name, **none, "met": False, "missed": [why]}
    ).decode()


def _row(line: str) -> str:
    result = orjson.loads(line)
    ratio = "" if result["ratio"] is None else f"{result['ratio']:.2f}x"
    reach = "" if result["reach"] is None else f"reach {result['reach']:.2f}x"
    verdict = "reached" if result["met"] else "MISSED"
    row = f"{result['bench']:<15} {ratio:>9}  {reach:<12} {verdict:<8}{result.get('what', '')}"
    return "\n".join([row, *(f"{'':<16}missed: {one}" for one in result["missed"])])


if __name__ == "__main__":
    main()
