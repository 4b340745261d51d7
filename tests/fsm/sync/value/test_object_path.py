"""How deep a change may reach into a value."""

import pytest

from fsm.sync.value.value import apply_change, check_path, is_applicable
from specs.bodies.object import Change
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_JSON_DEPTH


@pytest.mark.parametrize("path", [None, "t", ".".join("a" * MAX_JSON_DEPTH)])
def test_all_parts_of_a_message_can_be_reached(path):
    check_path(path)
    apply_change({}, Change(2, path, 1))


@pytest.mark.parametrize("segments", [MAX_JSON_DEPTH + 1, 8000])
def test_a_path_that_leads_deeper_is_refused(segments):
    with pytest.raises(BadMessageError, match="more than 32 segments"):
        check_path(".".join("a" * segments))


@pytest.mark.parametrize(
    ("index", "count", "fits"),
    [(0, 3, True), (1, 2, True), (2, 2, False), (3, 1, False), (2, 0, True), (1, 0, False)],
)
def test_elements_are_removed_where_they_are(index, count, fits):
    """Of upstream's peers a count of 0 removes the last element."""
    removal = Change(2, "l", count, "array", "remove", index=index)
    assert is_applicable({"l": [1, 2, 3]}, removal) is fits
