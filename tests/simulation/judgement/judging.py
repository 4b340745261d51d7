"""Seeds by the handful, and the report of each that fails."""

from collections.abc import Callable, Iterable
from typing import Final

from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.plan import Plan
from tests.simulation.world.simulator import run

CHUNK: Final = 5
"""Seeds in one test."""

_REPORTED: Final = 5
"""Breaches of one run that are reported."""


def broken_by(seeds: Iterable[int], made: Callable[[int], Plan] = plan_of) -> dict[int, list[str]]:
    """Run seeds; return what was broken, by seed.

    To make a failing one small: `python -m tests.simulation --first SEED --seeds 1`.
    """
    outcomes = {seed: run(made(seed)) for seed in seeds}
    return {
        seed: [f"{breach.rule}: {breach.what}" for breach in outcome.breaches[:_REPORTED]]
        for seed, outcome in outcomes.items()
        if outcome.breaches
    }
