"""Writes that wait, are published in order, or are void together (SYN-13, SYN-16)."""

import json

import pytest

from fsm.sync.value.json import Flaw, json_size
from fsm.sync.value.writes import Unpublished, WritesCore, flaw_in
from specs.limits.protocol import MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.limits.sync import VALUE_BYTES, VALUE_DEPTH
from specs.reply_code import Code
from transports.codec import check_size

URL = "comm://a.ex/1"
REFUSED = Unpublished(Code.FORBIDDEN, "not so")


def core(data=None, schema=None):
    return WritesCore(URL, data or {}, 1, schema)


def test_an_ineffective_write_is_no_write():
    writes = core({"a": 1})
    assert writes.become({"a": 1.0}) == 0
    assert writes.next() is None


def test_after_a_failure_the_value_is_what_was_published():
    writes = core({"a": 0})
    for number in (1, 2, 3):
        writes.become({"a": number})
    writes.published(2)
    writes.failed(REFUSED, frozenset())
    assert (writes.value, writes.version, writes.next()) == ({"a": 1}, 2, None)
    assert writes.is_over(3)
    # Who writes next is notified, and so is who waits for all; then it goes on.
    assert writes.become({"a": 4}) == REFUSED
    assert writes.flushed() == REFUSED
    assert writes.flushed() is None
    assert writes.become({"a": 5}) == 4
    assert writes.value == {"a": 5}


def test_a_value_is_no_larger_than_a_message_takes():
    writes = core({"a": []})
    texts = ["x" * MAX_JSON_TEXT] * (VALUE_BYTES // MAX_JSON_TEXT)
    most = VALUE_BYTES - json_size({"a": [*texts, ""]})
    assert isinstance(writes.become({"a": [*texts, "x" * most]}), int)
    flaw = writes.become({"a": [*texts, "x" * (most + 1)]})
    assert str(VALUE_BYTES) in flaw.why
    # What is small is written any number of times: only what remains of it counts.
    for number in range(200):
        assert isinstance(writes.become({"a": "y" * 1000 + str(number)}), int)
    assert flaw_in({"a": [*texts, "x" * (most + 1)]}, None) is not None


TEXT = "x" * MAX_JSON_TEXT
MANY = {str(number): 1 for number in range(MAX_JSON_KEYS)}


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("most", "too_much", "path"),
    [
        ({"a": TEXT}, {"a": TEXT + "x"}, "a"),
        ({"a": [1, {"b": TEXT}]}, {"a": [1, {"b": TEXT + "x"}]}, "a.1.b"),
        ({TEXT: 1}, {TEXT + "x": 1}, ""),
        (MANY, {**MANY, "x": 1}, ""),
        ({"a": {"b": MANY}}, {"a": {"b": {**MANY, "x": 1}}}, "a.b"),
        (nested(VALUE_DEPTH), nested(VALUE_DEPTH + 1), ".".join("a" * VALUE_DEPTH)),
        ({"a": [1, MANY]}, {"a": [1, {**MANY, "x": 1}]}, "a.1"),
    ],
)
@pytest.mark.parametrize("had", [{}, {"a": {}}, {"a": [1]}])
def test_what_no_message_can_hold_is_no_value(most, too_much, path, had):
    """RELIABILITY L4: a change of it would be lost on its way, and the object unreadable."""
    assert flaw_in(most, None) is None
    check_size(json.dumps(most).encode(), most)
    assert flaw_in(too_much, None).path == path
    for before in (had, most):
        writes = core(before)
        flaw = writes.become(too_much)
        assert isinstance(flaw, Flaw)
        assert flaw.path in {path, ""}
        assert (writes.value, writes.next()) == (before, None)
        assert isinstance(writes.become({"a": 5}), int)
