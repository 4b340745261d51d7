"""How large the copy of a data object becomes by changes (SYN-12, SYN-13, SYN-16)."""

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsm.machines.sync.observer_copy import State
from fsm.sync import copy as object_copy
from fsm.sync.value.json import json_size
from fsm.sync.value.value import apply_change, is_applicable
from specs.bodies.object import Change, DataObject
from specs.limits.sync import VALUE_BYTES
from tests.support.json_values import KEYS, OBJECTS, VALUES
from tests.support.lone_copy import lone_copy, told, without_steps

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
RA, URL = "hyperty-runtime://a.ex/ra", "comm://a.ex/o1"
SMALL = 150
"""Bytes to which the properties bound a value."""


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


def test_changes_do_not_make_a_copy_larger_than_the_value_of_an_object():
    copy, ends = begun({}), []
    for version in range(2, 202):
        ends += gone(told(copy, add(version, 48_000)))
        assert json_size(copy.data) <= VALUE_BYTES
    assert ends == [f"its value has more than {VALUE_BYTES} bytes"]
    assert copy.state is State.DELETED


def test_a_value_may_have_as_many_bytes_as_a_reporter_may_give_it():
    room = VALUE_BYTES - len('{"a":[""]}')
    assert gone(told(begun({}), add(2, room))) == []
    assert gone(told(begun({}), add(2, room + 1))) != []


def test_a_copy_ends_once_by_what_came_early_too():
    copy = lone_copy(URL, HB)
    told(copy, ("begin",))
    for version in range(2, 8):
        told(copy, add(version, 48_000))
    effects = told(copy, ("become", DataObject(HA, RA, {}, URL, 1)))
    assert len(gone(effects)) == 1
    assert [one[1] for one in without_steps(effects) if one[0] == "show"] == [1, 2]
    assert effects[-1] == ("end", gone(effects)[0])


def test_the_whole_value_is_counted_rarely(monkeypatch):
    sizes = []

    def counted(value):
        sizes.append(json_size(value))
        return sizes[-1]

    monkeypatch.setattr(object_copy, "json_size", counted)
    copy = begun({"big": "x" * 50_000})
    for version in range(2, 1002):
        told(copy, ("change", Change(version=version, attribute="n", value=version)))
    assert copy.state is State.LIVE
    assert copy.version == 1001
    assert len([size for size in sizes if size > 50_000]) <= 3


PATHS = st.none() | st.lists(KEYS, min_size=1, max_size=4).map(".".join).filter(bool)
ARRAYS = st.sampled_from([(None, None), ("array", "add"), ("array", "remove")])


@st.composite
def histories(draw):
    """Changes in their order, of anything."""
    made = []
    for version in range(2, draw(st.integers(3, 20))):
        path, (kind, what) = draw(PATHS), draw(ARRAYS)
        value = draw(OBJECTS if path is None else VALUES)
        value = [] if value is None and kind else value
        made.append(Change(version=version, attribute=path, value=value,
                           attribute_type=kind, operation=what))  # fmt: skip
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories())
def test_a_copy_stays_open_exactly_while_its_value_is_small_enough(monkeypatch, changes):
    monkeypatch.setattr(object_copy, "VALUE_BYTES", SMALL)
    copy, value = begun({}), {}
    for made in changes:
        if not is_applicable(value, made):
            continue
        change = attrs.evolve(made, version=copy.version + 1)
        value = apply_change(value, change)
        effects = told(copy, ("change", change))
        assert bool(gone(effects)) == (json_size(value) > SMALL)
        if gone(effects):
            return
        assert copy.data == value


@pytest.mark.parametrize("depth", [1, 20, 100])
def test_growth_by_a_long_path_is_counted(monkeypatch, depth):
    """Each segment of two bytes makes an object of six."""
    monkeypatch.setattr(object_copy, "VALUE_BYTES", 400)
    copy, path = begun({}), ".".join(["k"] * depth)
    effects = told(copy, ("change", Change(version=2, attribute=path, value=1)))
    assert bool(gone(effects)) == (depth == 100)
