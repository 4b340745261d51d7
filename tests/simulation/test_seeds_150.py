"""Seeds 150 to 199: every run keeps every rule."""

import pytest

from tests.simulation.judging import CHUNK, broken_by

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("first", range(150, 200, CHUNK))
def test_runs_of_these_seeds_keep_every_rule(first):
    assert broken_by(range(first, first + CHUNK)) == {}
