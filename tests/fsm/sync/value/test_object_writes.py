"""Writes that wait, are published in order, or are void together (SYN-13, SYN-16)."""

import json

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fsm.sync.value.json import Flaw, compile_schema, json_size
from fsm.sync.value.value import apply_change, same
from fsm.sync.value.writes import Unpublished, WritesCore, flaw_in
from specs.bodies.object import ChangeObject
from specs.limits.protocol import MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.limits.sync import VALUE_BYTES, VALUE_DEPTH, WRITES_WAITING
from specs.reply_code import Code
from tests.support.json_values import OBJECTS, over_the_wire
from transports.codec import check_size

URL = "comm://a.ex/1"
NUMBERS = compile_schema({"additionalProperties": {"type": "integer"}})
REFUSED = Unpublished(Code.FORBIDDEN, "not so")


def core(data=None, schema=None):
    return WritesCore(URL, data or {}, 1, schema)


def test_a_write_is_in_the_value_at_once_and_published_later():
    writes = core()
    assert writes.become({"a": 1}) == 1
    assert (writes.value, writes.version, writes.is_over(1)) == ({"a": 1}, 1, False)
    assert writes.next() == ChangeObject(URL, "a", 1)
    assert writes.published(2) == 1
    assert (writes.version, writes.is_over(1), writes.next()) == (2, True, None)


def test_an_ineffective_write_is_no_write():
    writes = core({"a": 1})
    assert writes.become({"a": 1.0}) == 0
    assert writes.next() is None


def test_a_requested_change_is_made_even_without_effect():
    writes = core({"a": 1})
    assert writes.make(ChangeObject(URL, "a", 1)) == 1
    assert writes.next() is not None


def test_a_write_against_the_schema_changes_nothing():
    writes = core({"a": 1}, NUMBERS)
    assert writes.become({"a": "x"}) == Flaw("a", 'it is not of type "integer"')
    assert (writes.value, writes.next()) == ({"a": 1}, None)


def test_more_than_so_many_writes_do_not_wait():
    writes = core()
    for number in range(WRITES_WAITING):
        assert not writes.is_full
        assert writes.become({"a": number}) == number + 1
    refused = writes.become({"a": -1})
    assert (refused.code, writes.value) == (503, {"a": WRITES_WAITING - 1})
    writes.published(2)
    assert writes.become({"a": -1}) == WRITES_WAITING + 1


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


def test_a_writer_that_is_notified_otherwise_is_not_notified_twice():
    writes = core()
    writes.make(ChangeObject(URL, "a", 1))
    writes.failed(REFUSED, frozenset({1}))
    assert (writes.flushed(), writes.become({"b": 1})) == (None, 2)


def test_one_that_is_reported_otherwise_does_not_hide_one_that_is_not():
    writes = core()
    writes.make(ChangeObject(URL, "a", 1))
    writes.become({"a": 1, "b": 1})
    writes.failed(REFUSED, frozenset({1}))
    assert writes.become({"b": 1}) == REFUSED


@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.GONE])
def test_a_removed_part_stays_removed(code):
    writes = core({"a": 0})
    writes.become({"a": 1})
    writes.failed(Unpublished(code, "gone"), frozenset())
    for _ in range(3):
        assert writes.become({"a": 2}) == Unpublished(code, "gone")
    assert writes.value == {"a": 0}


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


DEEP = ".".join("a" * VALUE_DEPTH)


@pytest.mark.parametrize(
    ("had", "change", "path"),
    [
        ({}, ("a.b", TEXT + "x"), "a.b"),
        ({"a": [1]}, ("a.0", TEXT + "x"), "a.0"),
        ({"a": [1]}, ("a", [2, TEXT + "x"], "array", "add"), "a.2"),
        ({"a": [1]}, ("a", [TEXT + "x"], "array", "remove"), "a.0"),
        (MANY, ("x", 1), ""),
        (MANY, ("x.y.z", 1), ""),
        ({"a": [MANY]}, ("a.0.x", 1), "a.0"),
        ({}, (f"{DEEP}.a", 1), DEEP),
        ({}, (DEEP, {}), DEEP),
        ({}, (DEEP, [1], "array", "add"), DEEP),
        ({}, (f"{TEXT}.x", 1), ""),
    ],
)
def test_no_change_makes_of_a_value_what_no_message_can_hold(had, change, path):
    writes = core(had)
    flaw = writes.make(ChangeObject(URL, *change))
    assert isinstance(flaw, Flaw)
    assert flaw.path == path
    assert (writes.value, writes.next()) == (had, None)
    assert writes.make(ChangeObject(URL, "0", 1)) == 1


def test_a_change_at_the_limits_is_made():
    for had, change in [({}, (DEEP, TEXT)), (MANY, ("0", MANY)), (MANY, ("0",))]:
        assert core(had).make(ChangeObject(URL, *change)) == 1


class Reporter(RuleBasedStateMachine):
    """Whatever is written, published or lost: followers go from the first value to the last."""

    @initialize(data=OBJECTS)
    def begin(self, data):
        self.writes = core(data)
        self.follower = data
        self.version = 1

    @rule(new=OBJECTS)
    def write(self, new):
        if isinstance(self.writes.become(new), int):
            assert same(self.writes.value, new)

    @precondition(lambda self: self.writes.next() is not None)
    @rule()
    def publish(self):
        self.follower = apply_change(self.follower, over_the_wire(self.writes.next()))
        self.version += 1
        self.writes.published(self.version)

    @precondition(lambda self: self.writes.next() is not None)
    @rule(reported=st.booleans())
    def fail(self, reported):
        numbers = frozenset(range(1, self.writes.number + 1)) if reported else frozenset()
        self.writes.failed(Unpublished(Code.FORBIDDEN, "no"), numbers)
        assert same(self.writes.value, self.follower)

    @invariant()
    def nothing_waits_or_all_is_there(self):
        if self.writes.next() is None:
            assert same(self.writes.value, self.follower)
            assert self.writes.is_over(self.writes.number)
        assert self.writes.version == self.version


TestReporter = Reporter.TestCase
