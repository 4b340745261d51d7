"""A line of a trace is read, or refused with a reason: nothing else."""

import json
import math

import attrs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.judge.trace_line import (
    FIELDS,
    BadTraceLineError,
    TraceLine,
    are_records,
    read_line,
    read_record,
    wire_name,
)
from specs.trace import Fact, Kind, Stamp
from tests.support.chance import examples

STAMP = {"run": "r", "node": "a", "ln": 2, "wall_ns": 1, "mono_ns": 1, "t": 0.5, "actor": "x"}
STEP = {
    **STAMP,
    "k": "state",
    "op": "step",
    "machine": "address",
    "key": "url",
    "old": "[*]",
    "new": "allocated",
    "cause": "allocate",
}
MESSAGE = {**STAMP, "k": "msg", "op": "submit", "mid": "m", "code": 200}
REFUSED = {**STEP, "op": "refused", "new": None}

BAD = {
    "no JSON": "{",
    "no UTF-8": b"\xff",
    "not a number": '{"t": NaN}',
    "no object": "[]",
    "too deep": "[" * 100_000,
    "no kind": json.dumps({**STEP, "k": "opinion"}),
    "no machine": json.dumps({**STEP, "machine": None}),
    "no new state": json.dumps({**STEP, "new": None}),
    "a step of unknown sort": json.dumps({**STEP, "op": "jump"}),
    "no sort of step": json.dumps({**STEP, "op": None}),
    "text for a number": json.dumps({**STEP, "ln": "2"}),
    "truth for a number": json.dumps({**STEP, "ln": True}),
    "a number for text": json.dumps({**STEP, "key": 2}),
    "a number too large": json.dumps({**STEP, "ln": 2**63}),
    "a list for a list's field": json.dumps({**STEP, "why": ["x"]}),
}


def test_a_step_is_read():
    line = read_line(json.dumps(STEP))

    assert line == TraceLine(
        run="r",
        node="a",
        ln=2,
        k="state",
        t=0.5,
        wall_ns=1,
        actor="x",
        op="step",
        machine="address",
        key="url",
        old="[*]",
        new="allocated",
        cause="allocate",
    )
    assert line.is_step
    assert not line.is_refused


def test_a_refused_step_enters_no_state():
    line = read_record(REFUSED)

    assert line.is_refused
    assert line.new is None


def test_whole_seconds_and_unknown_fields_are_fine():
    assert read_record({**STEP, "t": 1, "mood": ["x"]}) == read_record({**STEP, "t": 1.0})


@pytest.mark.parametrize("field", list(STAMP))
def test_a_line_without_its_stamp_is_refused(field):
    with pytest.raises(BadTraceLineError, match=f"{field} is missing"):
        read_record({name: value for name, value in STEP.items() if name != field})


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_line_is_refused_with_a_reason(name):
    with pytest.raises(BadTraceLineError) as caught:
        read_line(BAD[name])
    assert caught.value.reason


def test_the_declared_fields_are_those_of_the_record():
    declared = [field.name for kind in (Stamp, Fact) for field in attrs.fields(kind)]

    assert list(FIELDS) == [wire_name(name) for name in declared]
    assert (FIELDS["from"], FIELDS["ln"], FIELDS["t"], FIELDS["k"]) == (str, int, float, str)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
RECORDS = st.fixed_dictionaries({}, optional=dict.fromkeys(STEP, JSON)) | st.dictionaries(
    st.sampled_from(list(FIELDS)), JSON
)


@given(RECORDS.map(json.dumps) | st.text() | st.binary())
def test_any_written_record_is_a_line_or_is_refused(text):
    try:
        line = read_line(text)
    except BadTraceLineError:
        return
    assert line.k in set(Kind)


def read(reader, reported):
    try:
        return reader(reported)
    except BadTraceLineError as exc:
        return exc.reason


@settings(max_examples=examples(30))
@given(
    RECORDS
    | st.sampled_from([STEP, REFUSED]).flatmap(lambda reported: CHANGED.map(reported.__or__))
)
def test_a_line_whose_shape_is_known_is_read_as_one_that_is_new(record):
    text = json.dumps(record)
    reported = read(read_line, text)
    assert read(read_line, text) == reported
    if reported != "no JSON":
        # A whole number that has no place in 64 bits is a fraction already for this decoder.
        assert read(read_record, orjson.loads(text)) == reported


CHANGED = st.dictionaries(
    st.sampled_from(["k", "op", "ln", "t", "id", "why", "mood"]),
    JSON | st.sampled_from(["msg", "step", "refused", 1, 2**63 - 1, 2**63, -(2**63), 0.5]),
)


VALUES = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30]),
    st.sampled_from([0.5, 1e300, math.inf, math.nan]), st.sampled_from(["", "x", "state", "msg"]),
    st.just([]), st.just({}),
)  # fmt: skip


@given(
    base=st.sampled_from([MESSAGE, STEP, REFUSED]),
    changes=st.lists(st.tuples(st.sampled_from([*FIELDS, "unknown"]), st.integers(0, 2), VALUES)),
    gone=st.sets(st.sampled_from([*FIELDS])),
)
def test_columns_that_are_records_are_so_one_by_one(base, changes, gone):
    objects = [dict(base) for _ in range(3)]
    for name in gone:
        for one in objects:
            one.pop(name, None)
    for name, place, value in changes:
        for one in objects:
            one.setdefault(name, value)
        objects[place][name] = value
    columns = {name: [one[name] for one in objects] for name in objects[0]}

    if are_records(columns):
        for one in objects:
            record = attrs.asdict(read_record(one))
            for name, value in one.items():
                assert record.get("from_" if name == "from" else name, value) == value


@pytest.mark.parametrize("record", [MESSAGE, STEP, REFUSED])
def test_columns_of_records_are_records(record):
    assert are_records({name: [value] * 3 for name, value in record.items()})
