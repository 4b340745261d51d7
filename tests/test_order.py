"""The order in which workers begin tests."""

from itertools import pairwise
from types import SimpleNamespace

import attrs
import pytest

from tests.support.order import in_order, spread


@attrs.frozen
class Item:
    path: str
    number: int
    group: str | None = None

    @property
    def nodeid(self):
        return f"{self.path}::test_{self.number}"

    def get_closest_marker(self, name):
        assert name == "xdist_group"
        return SimpleNamespace(args=(self.group,)) if self.group else None


def file_of(count, path, group=None):
    return [Item(path, number, group) for number in range(count)]


ITEMS = [
    *file_of(40, "tests/actors/kit/test_a.py"),
    *file_of(8, "tests/system/test_slow.py"),
    *file_of(8, "tests/web/test_slower.py"),
    *file_of(5, "tests/system/test_shared.py", "shared"),
    *file_of(3, "tests/spark/test_b.py", "spark"),
]


def test_no_test_is_lost_and_each_run_has_the_same_order():
    ordered = in_order(ITEMS)
    assert sorted(ordered, key=ITEMS.index) == ITEMS
    assert ordered == in_order(list(ITEMS))


def test_what_takes_longest_comes_first_and_the_end_is_for_short_tests():
    paths = [one.path for one in in_order(ITEMS)]
    assert paths[:3] == ["tests/spark/test_b.py"] * 3
    assert set(paths[-11:]) == {"tests/actors/kit/test_a.py"}


@pytest.mark.parametrize("path", ["tests/system/test_slow.py", "tests/web/test_slower.py"])
def test_tests_of_a_file_that_wait_are_far_from_each_other_and_keep_their_order(path):
    places = [(place, one.number) for place, one in spread(ITEMS) if one.path == path]
    assert places == sorted(places)
    steps = [after - before for (before, _), (after, _) in pairwise(places)]
    assert steps == pytest.approx([1 / 8] * 7)
    assert 0 <= places[0][0] < 1 / 8


def test_the_tests_of_a_group_have_one_place():
    places = {place for place, one in spread(ITEMS) if one.group == "shared"}
    assert len(places) == 1
