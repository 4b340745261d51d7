"""How long the composition check takes: states and seconds of each composition.

    python -m bench.product [--json] [COMPOSITION...]

The seconds are of the processor, so that a busy machine tells the same.
"""

import json
import time
from typing import Final

import click

from fsm.catalogue import MACHINES
from fsm.compositions.catalogue import COMPOSITIONS
from fsm.product.composition import Plan
from fsm.product.explorer import Exploration, explore

__all__ = ["main"]

_REACH: Final = 60.0
"""Seconds in which the default compositions must be explored."""

_STATES: Final = 100_000
"""States that they must have together at least."""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(COMPOSITIONS)))
@click.option("--json", "wants_json", is_flag=True, help="One JSON object per line.")
@click.pass_context
def main(ctx: click.Context, names: tuple[str, ...], *, wants_json: bool) -> None:
    """Measure how long compositions take, the default ones if none is named."""
    default = [plan for plan in COMPOSITIONS.values() if plan.is_default]
    taken = [_taken(COMPOSITIONS[name]) for name in names] or [_taken(plan) for plan in default]
    for found, seconds in taken:
        _tell(found, seconds, wants_json=wants_json)
    states = sum(found.states for found, _ in taken)
    whole = sum(seconds for _, seconds in taken)
    if not wants_json:
        print(f"{'all':16} {states:9} states {'':21} {whole:7.2f} s")
    is_well = all(found.holds for found, _ in taken)
    ctx.exit(0 if names or (is_well and whole <= _REACH and states >= _STATES) else 1)


def _taken(plan: Plan) -> tuple[Exploration, float]:
    begun = time.process_time()
    found = explore(plan.compose(MACHINES, plan.bounds))
    return found, time.process_time() - begun


def _tell(found: Exploration, seconds: float, *, wants_json: bool) -> None:
    name = found.composition.name
    if wants_json:
        figures = {"states": found.states, "transitions": found.transitions, "seconds": seconds}
        print(json.dumps({"schema": "protofly.product-bench/1", "composition": name, **figures}))
        return
    speed = f"{found.states / max(seconds, 0.001):9.0f} states/s"
    print(f"{name:16} {found.states:9} states {seconds:7.2f} s {speed}")


if __name__ == "__main__":
    main()
