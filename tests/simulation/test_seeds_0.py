"""Seeds 0 to 49: every run keeps every rule."""

import pytest

from tests.simulation.judging import CHUNK, broken_by

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("first", range(0, 50, CHUNK))
def test_runs_of_these_seeds_keep_every_rule(first):
    assert broken_by(range(first, first + CHUNK)) == {}
