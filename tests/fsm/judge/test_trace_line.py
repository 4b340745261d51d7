"""A line of a trace is read, or refused with a reason: nothing else."""

import pytest

from fsm.judge.trace_line import BadTraceLineError, are_records

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


def read(reader, reported):
    try:
        return reader(reported)
    except BadTraceLineError as exc:
        return exc.reason


@pytest.mark.parametrize("record", [MESSAGE, STEP, REFUSED])
def test_columns_of_records_are_records(record):
    assert are_records({name: [value] * 3 for name, value in record.items()})
