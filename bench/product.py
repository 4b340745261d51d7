"""Duration of the composition check: states and seconds of each composition.

The seconds are of the processor, so that a busy machine gives the same. Each composition is
explored in one process, and there are as many of them as cores.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import attrs
import click

from bench.verdict import Verdict
from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.explorer import explore

_REACH: Final = 120.0
"""Seconds in which the default compositions must be explored: 60 on each of two cores."""

_STATES: Final = 100_000
"""States that they must have together at least."""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(COMPOSITIONS)))
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(names: tuple[str, ...], *, as_json: bool) -> None:
    """Measure how long compositions take, the default ones if none is named."""
    taken = _all_taken(names or list(COMPOSITIONS))
    states = sum(found.states for found in taken.values())
    whole = sum(found.seconds for found in taken.values())
    missed = [f"{name} does not hold" for name, found in taken.items() if not found.holds]
    if not names and whole > _REACH:
        missed.append(f"it took {whole:.0f} s")
    if not names and states < _STATES:
        missed.append(f"{states} states of {_STATES}")
    Verdict(
        bench="product",
        what="seconds of CPU to explore the compositions / those it may take",
        ours=whole,
        peer=_REACH,
        ratio=whole / _REACH,
        reach=None if names else 1.0,
        missed=tuple(missed),
        figures={
            "states": states,
            "compositions": {name: _figures(found) for name, found in taken.items()},
        },
    ).tell(as_json=as_json)


@attrs.frozen
class _Taken:
    states: int
    transitions: int
    seconds: float
    holds: bool


def _all_taken(names: Sequence[str]) -> dict[str, _Taken]:
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(zip(names, pool.map(_taken, names), strict=True))


def _taken(name: str) -> _Taken:
    begun = time.process_time()
    found = explore(COMPOSITIONS[name])
    return _Taken(found.states, found.transitions, time.process_time() - begun, found.holds)


def _figures(found: _Taken) -> dict[str, float]:
    return {
        "states": found.states,
        "transitions": found.transitions,
        "seconds": round(found.seconds, 2),
    }


if __name__ == "__main__":
    main()
