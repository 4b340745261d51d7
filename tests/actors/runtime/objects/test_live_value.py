"""A value that is written like any value of Python (SYN-13, SYN-14, SYN-15)."""

import copy
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.objects.live_value import LiveList, LiveObject, Place, plain_copy
from actors.runtime.objects.participant import ObjectError
from fsm.sync.value.value import apply_change, same
from fsm.sync.value.writes import smallest_change
from tests.actors.runtime.objects.json_values import (
    KEYS,
    OBJECTS,
    VALUES,
    least,
    over_the_wire,
    weight,
)

URL = "comm://a.ex/1"


class Heard:
    """A value whose changes somebody follows."""

    def __init__(self, data):
        self.url = URL
        self.value = self.follower = data
        self.changes = deque()
        self.top = Place(self)
        self.live = LiveObject(self.top)

    @property
    def now(self):
        return self.value

    def become(self, new):
        change = smallest_change(URL, self.value, new)
        if change is not None:
            # No smaller setting of one place would have done.
            assert weight(change.value) <= least(self.value, new)
            self.value = apply_change(self.value, change)
            self.follower = apply_change(self.follower, over_the_wire(change))
            self.changes.append((change.attribute, change.operation, change.value))


def live(data):
    heard = Heard(data)
    return heard, heard.live


# ---- every write there is, against plain Python


def containers(value, path=()):
    yield path
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, dict | list):
            yield from containers(each, (*path, key))


def reached(value, path):
    for key in path:
        value = value[key]
    return value


def write_object(draw, part):
    """Choose a write of an object; return what does it, live or plain."""
    key = draw(KEYS)
    if key in part and draw(st.booleans()):
        return lambda it: it.__delitem__(key)
    value = draw(VALUES)
    return lambda it: it.__setitem__(key, plain_copy(value))


def write_list(draw, part):
    value, values = draw(VALUES), draw(st.lists(VALUES, max_size=3))
    number, other = draw(st.integers(-3, 3)), draw(st.integers(-3, 3))
    ways = [
        lambda it: it.append(plain_copy(value)),
        lambda it: it.extend(plain_copy(values)),
        lambda it: it.insert(number, plain_copy(value)),
        lambda it: it.reverse(),
        lambda it: it.clear(),
        lambda it: it.__setitem__(slice(number, other), plain_copy(values)),
        lambda it: it.__delitem__(slice(number, other)),
        lambda it: it.__iadd__(plain_copy(values)),
        lambda it: it.sort(key=repr),
    ]
    if part:
        index = number % len(part)
        ways += [
            lambda it: it.__setitem__(index, plain_copy(value)),
            lambda it: it.__delitem__(index),
            lambda it: it.pop(index),
            lambda it: it.insert(0, copy.deepcopy(it[index])),
        ]
    return draw(st.sampled_from(ways))


@given(OBJECTS, st.data())
def test_after_any_writes_live_value_plain_value_and_follower_are_equal(first, data):
    heard, value = live(first)
    model = copy.deepcopy(first)
    held = [value]
    for _ in range(data.draw(st.integers(1, 8))):
        path = data.draw(st.sampled_from(list(containers(model))))
        plain = reached(model, path)
        write = (write_object if isinstance(plain, dict) else write_list)(data.draw, plain)
        write(plain)
        held.append(reached(value, path))
        write(held[-1])
        assert same(heard.value, model)
        assert same(heard.follower, model)
    assert value == model
    assert {type(each) for each in held} <= {LiveObject, LiveList}


# ---- reading


def test_a_live_value_reads_like_json():
    _, data = live({"items": [{"done": False}, 2], "a": {"b": None}, "": 1, "x.y": 2})
    assert data.items[0].done is False
    assert data["items"][-1] == 2
    assert data.items[:1] == [{"done": False}]
    assert (list(data), len(data), "a" in data, 5 in data) == (
        ["items", "a", "", "x.y"],
        4,
        True,
        False,
    )
    assert data.a == {"b": None}
    assert data.a != {"b": False}
    assert data.items == [{"done": False}, 2]
    assert {"done": False} in data.items
    assert data.items.index(2) == 1
    assert data.items.count({"done": False}) == 1
    assert repr(data.a) == "{'b': None}"
    assert "items" in dir(data)
    assert copy.deepcopy(data.items) == [{"done": False}, 2]
    assert type(copy.copy(data.a)) is dict


def test_a_missing_attribute_raises_as_usual():
    _, data = live({"a": {}, "items": [1]})
    with pytest.raises(AttributeError, match=r"the value has no a\.b"):
        data.a.b  # noqa: B018
    with pytest.raises(KeyError):
        data["b"]
    with pytest.raises(AttributeError):
        del data.b
    with pytest.raises(KeyError):
        del data.a["b"]
    with pytest.raises(IndexError):
        data.items[1]
    with pytest.raises(IndexError):
        data.items[1] = 0
    with pytest.raises(ValueError, match="2 is not in the list"):
        data.items.remove(2)
    with pytest.raises(TypeError):
        hash(data)


# ---- parts that are held while the value changes around them


def test_an_element_keeps_being_itself_wherever_it_goes():
    heard, data = live({"rows": [{"id": 1}, {"id": 2}, {"id": 3}]})
    rows, second = data.rows, data.rows[1]
    rows.insert(0, {"id": 0})
    second.seen = True
    rows.reverse()
    second.moved = True
    del rows[0]
    rows.sort(key=lambda row: row.id)
    assert second == {"id": 2, "seen": True, "moved": True}
    assert heard.value["rows"] == [{"id": 0}, {"id": 1}, second]


def test_a_replaced_or_removed_part_is_detached():
    heard, data = live({"a": {"b": {}}, "rows": [{"id": 1}, {"id": 2}]})
    old, inner, first = data.a, data.a.b, data.rows[0]
    data.a = {"c": 1}
    data.rows.pop(0)
    for part in (old, inner, first):
        with pytest.raises(ObjectError, match="replaced or removed") as gone:
            part.x = 1
        assert gone.value.code == 410
    assert heard.value == {"a": {"c": 1}, "rows": [{"id": 2}]}
