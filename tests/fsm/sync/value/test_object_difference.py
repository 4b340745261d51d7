"""What has changed between two values of a data object (SYN-13..SYN-15, I-D3)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fsm.sync.value.value import apply_change, describe_change, difference, same
from specs.bodies.object import Change
from specs.jsonvalue import frozen_object

NAMES = st.sampled_from(["a", "b", "0", "1", "x.y", ""])
LEAVES = st.sampled_from([None, True, False, 0, 1, 2.5, "text"])
VALUES = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=3) | st.dictionaries(NAMES, part, max_size=3)
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
PATHS = st.lists(st.sampled_from(["a", "b", "0", "1", "7"]), min_size=1, max_size=3).map(".".join)
SETS = st.builds(lambda path, value: Change(2, path, value), PATHS, VALUES)
EDITS = st.builds(
    lambda path, value, how: Change(2, path, value, "array", how),
    PATHS,
    st.lists(LEAVES, max_size=2),
    st.sampled_from(["add", "remove"]),
)
WHOLE = st.builds(lambda value: Change(2, None, value), OBJECTS)


@given(OBJECTS, SETS | EDITS | WHOLE)
@example({"a": None}, Change(2, "a", [], "array", "remove"))
def test_a_described_change_does_what_the_published_one_did(before, change):
    after = apply_change(before, change)
    reported = describe_change(frozen_object(before), frozen_object(after), change)
    assert reported.version == 2
    assert same(reported.apply_to(before), after)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"t": 1}, {"t": 2}, [("t", 1, 2)]),
        ({"t": 1}, {}, [("t", 1, None)]),
        ({}, {"t": 1}, [("t", None, 1)]),
        ({"t": 1}, {"t": True}, [("t", 1, True)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [("a.c", 2, 3)]),
        ({"a": 1}, {"a": {"b": 2}}, [("a", 1, {"b": 2})]),
        (
            {"items": [{"done": False}, {"done": False}]},
            {"items": [{"done": True}, {"done": False}]},
            [("items.0.done", False, True)],
        ),
        ({"items": ["a"]}, {"items": ["a", "b"]}, [("items", ["a"], ["a", "b"])]),
        ({"a": {"x.y": 1}}, {"a": {"x.y": 2}}, [("a", {"x.y": 1}, {"x.y": 2})]),
        ({"x.y": 1}, {"x.y": 2}, [("", {"x.y": 1}, {"x.y": 2})]),
        ({"a": {"b": 1}}, {"a": {"b": None}}, [("a", {"b": 1}, {"b": None})]),
        ({"a": [1]}, {"a": [None]}, [("a", [1], [None])]),
        ({"": 1, "t": 1}, {"": 1, "t": 2}, [("t", 1, 2)]),
    ],
)
def test_a_difference_is_as_near_to_the_leaves_as_a_path_can_say(before, after, expected):
    found = [(each.path, each.old, each.new) for each in difference(before, after, 3)]
    assert found == expected
