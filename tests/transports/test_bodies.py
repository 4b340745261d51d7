import types
from contextlib import suppress
from typing import get_args, get_origin

import attrs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specs import body
from specs.body import (
    Allocate,
    AllocationWish,
    Path,
    Record,
    SessionControl,
    SessionParams,
    UpdateRecord,
)
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body, write_body

ALICE = "hyperty://a.example/alice"
KINDS = [kind for kind in vars(body).values() if isinstance(kind, type) and attrs.has(kind)]
WORDS = ["open", "live", "unix", "offer", "add"]

PRIMITIVES = {
    int: st.integers(1, 200),
    float: st.floats(1, 3600),
    bool: st.booleans(),
    types.NoneType: st.none(),
}

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([ALICE, "x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)


def message(fields: JsonObject) -> Message:
    return Message(1, MessageType.CREATE, ALICE, ALICE, fields)


def text_for(field) -> st.SearchStrategy:
    """Return a strategy for texts a field takes: addresses, its own words, or anything."""
    if field.converter is not None:
        return st.just(ALICE)
    return st.sampled_from([word for word in WORDS if is_taken(field, word)])


def is_taken(field, word: str) -> bool:
    if field.validator is None:
        return True
    try:
        field.validator(None, field, word)
    except BadMessageError:
        return False
    return True


def values_of(field, kind) -> st.SearchStrategy:
    """Return a strategy for values of one field, or of a part of its type."""
    if isinstance(kind, str) or list in map(get_origin, get_args(kind)):
        return plain_json  # free JSON, before or after cattrs has resolved the name
    if attrs.has(kind):
        return bodies_of(kind)
    if get_origin(kind) is tuple:
        return st.lists(values_of(field, get_args(kind)[0]), max_size=3).map(tuple)
    if get_origin(kind) is dict:
        return st.dictionaries(st.sampled_from("abc"), plain_json, max_size=3)
    if isinstance(kind, types.UnionType):
        return st.one_of([values_of(field, one) for one in get_args(kind)])
    return text_for(field) if kind is str else PRIMITIVES[kind]


def bodies_of(kind) -> st.SearchStrategy:
    """Return a strategy for bodies of a class."""
    fields = {field.name: values_of(field, field.type) for field in attrs.fields(kind)}
    return st.builds(kind, **fields)


def mangled(kind) -> st.SearchStrategy:
    """Return a strategy for objects with the right names and anything in them."""
    names = [field.metadata.get("wire", field.name) for field in attrs.fields(kind)]
    return st.dictionaries(st.sampled_from([*names, "other"]), plain_json)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(deadline=None)
@given(data=st.data())
def test_what_is_written_is_read_again(kind, data):
    made = data.draw(bodies_of(kind))
    on_the_wire = orjson.loads(orjson.dumps(write_body(made)))

    assert read_body(message(on_the_wire), kind) == made


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(deadline=None)
@given(data=st.data())
def test_garbage_is_read_or_refused_with_the_one_error(kind, data):
    with suppress(BadMessageError):
        assert isinstance(read_body(message(data.draw(mangled(kind))), kind), kind)


def test_names_are_those_of_the_wire_and_what_is_none_is_left_out():
    control = SessionControl("open", SessionParams("hyperty-runtime://a.example/1"))

    assert write_body(control) == {
        "method": "open",
        "params": {"runtimeURL": "hyperty-runtime://a.example/1"},
    }


def test_lists_are_lists_inside_the_process_too():
    assert write_body(Path((ALICE,))) == {"resources": [ALICE]}


def test_free_json_is_passed_as_it_is():
    value: JsonObject = {"a": [{"b": None}]}
    written = write_body(UpdateRecord(ALICE, value))

    assert written["value"] is value
    assert read_body(message(written), UpdateRecord).value is value


def test_keys_a_class_does_not_know_are_let_be():
    fields: JsonObject = {"scheme": "hyperty", "value": {"number": 1, "x": 1}, "via": []}

    assert read_body(message(fields), Allocate) == Allocate("hyperty", AllocationWish(1))


@pytest.mark.parametrize(
    ("kind", "fields", "told"),
    [
        (Allocate, {}, "body.scheme is missing; body.value is missing"),
        (
            Allocate,
            {"scheme": "h", "value": {"number": "3"}},
            "body.value.number must be a whole number, not '3'",
        ),
        (
            Allocate,
            {"scheme": "h", "value": {"number": True}},
            "body.value.number must be a whole number, not True",
        ),
        (Allocate, {"scheme": 5, "value": {"number": 3}}, "body.scheme must be text, not 5"),
        (Path, {"resources": ALICE}, f"body.resources must be a list, not '{ALICE}'"),
        (Path, {"resources": [ALICE, None]}, "body.resources[1] must be text, not null"),
        (
            SessionControl,
            {"method": "open", "params": []},
            "body.params must be an object, not a list",
        ),
        (
            SessionControl,
            {"method": "open", "params": {"runtimeURL": {}}},
            "body.params.runtimeURL must be text, not an object",
        ),
    ],
)
def test_a_refusal_names_the_field_as_the_peer_wrote_it(kind, fields, told):
    with pytest.raises(BadMessageError) as caught:
        read_body(message(fields), kind)

    assert caught.value.reason == told


def test_a_refusal_of_many_fields_stays_short():
    with pytest.raises(BadMessageError) as caught:
        read_body(message({"resources": [5] * 250}), Path)

    assert len(caught.value.reason) < 200


def test_the_code_of_a_refusal_is_kept():
    with pytest.raises(BadMessageError) as caught:
        read_body(message({"resources": [ALICE] * 257}), Path)

    assert caught.value.code is Code.TOO_LARGE


def test_a_value_out_of_range_is_refused_in_words():
    fields: JsonObject = {"url": ALICE, "runtime": ALICE, "expires": 0.5}
    with pytest.raises(BadMessageError, match="expires must be >= 1"):
        read_body(message(fields), Record)
