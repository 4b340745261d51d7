"""The simulation can fail: each defect put into the product is found by the rule that should."""

import pytest

from tests.simulation.judgement.defects import DEFECTS, defective
from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.shrinking import shrunk
from tests.simulation.world.simulator import run

pytestmark = pytest.mark.timeout(240)


def run_with(name, plan):
    trial = DEFECTS[name]
    with defective(trial.defect, *trial.also):
        return run(plan)


@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_is_found(name):
    assert DEFECTS[name].rule in run_with(name, DEFECTS[name].plan).broken


@pytest.mark.parametrize(
    "name", [pytest.param("messages overtake", marks=pytest.mark.soak), "never dials again"]
)
def test_a_run_that_found_a_defect_shrinks_to_what_shows_it(name):
    rule, seed = DEFECTS[name].rule, DEFECTS[name].seed

    small = shrunk(plan_of(seed), lambda plan: rule in run_with(name, plan).broken)

    assert len(small.acts) <= 5
    assert len(small.faults) <= 2
    assert len(small.runtimes) == 2
    assert rule not in run(small).broken
