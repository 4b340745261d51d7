"""How large the copy of a data object becomes by changes (SYN-12, SYN-13, SYN-16)."""

import pytest

from specs.bodies.object import Change, DataObject
from specs.limits.sync import VALUE_BYTES
from tests.support.lone_copy import lone_copy, told, without_steps

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
RA, URL = "hyperty-runtime://a.ex/ra", "comm://a.ex/o1"


def begun(data):
    copy = lone_copy(URL, HB)
    told(copy, ("begin",))
    told(copy, ("become", DataObject(HA, RA, data, URL, 1)))
    return copy


def add(version, size):
    return ("change", Change(version=version, attribute="a", value=["x" * size],
                          attribute_type="array", operation="add"))  # fmt: skip


def gone(effects):
    return [one[1] for one in without_steps(effects) if one[0] == "end"]


def test_a_value_may_have_as_many_bytes_as_a_reporter_may_give_it():
    room = VALUE_BYTES - len('{"a":[""]}')
    assert gone(told(begun({}), add(2, room))) == []
    assert gone(told(begun({}), add(2, room + 1))) != []


@pytest.mark.parametrize("depth", [1, 20, 100])
def test_growth_by_a_long_path_is_counted(depth):
    """Each segment of two bytes makes an object of six."""
    copy, path = begun({"a": "x" * (VALUE_BYTES - 400)}), ".".join(["k"] * depth)
    effects = told(copy, ("change", Change(version=2, attribute=path, value=1)))
    assert bool(gone(effects)) == (depth == 100)
