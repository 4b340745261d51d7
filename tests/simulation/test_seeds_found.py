"""Seeds that once found a fault: answers that overtook others, a copy of a copy, a late frame.

`found` holds plans that were made small from such seeds.
"""

from pathlib import Path

import pytest

from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.plan import read_plan
from tests.simulation.world.simulator import run

pytestmark = pytest.mark.timeout(240)


SHORT = 51528, 55262
LONG = 40097, 53105
LONGEST = 51264, 52110, 53226, 55405


@pytest.mark.parametrize(
    "seed",
    [
        *SHORT,
        *(pytest.param(seed, marks=pytest.mark.long) for seed in LONG),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in LONGEST),
    ],
)
def test_a_seed_that_found_a_defect_passes(seed):
    """I-B7, I-P21, I-R9."""
    assert run(plan_of(seed, of_processes=False)).breaches == ()


@pytest.mark.parametrize("seed", [60212])
def test_a_seed_with_process_faults_that_found_a_defect_passes(seed):
    """I-B7."""
    assert run(plan_of(seed)).breaches == ()


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).with_name("found").glob("*.json")), ids=lambda path: path.stem
)
def test_a_plan_that_found_a_defect_passes(path):
    """I-B7, I-D4, I-P16, I-P20, I-R9, I-T7, I-T12."""
    assert run(read_plan(path.read_text())).breaches == ()
