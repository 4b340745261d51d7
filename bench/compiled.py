"""The compiled wheel beside the sources: CPU of a node for a message, and messages of a runtime.

The wheel is built first, which takes a minute of CPU and a C compiler. Both are measured by
turns: a node as `bench.node.routed` does, a runtime as `bench.runtime.local` does.
"""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

import click
import orjson
import trio

from bench.node.routed import REACH, measure
from bench.verdict import Verdict

__all__ = ["PACKAGES", "ROOT", "build_wheel"]

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("actors", "fsm", "spark", "specs", "transports", "web")
_FILES: Final = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
_SHARE: Final = 0.85
"""Of the time of the sources, for frames of several messages: less gain is not worth a compiler."""


def build_wheel(folder: Path) -> Path:
    """Build the compiled wheel of a copy of the sources.

    Args:
        folder: Where to work; nothing may be in it.
    """
    sources = folder / "src"
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "node_modules", "*.so")
        shutil.copytree(ROOT / package, sources / package, ignore=ignored)
    for name in _FILES:
        shutil.copy(ROOT / name, sources / name)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(sources))
    environ = os.environ | {"PROTOFLY_COMPILE": "1"}
    subprocess.run((*pip, *options), env=environ, stdout=sys.stderr, check=True)  # noqa: S603 - our own sources
    (wheel,) = folder.glob("protofly-*.whl")
    return wheel


def _local(place: Path, requests: int, rounds: int) -> list[list[float]]:
    """Return messages per second of CPU in each round: of the compiled, of the sources."""
    taken: list[list[float]] = [[], []]
    options = ("--json", "--rounds", "1", "--requests", str(requests))
    command = (sys.executable, "-m", "bench.runtime.local", *options)
    for _ in range(rounds):
        for code, rates in zip((place, ROOT), taken, strict=True):
            environ = os.environ | {"PYTHONPATH": f"{code}:{ROOT}"}
            done = subprocess.run(  # noqa: S603 - our own bench
                command, cwd=code, env=environ, stdout=subprocess.PIPE, check=False
            )
            rates.append(orjson.loads(done.stdout)["ours"])
    return taken


@click.command()
@click.option("--messages", default=20_000, show_default=True, help="Messages of a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(*, messages: int, rounds: int, as_json: bool) -> None:
    """Measure what compiled modules save."""
    gc.disable()  # a pause of ours would be waited for by the node
    shares: dict[str, float] = {}
    cpu: dict[str, tuple[float, float]] = {}
    with TemporaryDirectory() as folder:
        place = Path(folder, "place")
        with ZipFile(build_wheel(Path(folder))) as packed:
            packed.extractall(place)
        for work in REACH:
            taken = trio.run(measure, work, messages, rounds, place)
            ours, others = ([one.cpu for one in taken[name]] for name in ("before", "node"))
            cpu[work] = (median(ours), median(others))
            shares[work] = median(a / b for a, b in zip(ours, others, strict=True))
        rates = _local(place, messages, rounds)
    work = next(reversed(REACH))
    missed = (f"{work}: {shares[work]:.2f} of the sources' time, reach {_SHARE:g}",)
    gain = median(a / b for a, b in zip(*rates, strict=True))
    Verdict(
        bench="compiled",
        what="us of a node's CPU for a message of 100 B, several in a frame: compiled / sources",
        ours=cpu[work][0],
        peer=cpu[work][1],
        ratio=shares[work],
        reach=_SHARE,
        missed=missed if shares[work] > _SHARE else (),
        not_measured=("start", "memory"),
        figures={"cpu": cpu, "shares": shares, "local_rates_in_those_of_sources": round(gain, 3)},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
