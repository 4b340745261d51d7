"""Seeds 100 to 149: every run keeps every rule."""

import pytest

from tests.simulation.judging import CHUNK, broken_by

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("first", range(100, 150, CHUNK))
def test_runs_of_these_seeds_keep_every_rule(first):
    assert broken_by(range(first, first + CHUNK)) == {}
