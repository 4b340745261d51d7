"""Paths in JSON values, by which one attribute is read or deleted (MSG-11, MSG-13)."""

import pytest

from specs.jsonvalue import ABSENT, value_at

VALUE = {"none": None, "list": [{"a": 1}, None], "object": {"": 2, "0": "zero"}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("none", None),
        ("list.1", None),
        ("list.0.a", 1),
        ("list", VALUE["list"]),
        ("object.0", "zero"),
        ("object.", 2),
    ],
)
def test_what_is_at_a_path_is_found_null_included(path, found):
    assert value_at(VALUE, path) == found


@pytest.mark.parametrize(
    "path",
    [
        "",
        "no",
        "none.a",
        "list.2",
        "list.-1",
        "list.00000000001",
        "list.a",
        "list.0.a.b",
        "object.1",
    ],
)
def test_what_is_at_no_path_is_absent_and_not_null(path):
    assert value_at(VALUE, path) is ABSENT
