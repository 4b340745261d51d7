"""Values of data objects that nobody changes in place (SYN-12, I-D4)."""

import copy
import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.jsonvalue import FrozenArray, FrozenObject, freeze, frozen_object, is_json

LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(), part, max_size=4)
)
VALUE = {"list": [1, {"deep": [2]}], "object": {"a": None}}

OBJECT_WRITES = {
    "set": lambda value: value.__setitem__("a", 1),
    "delete": lambda value: value.__delitem__("a"),
    "merge": lambda value: value.__ior__({"a": 1}),
    "update": lambda value: value.update(a=1),
    "default": lambda value: value.setdefault("b", 1),
    "pop": lambda value: value.pop("a"),
    "popitem": lambda value: value.popitem(),
    "clear": lambda value: value.clear(),
}
ARRAY_WRITES = {
    "set": lambda value: value.__setitem__(0, 1),
    "delete": lambda value: value.__delitem__(0),
    "join": lambda value: value.__iadd__([1]),
    "repeat": lambda value: value.__imul__(2),
    "append": lambda value: value.append(1),
    "extend": lambda value: value.extend([1]),
    "insert": lambda value: value.insert(0, 1),
    "pop": lambda value: value.pop(),
    "remove": lambda value: value.remove(1),
    "reverse": lambda value: value.reverse(),
    "sort": lambda value: value.sort(),
    "clear": lambda value: value.clear(),
}


@pytest.mark.parametrize("write", OBJECT_WRITES.values(), ids=list(OBJECT_WRITES))
@pytest.mark.parametrize("find", [lambda v: v, lambda v: v["object"], lambda v: v["list"][1]])
def test_no_object_on_any_level_is_changed(write, find):
    value = freeze(VALUE)
    with pytest.raises(TypeError, match="copy it first"):
        write(find(value))
    assert value == VALUE


@pytest.mark.parametrize("write", ARRAY_WRITES.values(), ids=list(ARRAY_WRITES))
@pytest.mark.parametrize("find", [lambda v: v["list"], lambda v: v["list"][1]["deep"]])
def test_no_array_on_any_level_is_changed(write, find):
    value = freeze(VALUE)
    with pytest.raises(TypeError, match="copy it first"):
        write(find(value))
    assert value == VALUE


def test_every_method_that_changes_is_refused():
    """What a later Python adds shows here."""
    written = {*dir(dict), *dir(list)} - {"__init__", "__setattr__", "__delattr__"}
    may_change = {name for name in written if name.strip("_") in CHANGING}
    for name in may_change & set(dir(dict)):
        assert getattr(FrozenObject, name) is not getattr(dict, name)
    for name in may_change & set(dir(list)):
        assert getattr(FrozenArray, name) is not getattr(list, name)


CHANGING = {
    *("setitem", "delitem", "ior", "iadd", "imul", "append", "clear", "extend", "insert", "pop"),
    *("popitem", "remove", "reverse", "setdefault", "sort", "update"),
}


@given(VALUES)
def test_a_frozen_value_is_the_same_json(value):
    still = freeze(value)
    assert still == value
    assert is_json(still) is is_json(value)
    assert orjson.dumps(still) == orjson.dumps(value)
    assert json.dumps(still) == json.dumps(value)


@given(VALUES)
def test_a_copy_is_plain_through_and_through(value):
    made = copy.deepcopy(freeze(value))
    assert made == value
    assert not any(isinstance(part, FrozenObject | FrozenArray) for part in parts(made))


@given(VALUES)
def test_freezing_reaches_every_part_and_leaves_the_original_alone(value):
    before = copy.deepcopy(value)
    assert all(type(part) not in {dict, list} for part in parts(freeze(value)))
    assert value == before


def parts(value):
    yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from parts(part)


def test_a_frozen_value_is_shared():
    value = frozen_object(VALUE)
    assert frozen_object(value) is value
    changed = frozen_object({**value, "new": 1})
    assert changed["list"] is value["list"]
