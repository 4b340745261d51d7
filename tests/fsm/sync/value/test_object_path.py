"""How deep a change may reach into a value."""

import pytest

from fsm.sync.value.value import is_applicable
from specs.bodies.object import Change


@pytest.mark.parametrize(
    ("index", "count", "fits"),
    [(0, 3, True), (1, 2, True), (2, 2, False), (3, 1, False), (2, 0, True), (1, 0, False)],
)
def test_elements_are_removed_where_they_are(index, count, fits):
    """Of upstream's peers a count of 0 removes the last element."""
    removal = Change(2, "l", count, "array", "remove", index=index)
    assert is_applicable({"l": [1, 2, 3]}, removal) is fits
