"""The first seeds: every run keeps every rule; `make soak` runs thousands of others."""

import pytest

from tests.simulation.judgement.judging import CHUNK, broken_by

pytestmark = pytest.mark.timeout(240)

SEEDS = 10


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_runs_of_these_seeds_keep_every_rule(first):
    assert broken_by(range(first, first + CHUNK)) == {}
