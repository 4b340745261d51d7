"""What a value may be, and that it is copied on its way in (SYN-01, I-D4)."""

import enum
import json
from types import MappingProxyType

import pytest
from hypothesis import given

from fsm.sync.value.json import NotJsonError, as_json, json_size
from specs.limits.sync import VALUE_DEPTH
from tests.support.json_values import VALUES


class Word(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


def taken(value):
    return as_json(value, (), lambda part: part)


@given(VALUES)
def test_a_value_is_copied_through_and_through(value):
    copy = taken(value)
    assert copy == value
    assert not {id(part) for part in parts(copy)} & {id(part) for part in parts(value)}


def parts(value):
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from parts(each)


def test_a_value_in_two_places_becomes_two():
    shared = {"a": 1}
    copy = taken([shared, shared])
    assert copy[0] is not copy[1]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ((1, (2,)), [1, [2]]),
        (MappingProxyType({"a": ()}), {"a": []}),
        (Word.A, "a"),
        (Number.ONE, 1),
        (True, True),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
    ],
)
def test_values_like_json_become_json(value, read):
    copy = taken(value)
    assert (copy, type(copy)) == (read, type(read))


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        ({"a": [0, {1, 2}]}, "a.1", "a value of type set is no JSON"),
        ({"a": {1: 2}}, "a", "a value of type int cannot name an attribute"),
        ({"a": float("nan")}, "a", "a value of type float nan is no JSON"),
        ([float("-inf")], "0", "a value of type float -inf is no JSON"),
        ([2**64], "0", "the number has more than 64 bits"),
        (["\ud800"], "0", "there is half a character in the text"),
        ({"a": {"\ud800": 1}}, "a", "there is half a character in the text"),
        (b"", "", "a value of type bytes is no JSON"),
        (object, "", "a value of type type is no JSON"),
        (
            nested(VALUE_DEPTH + 1),
            ".".join("0" * VALUE_DEPTH),
            f"it is nested deeper than {VALUE_DEPTH}",
        ),
    ],
)
def test_a_value_outside_json_is_named(value, path, why):
    with pytest.raises(NotJsonError) as refused:
        taken(value)
    assert (refused.value.flaw.path, refused.value.flaw.why) == (path, why)


def test_how_deep_a_value_may_be_depends_on_where_it_is_put():
    assert taken(nested(VALUE_DEPTH)) == nested(VALUE_DEPTH)
    with pytest.raises(NotJsonError):
        as_json(nested(VALUE_DEPTH), ("a",), lambda part: part)


def test_a_value_that_holds_itself_is_nested_too_deep():
    value = []
    value.append(value)
    with pytest.raises(NotJsonError, match="nested deeper"):
        taken(value)


@given(VALUES)
def test_the_size_is_that_of_the_text(value):
    assert json_size(value) == len(
        json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    )
