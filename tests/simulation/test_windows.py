"""Objects that keep a window of children: every run keeps every rule."""

import pytest

from tests.simulation.judgement.judging import CHUNK, broken_by
from tests.simulation.plans.windows import window_plan_of

pytestmark = pytest.mark.timeout(240)

SEEDS = 5


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_runs_of_these_seeds_keep_every_rule(first):
    """SYN-24, I-D4, I-D10, I-T7: among them a report of removals that waited for the disk."""
    assert broken_by(range(first, first + CHUNK), window_plan_of) == {}
