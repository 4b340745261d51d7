"""Values of data objects, of every shape that is awkward on the wire."""

import json

from hypothesis import strategies as st

from fsm.sync.value.value import same
from transports.bodies import read_object, write_body

KEYS = st.sampled_from(["a", "b", "c", "0", "1", "", "x.y", ".", "items", "_context", "__class__"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, 1.0, -1.0])
    | st.sampled_from(["", "a", "long " * 9, "é"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def over_the_wire(change):
    """A change as its receiver reads it."""
    return read_object(json.loads(json.dumps(write_body(change))), type(change), "change")


def least(old, new):
    """The size of the shortest setting of one place that makes a value another."""
    would_do = [new, *(value for path, value in places(new) if same(put(old, path, value), new))]
    return min(map(weight, would_do))


def weight(value):
    """Characters that a value takes; none for no value, nor for the brackets of a list."""
    return 0 if value is None else len(json.dumps(value)) - isinstance(value, list) * 2


def places(value, path=()):
    """Every path in a value that can be named, and what is there; null cannot be set."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inside:
        if each is not None and "." not in str(key) and key != "":
            yield (*path, key), each
            if isinstance(each, dict | list):
                yield from places(each, (*path, key))


def put(value, path, new):
    """The value with something else at a path; what it was, if there is no such place."""
    if not path:
        return new
    name, *rest = path
    if isinstance(value, dict) and isinstance(name, str) and (name in value or not rest):
        return {**value, name: put(value.get(name), rest, new)}
    if isinstance(value, list) and isinstance(name, int) and name < len(value):
        return [*value[:name], put(value[name], rest, new), *value[name + 1 :]]
    return value
