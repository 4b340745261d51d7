import gc
import weakref
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.dialects.dialect import PLAIN, Dialect, dialect_of, emit
from specs.errors import BadMessageError
from specs.limits.protocol import (
    FRAME_MESSAGES,
    MAX_FRAME_BYTES,
    MAX_JSON_DEPTH,
    MAX_JSON_KEYS,
    MAX_JSON_TEXT,
    MAX_MESSAGE_BYTES,
)
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.codec import (
    BadLine,
    decode_frame,
    decode_line,
    encode,
    frames,
    glance,
    read_object,
)

ALICE = "hyperty://a.example/alice"
BOB = "hyperty://a.example/bob"
ASK = Message(
    7, MessageType.READ, ALICE, BOB, {"resource": BOB, "extra": [1, None, {"\u00fc": 2.5}]}
)


def line(**changes) -> bytes:
    """Return a good message with some fields changed."""
    fields = {"id": 7, "type": "read", "from": ALICE, "to": BOB, "body": {}}
    return orjson.dumps(fields | {name.rstrip("_"): value for name, value in changes.items()})


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_a_message_is_one_line_with_its_fields_in_order():
    assert encode(Message(1, MessageType.DELETE, ALICE, BOB, {"b": "\n", "a": 1})) == (
        b'{"id":1,"type":"delete","from":"hyperty://a.example/alice",'
        b'"to":"hyperty://a.example/bob","body":{"b":"\\n","a":1}}'
    )


def test_normal_form_is_what_the_dialect_module_calls_plain():
    assert orjson.loads(encode(ASK)) == orjson.loads(orjson.dumps(emit(ASK)))


def test_a_written_manifest_is_read_again():
    assert decode_frame(encode(ASK)) == [ASK]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text("xyz", min_size=1, max_size=5), json_values, max_size=5))
def test_unknown_body_keys_survive_the_round_trip(body):
    message = Message(1, MessageType.EXECUTE, ALICE, BOB, body)

    assert decode_frame(encode(message)) == [message]


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([line(), b"{", b"\n", b"[]", b"\xff"])).map(b"".join)
)
def test_any_bytes_are_messages_or_bad_lines(frame):
    for read in decode_frame(frame):
        assert isinstance(read, Message | BadLine)


@given(json_values, st.sampled_from(["id", "type", "from", "to", "body"]))
def test_any_value_in_any_field_is_a_message_or_a_bad_line(value, field):
    assert isinstance(decode_line(line(**{field: value})), Message | BadLine)


@given(json_values)
def test_any_json_is_a_message_or_a_bad_line(value):
    assert isinstance(decode_line(orjson.dumps(value)), Message | BadLine)


def test_a_bad_line_harms_no_other():
    good, bad, also_good = decode_frame(encode(ASK) + b"\n{oops\n\n \r\n" + encode(ASK))

    assert good == also_good == ASK
    assert isinstance(bad, BadLine)


def test_lines_beyond_the_limit_are_one_bad_line():
    read = decode_frame(b"\n".join([encode(ASK)] * (FRAME_MESSAGES + 9)))

    assert read[:-1] == [ASK] * FRAME_MESSAGES
    assert read[-1].error.code is Code.TOO_LARGE


def test_the_largest_batch_is_read_whole():
    assert decode_frame(b"\n".join([encode(ASK)] * FRAME_MESSAGES)) == [ASK] * FRAME_MESSAGES


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nonsense",
        b'{"id":1e400}',
        b"NaN",
        b'{"id":NaN}',
        b'{"a":"\xff"}',
        b'"\\ud800"',
        b"{}{}",
        b"[" * 100_000,
    ],
    ids=["empty", "words", "1e400", "NaN", "NaN inside", "no UTF-8", "surrogate", "two", "abyss"],
)
def test_an_invalid_json_text_is_refused(text):
    read = decode_line(text)

    assert read.error.reason.startswith("this is no JSON")
    assert read.error.code is Code.MALFORMED
    assert read.answer is None


@pytest.mark.parametrize("value", [[], "text", 1, None, True])
def test_json_that_is_no_object_is_refused(value):
    assert decode_line(orjson.dumps(value)).error.reason == "a message is a JSON object"


def test_of_a_repeated_key_the_last_value_counts():
    assert decode_line(line().replace(b'{"id":7', b'{"id":1,"id":7')).id == 7


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


@pytest.mark.parametrize(
    "body",
    [
        {"a": nested(MAX_JSON_DEPTH - 2)},
        {"a": [nested(3)] * 40},
        {"a": {str(key): key for key in range(MAX_JSON_KEYS)}},
        {"a": "x" * MAX_JSON_TEXT},
        {"a": [":" * 300]},
        {str(key): "x" * 40 for key in range(MAX_JSON_KEYS)},
        {"a": "{[:" * 400},
    ],
    ids=["deep", "wide", "keys", "text", "colons", "keys of the body", "brackets in a text"],
)
def test_a_message_within_the_limits_passes(body):
    assert decode_line(line(body=body)).body == body


