"""One change of a data object's value: paths, lists, removals (SYN-13, SYN-14, SYN-15, C-35)."""

import pytest
from hypothesis import given

from fsm.sync.value.value import apply_change, same, without
from specs.bodies.object import ChangeObject
from tests.support.json_values import LISTS

URL = "comm://a.ex/1"
LIST = {"items": [{"done": False}, {"done": False}], "0": {"1": 2}, "n": None}


def change(attribute, value=None, operation=None):
    kind = None if operation is None else "array"
    return ChangeObject(URL, attribute, value, kind, operation)


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ({"a": [1, 2]}, change("a.0", 5), {"a": [5, 2]}),
        ({"a": [1, 2]}, change("a.1"), {"a": [1]}),
        ({"a": [{"b": 1}]}, change("a.0.b", 2), {"a": [{"b": 2}]}),
        ({"a": [{"b": 1}]}, change("a.0.c.d", 2), {"a": [{"b": 1, "c": {"d": 2}}]}),
        ({"a": [[1], [2]]}, change("a.1", [3], "add"), {"a": [[1], [2, 3]]}),
        ({"a": [[1], [2]]}, change("a.1", [2], "remove"), {"a": [[1], []]}),
        ({"a": {"0": 1}}, change("a.0", 2), {"a": {"0": 2}}),
        ({"a": 5}, change("a.0", 2), {"a": {"0": 2}}),
    ],
)
def test_a_number_in_a_path_is_an_element_of_a_list_and_a_key_of_an_object(before, edit, after):
    assert apply_change(before, edit) == after


@pytest.mark.parametrize("name", ["2", "-1", "x", "01x", "", "٣", "9" * 5000])
def test_an_element_that_is_not_there_is_not_changed(name):
    before = {"a": [1, 2]}
    assert apply_change(before, change(f"a.{name}", 7)) == before
    assert apply_change(before, change(f"a.{name}")) == before


def test_untouched_parts_are_shared():
    before = {"a": {"deep": []}, "b": {"c": 1}}
    assert apply_change(before, change("b.c", 2))["a"] is before["a"]
    assert before["b"] == {"c": 1}


def test_null_is_something_that_stands_there():
    assert apply_change({"a": None}, change("a.b")) == {"a": None}
    assert apply_change({"a": None}, change("a", [1], "remove")) == {"a": None}
    assert apply_change({"a": [None, 1]}, change("a", [None], "remove")) == {"a": [1]}


def test_true_is_not_one():
    before = {"a": [1, True, 0, False, [1], [True], 1.0]}
    assert apply_change(before, change("a", [True, 0, [1]], "remove"))["a"] == [
        1,
        False,
        [True],
        1.0,
    ]


def test_without_a_path_the_value_is_the_whole():
    assert apply_change({"a": 1}, change(None, {"b": 2})) == {"b": 2}
    assert apply_change({"a": 1}, change(None, [2])) == {"a": 1}
    assert apply_change({"a": 1}, change(None)) == {"a": 1}


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ("1", 1, False),
    ],
)
def test_values_are_the_same_as_json_is(one, other, are_same):
    assert same(one, other) is are_same
    assert same(other, one) is are_same


@given(LISTS, LISTS)
def test_equal_elements_are_all_removed(elements, gone):
    elements = [*elements, *gone, 1.0, [1.0], [True], {"a": 1, "b": [0.0]}]
    gone = [*gone, [1], {"b": [0], "a": 1.0}]
    left = [one for one in elements if not any(same(one, each) for each in gone)]
    assert repr(without(elements, gone)) == repr(left)


@pytest.mark.timeout(15)
def test_removing_many_elements_of_many_takes_no_time():
    """One by one they would be compared 400 million times."""
    many = [[number, {"n": number}] for number in range(20_000)]
    kept = [[number] for number in range(20_000)]
    assert without([*many, *kept], many[::-1]) == kept
