"""Duration of the composition check: states and seconds of each composition.

The seconds are of the processor, so that a busy machine gives the same.
"""

import time
from typing import Final

import click

from bench.verdict import Verdict
from fsm.product.composition import Plan
from fsm.product.compositions.catalogue import COMPOSITIONS
from fsm.product.explorer import Exploration, explore

__all__ = ["main"]

_REACH: Final = 120.0
"""Seconds in which the default compositions must be explored: 60 on each of two cores."""

_STATES: Final = 100_000
"""States that they must have together at least."""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(COMPOSITIONS)))
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(names: tuple[str, ...], *, as_json: bool) -> None:
    """Measure how long compositions take, the default ones if none is named."""
    default = list(COMPOSITIONS)
    taken = [_taken(COMPOSITIONS[name]) for name in names or default]
    states = sum(found.states for found, _ in taken)
    whole = sum(seconds for _, seconds in taken)
    missed = [f"{found.composition.name} does not hold" for found, _ in taken if not found.holds]
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
            "compositions": {
                found.composition.name: _figures(found, took) for found, took in taken
            },
        },
    ).tell(as_json=as_json)


def _taken(plan: Plan) -> tuple[Exploration, float]:
    begun = time.process_time()
    found = explore(plan.compose(plan.bounds))
    return found, time.process_time() - begun


def _figures(found: Exploration, seconds: float) -> dict[str, float]:
    return {
        "states": found.states,
        "transitions": found.transitions,
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    main()
