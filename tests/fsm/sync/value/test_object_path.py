"""How deep a change may reach into a value."""

import pytest

from fsm.sync.value.value import changed, check_path
from specs.bodies.object import Change
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_JSON_DEPTH


@pytest.mark.parametrize("path", [None, "t", ".".join("a" * MAX_JSON_DEPTH)])
def test_all_parts_of_a_message_can_be_reached(path):
    check_path(path)
    changed({}, Change(2, path, 1))


@pytest.mark.parametrize("segments", [MAX_JSON_DEPTH + 1, 8000])
def test_a_path_that_leads_deeper_is_refused(segments):
    with pytest.raises(BadMessageError, match="more than 32 segments"):
        check_path(".".join("a" * segments))
