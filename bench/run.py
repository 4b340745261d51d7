"""Run every benchmark that is listed: what they reach as one table, then plain figures."""

import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click
import orjson

__all__ = ["BENCHES", "FIGURES"]

BENCHES: Final = (
    "tell", "local", "noisy_neighbour", "counting", "paths", "policy", "load", "slowloris",
    "slow_reader", "slow_crowd", "burst", "data_objects",
)  # fmt: skip
"""Modules of this folder. Each takes `--json`, prints one object with `bench`, `ratio` and
`reach`, and exits 0 if it reaches its number (more may be better, or less)."""

FIGURES: Final = ("login", "two_domains", "product")
"""Modules of this folder that print figures, and say by their status if one is wrong."""

_SHORT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "load": ("--seconds", "10"),
        "slowloris": ("--seconds", "8"),
        "slow_reader": ("--seconds", "14", "--rounds", "1"),
        "slow_crowd": ("--seconds", "14"),
    }
)
"""How those are run here that take minutes at their usual sizes."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object per benchmark and line.")
@click.argument("names", nargs=-1, type=click.Choice([*BENCHES, *FIGURES]))
def main(names: tuple[str, ...], *, as_json: bool) -> None:
    """Run the benchmarks NAMES, or all; exit 1 if one does not reach its number.

    With --json those that only print figures are left out.
    """
    wanted = names or (*BENCHES, *FIGURES)
    is_reached = True
    for name in (one for one in wanted if one in BENCHES):
        line, code = _run(name, "--json", *_SHORT.get(name, ()))
        is_reached = is_reached and code == 0
        print(line if as_json else _row(line, code))
    for name in (one for one in wanted if one in FIGURES and not as_json):
        told, code = _run(name)
        is_reached = is_reached and code == 0
        print(f"\n{name}\n{told}")
    sys.exit(0 if is_reached else 1)


def _run(name: str, *options: str) -> tuple[str, int]:
    """Run one in a process of its own: none warms up or slows down another."""
    command = [sys.executable, "-m", f"bench.{name}", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  our own module
    return done.stdout.strip(), done.returncode


def _row(line: str, code: int) -> str:
    told = orjson.loads(line)
    verdict = "reached" if code == 0 else "MISSED"
    return f"{told['bench']:<12} {told['ratio']:>8.2f}x  reach {told['reach']:>5.2f}x  {verdict}"


if __name__ == "__main__":
    main()
