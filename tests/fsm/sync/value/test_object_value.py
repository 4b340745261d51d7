"""One change of a data object's value: paths, lists, removals (SYN-13, SYN-14, SYN-15, C-35)."""

import pytest

from fsm.sync.value.value import apply_change
from specs.bodies.object import ChangeObject

URL = "comm://a.ex/1"


def change(attribute, value=None, operation=None):
    kind = None if operation is None else "array"
    return ChangeObject(URL, attribute, value, kind, operation)


@pytest.mark.parametrize("name", ["2", "-1", "x", "01x", "", "٣", "9" * 5000])
def test_an_element_that_is_not_there_is_not_changed(name):
    before = {"a": [1, 2]}
    assert apply_change(before, change(f"a.{name}", 7)) == before
    assert apply_change(before, change(f"a.{name}")) == before


def test_true_is_not_one():
    before = {"a": [1, True, 0, False, [1], [True], 1.0]}
    assert apply_change(before, change("a", [True, 0, [1]], "remove"))["a"] == [
        1,
        False,
        [True],
        1.0,
    ]
