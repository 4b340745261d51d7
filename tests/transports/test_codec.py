import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.limits.protocol import (
    FRAME_MESSAGES,
    MAX_FRAME_BYTES,
    MAX_JSON_DEPTH,
    MAX_JSON_KEYS,
    MAX_JSON_TEXT,
    MAX_MESSAGE_BYTES,
)
from specs.reply_code import Code
from transports.codec import decode_line, frames

ALICE = "hyperty://a.example/alice"
BOB = "hyperty://a.example/bob"


def line(**changes) -> bytes:
    """Return a good message with some fields changed."""
    fields = {"id": 7, "type": "read", "from": ALICE, "to": BOB, "body": {}}
    return orjson.dumps(fields | {name.rstrip("_"): value for name, value in changes.items()})


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("value", [[], "text", 1, None, True])
def test_json_that_is_no_object_is_refused(value):
    assert decode_line(orjson.dumps(value)).error.reason == "a message is a JSON object"


@pytest.mark.parametrize(
    "body",
    [
        {"a": nested(MAX_JSON_DEPTH - 1)},
        {"a": {str(key): key for key in range(MAX_JSON_KEYS + 1)}},
        {"a": "x" * (MAX_JSON_TEXT + 1)},
        {"x" * (MAX_JSON_TEXT + 1): 1},
        {"a": ["x" * 1000] * 70},
        {str(key): key for key in range(MAX_JSON_KEYS + 1)},
        {"a": "x" * 1000, "b": nested(MAX_JSON_DEPTH - 1)},
    ],
    ids=["deep", "keys", "text", "long key", "bytes", "keys of the body", "deep and long"],
)
def test_more_than_the_limits_is_answered_413(body):
    read = decode_line(line(body=body))

    assert read.error.code is Code.TOO_LARGE
    assert read.answer.code == Code.TOO_LARGE


def test_a_bad_line_never_shows_its_text():
    assert decode_line(b'{"token":"secret"').raw == "17 bytes, sha256 82ff02322a84"


@given(st.lists(st.integers(1, MAX_MESSAGE_BYTES), max_size=200))
def test_frames_keep_order_and_limits(sizes):
    lines = [bytes([97 + place % 26]) * size for place, size in enumerate(sizes)]
    made = list(frames(lines))

    assert b"\n".join(made).split(b"\n") == lines or not lines
    assert all(len(frame) <= MAX_FRAME_BYTES for frame in made)
    assert all(frame.count(b"\n") < FRAME_MESSAGES for frame in made)
