"""The smallest change that makes one value another (SYN-13, SYN-14, SYN-15)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fsm.sync.value.value import apply_change, same
from fsm.sync.value.writes import smallest_change
from tests.support.json_values import OBJECTS, edited_pairs, least, over_the_wire, weight
from transports.bodies import write_body

URL = "comm://a.ex/1"
ARRAY = {"attributeType": "array"}


def reported(old, new):
    """What goes over the wire, or nothing."""
    change = smallest_change(URL, old, new)
    written = None if change is None else write_body(change)
    return {key: each for key, each in (written or {}).items() if key != "resource"}


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ({"a": 1}, {"a": 1.0}, {}),
        ({"a": 1}, {"a": True}, {"attribute": "a", "value": True}),
        ({}, {"a": {"b": 1}}, {"attribute": "a", "value": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {}}, {"attribute": "a.b"}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"attribute": "a.b", "value": 2}),
        (
            {"a": {"b": 1, "c": 1}, "x": 1},
            {"a": {"b": 2, "c": 2}, "x": 1},
            {"attribute": "a", "value": {"b": 2, "c": 2}},
        ),
        ({"a": 1, "b": 1}, {"a": 2, "b": 2}, {"value": {"a": 2, "b": 2}}),
        ({"a": [{"b": 1}, 2]}, {"a": [{"b": 3}, 2]}, {"attribute": "a.0.b", "value": 3}),
        ({"a": [1]}, {"a": [1, 2, 3]}, {"attribute": "a", "value": [2, 3], "operation": "add"}),
        ({"a": [1, None]}, {"a": [1]}, {"attribute": "a.1"}),
        ({"a": [1, 2]}, {"a": [2]}, {"attribute": "a", "value": [1], "operation": "remove"}),
        ({"a": [2, 1, 2]}, {"a": [2, 1]}, {"attribute": "a.2"}),
        ({"a": [1, 2, 3]}, {"a": []}, {"attribute": "a", "value": []}),
        ({"a": ["long" * 9]}, {"a": []}, {"attribute": "a.0"}),
        ({"a": [1, 2]}, {"a": [2, 1]}, {"attribute": "a", "value": [2, 1]}),
        ({"a": [1, 2]}, {"a": [0, 1, 2]}, {"attribute": "a", "value": [0, 1, 2]}),
        # What a path cannot name, or a change cannot say, is set with what holds it.
        ({"a": {"b.c": 1, "d": 2}}, {"a": {"b.c": 2, "d": 2}}, {"attribute": "a", "value": ...}),
        ({"a": {"": 1, "d": 2}}, {"a": {"": 2, "d": 2}}, {"attribute": "a", "value": ...}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"attribute": "a", "value": ...}),
        ({"a": [1, 2]}, {"a": [1, None]}, {"attribute": "a", "value": ...}),
        ({"b.c": 1, "d": 2}, {"b.c": 2, "d": 2}, {"value": ...}),
        ({"b.c": 1, "d": 2}, {"d": 2}, {"value": ...}),
        ({"b": 1}, {"b": None}, {"value": ...}),
        ({"a": [1]}, {"a": [1, None]}, {"attribute": "a", "value": [None], "operation": "add"}),
    ],
)
def test_the_change_is(old, new, change):
    if change.get("value") is ...:
        change["value"] = new[change["attribute"]] if "attribute" in change else new
    if "operation" in change:
        change |= ARRAY
    assert reported(old, new) == change


@given(edited_pairs())
def test_after_the_change_the_old_value_is_the_new_one(pair):
    old, new = pair
    change = smallest_change(URL, old, new)
    assert same(apply_change(old, over_the_wire(change)) if change else old, new)


@given(OBJECTS, OBJECTS)
def test_any_value_can_be_made_any_other(old, new):
    change = smallest_change(URL, old, new)
    assert same(apply_change(old, over_the_wire(change)) if change else old, new)


@given(edited_pairs())
@example(({"a": [-1, None, "", -1]}, {"a": [-1, -1]}))
def test_the_change_is_no_bigger_than_any_setting_that_would_do(pair):
    old, new = pair
    change = smallest_change(URL, old, new)
    if change is not None:
        assert weight(change.value) <= least(old, new)


@given(st.lists(st.booleans() | st.integers(0, 2), max_size=6), st.data())
def test_a_removed_list_element_is_removed_alone(elements, data):
    """Of elements that are equal, or in Python equal only, no other goes with it."""
    old = {"a": elements}
    gone = data.draw(st.sets(st.integers(0, max(0, len(elements) - 1))))
    new = {"a": [one for number, one in enumerate(elements) if number not in gone]}
    change = smallest_change(URL, old, new)
    assert same(apply_change(old, change) if change else old, new)
