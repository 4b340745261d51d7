"""Which lines are records: Spark and the reference decoder say the same of each byte."""

import json

import pytest

from fsm.judge.trace_files import Reading, parts_in
from spark.pipeline import Question, validate
from tests.support.trace.trace_files import records, session, whole

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

TOLD = records(whole(session("open", "closed")))
GOOD = json.dumps(TOLD[1])


def changed(old, new):
    """A good line in which some bytes are others."""
    assert old in GOOD
    return GOOD.encode().replace(old.encode(), new)


DAMAGED = {
    "NaN": changed('"t": 0.02', b'"t": NaN'),
    "not finite": changed('"t": 0.02', b'"t": 1e999'),
    "text behind": GOOD.encode() + b" x",
    "another behind": GOOD.encode() + b"\r" + GOOD.encode(),
    "single quotes": changed('"', b"'"),
    "a comment": GOOD.encode() + b" // so",
    "a carriage return in a text": changed("mn|ra", b"mn|\r"),
    "no UTF-8": changed("mn|ra", b"mn|\xff\xfe"),
    "half a surrogate": changed("mn|ra", b"mn|\\ud83d"),
    "half a surrogate as bytes": changed("mn|ra", b"\xed\xa0\xbd"),
    "a byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "a leading zero": changed('"ln": 2', b'"ln": 02'),
    "a whole number as a fraction": changed('"ln": 2', b'"ln": 2.0'),
    "a number too large": changed('"ln": 2', f'"ln": {2**63}'.encode()),
    "cut off": GOOD.encode()[:-3],
    "blank": b"  ",
}
SOUND = {
    "a carriage return at the end": GOOD.encode() + b"\r",
    "an undeclared nested field": GOOD.encode()[:-1] + b', "mood": {"k": [1, {"ln": "x"}]}}',
    "a whole surrogate pair": changed("test", b"\\ud83d\\ude00"),
    "a name twice": GOOD.encode()[:-1] + b', "ln": 2}',
    "null": GOOD.encode()[:-1] + b', "why": null}',
}


def test_each_damaged_line_is_quarantined_by_both_for_the_same_reason(spark_session, tmp_path):
    start, end = (json.dumps(TOLD[place]).encode() for place in (0, -1))
    lines = [start, *DAMAGED.values(), *SOUND.values(), end]
    part = tmp_path / "part-00000.jsonl"
    part.write_bytes(b"\n".join(lines) + b"\n")

    reading = Reading(parts_in([tmp_path]))
    good = list(reading.records())
    found = validate(spark_session, Question(traces=(str(tmp_path),)))

    assert len(good) == len(SOUND) + 2
    assert [bad.line for bad in reading.bad] == list(range(2, 2 + len(DAMAGED)))
    assert [(bad.line, bad.reason) for bad in found.bad_lines] == [
        (bad.line, bad.reason) for bad in reading.bad
    ]
    assert (found.events, found.quarantined) == (len(good), len(reading.bad))
