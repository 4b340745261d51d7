"""Seeds that once found a fault: answers that overtook others, a copy of a copy, a late frame."""

import pytest

from tests.simulation.plans.generation import plan_of
from tests.simulation.world.simulator import run

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    "seed",
    [40097, 51264, 51528, 52110, 53105, 53226, 55262, pytest.param(55405, marks=pytest.mark.soak)],
)
def test_what_a_seed_has_found_is_mended(seed):
    """I-B7, I-P21, I-R9."""
    assert run(plan_of(seed, of_processes=False)).breaches == ()


@pytest.mark.parametrize("seed", [60212])
def test_what_a_seed_with_faults_of_processes_has_found_is_mended(seed):
    """I-B7."""
    assert run(plan_of(seed)).breaches == ()