@pytest.mark.parametrize("text", [b"{", b"[]", line(type="scream"), line(to="nowhere")])
def test_a_bad_line_is_freed_without_a_collection(text):
    """RELIABILITY F1: a peer that sends many of them makes no garbage that stays."""
    gc.collect()
    gc.disable()
    try:
        (bad,) = decode_frame(text)
        kept = weakref.ref(bad.error)
        assert bad.error.__traceback__ is None
        del bad
        assert kept() is None
    finally:
        gc.enable()


def keys_of_the_message(count):
    return {**{str(key): key for key in range(count - 5)}, **orjson.loads(line())}


def test_keys_beside_the_body_count_too():
    long = {"body": {"a": "x" * 1000}}
    assert read_object(orjson.dumps(keys_of_the_message(MAX_JSON_KEYS) | long))
    with pytest.raises(BadMessageError, match="keys"):
        read_object(orjson.dumps(keys_of_the_message(MAX_JSON_KEYS + 1) | long))
    with pytest.raises(BadMessageError, match="nested"):
        read_object(orjson.dumps({**long, "more": nested(MAX_JSON_DEPTH)}))


@pytest.mark.parametrize(
    ("changes", "answered"),
    [
        ({"type": "scream"}, True),
        ({"body": 5}, True),
        ({"to": [BOB, ALICE]}, True),
        ({"id": "7", "type": "scream"}, True),
        ({"id": "x"}, False),
        ({"from": 5}, False),
        ({"from": "nobody"}, False),
        ({"to": "nowhere"}, False),
        ({"to": []}, False),
        ({"type": "response", "body": {}}, False),
    ],
)
def test_a_bad_request_with_a_sender_is_answered(changes, answered):
    answer = decode_line(line(**changes)).answer

    assert (answer is not None) is answered


def test_the_refusal_goes_back_where_the_request_came_from():
    answer = decode_line(line(type="scream")).answer

    assert (answer.id, answer.from_, answer.to) == (7, BOB, ALICE)
    assert answer.code == Code.MALFORMED
    assert "type must be one of" in answer.body["description"]


def test_a_bad_line_never_shows_its_text():
    assert decode_line(b'{"token":"secret"').raw == "17 bytes, sha256 82ff02322a84"


def test_the_dialect_of_a_peer_is_learnt_and_spoken():
    sent = line(id="7", type="READ")
    read, dialect = decode_line(sent), dialect_of(glance(sent), PLAIN)

    assert dialect == Dialect(string_ids=True, upper_types=True)
    assert orjson.loads(encode(read, dialect))["id"] == "7"


def test_a_bad_line_teaches_no_dialect():
    assert dialect_of(glance(b"oops"), PLAIN) == PLAIN


def test_any_object_can_be_read_within_the_limits():
    assert read_object(b'{"cmd":"disconnect"}') == {"cmd": "disconnect"}
    with pytest.raises(BadMessageError):
        read_object(b"[]")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"a": object()}, Code.INTERNAL),
        ({"a": 2**70}, Code.INTERNAL),
        ({"a": "\ud800"}, Code.INTERNAL),
        ({"a": "x" * MAX_FRAME_BYTES}, Code.TOO_LARGE),
    ],
    ids=["object", "huge number", "surrogate", "size"],
)
def test_an_unsendable_message_is_not_written(body, code):
    with pytest.raises(BadMessageError) as caught:
        encode(Message(1, MessageType.READ, ALICE, BOB, body))

    assert caught.value.code is code


@given(st.lists(st.integers(1, MAX_MESSAGE_BYTES), max_size=200))
def test_frames_keep_order_and_limits(sizes):
    lines = [bytes([97 + place % 26]) * size for place, size in enumerate(sizes)]
    made = list(frames(lines))

    assert b"\n".join(made).split(b"\n") == lines or not lines
    assert all(len(frame) <= MAX_FRAME_BYTES for frame in made)
    assert all(frame.count(b"\n") < FRAME_MESSAGES for frame in made)


@given(st.lists(st.integers(1, MAX_MESSAGE_BYTES), min_size=2, max_size=100))
def test_frames_are_as_few_as_can_be(sizes):
    made = list(frames([b"x" * size for size in sizes]))

    for one, following in pairwise(made):
        first = following.split(b"\n")[0]
        is_full = one.count(b"\n") == FRAME_MESSAGES - 1
        assert is_full or len(one) + 1 + len(first) > MAX_FRAME_BYTES
