from contextlib import suppress

import attrs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specs.bodies.answer import ObjectsResumed
from specs.bodies.link import Path
from specs.bodies.registry import Allocate, AllocationRequest, Free, Record, Register, UpdateRecord
from specs.bodies.session import SessionControl, SessionParams
from specs.errors import BadMessageError
from specs.json_schema import BODIES
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType
from specs.reply_code import Code
from tests.support.bodies import json_of, plain_json, spoilt
from tests.support.chance import examples
from transports.bodies import read_body, write_body

ALICE = "hyperty://a.example/alice"


def message(fields: JsonObject) -> Message:
    return Message(1, MessageType.CREATE, ALICE, ALICE, fields)


def mangled(kind) -> st.SearchStrategy:
    """Return a strategy for objects with the right names and anything in them."""
    names = [field.metadata.get("wire", field.name) for field in attrs.fields(kind)]
    return st.dictionaries(st.sampled_from([*names, "other"]), plain_json)


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: kind.__name__)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_written_manifest_is_read_again(kind, data):
    with suppress(BadMessageError):  # rules between fields may refuse what was drawn
        made = read_body(message(data.draw(json_of(kind))), kind)
        on_the_wire = orjson.loads(orjson.dumps(write_body(made)))
        assert read_body(message(on_the_wire), kind) == made


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: kind.__name__)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_garbage_is_read_or_refused_with_the_one_error(kind, data):
    drawn = data.draw(mangled(kind) | spoilt(kind))
    with suppress(BadMessageError):
        assert isinstance(read_body(message(drawn), kind), kind)


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

    assert read_body(message(fields), Allocate) == Allocate("hyperty", AllocationRequest(1))


@pytest.mark.parametrize(
    ("kind", "fields", "reported"),
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
        (
            Register,
            {"value": {"url": ALICE, "runtime": ALICE, "status": "x", "expires": 0, "user": 1}},
            (
                "body.value.status must be one of created, live, disconnected, dead;"
                " body.value.expires must be >= 1.0 and <= 3600.0;"
                " body.value.user must be text, not 1"
            ),
        ),
        (Register, {"value": [ALICE]}, "body.value must be an object, not a list"),
        (
            ObjectsResumed,
            {"value": [{"url": ALICE, "version": 1, "data": {}}, {"url": ALICE, "data": 1}]},
            "body.value[1].version is missing; body.value[1].data must be an object, not 1",
        ),
        (Free, {}, "body: exactly one of resource and childrenResources must be given"),
        (
            Free,
            {"resource": None, "childrenResources": []},
            "body.childrenResources must not be an empty list",
        ),
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
def test_a_refusal_names_the_field_as_the_peer_wrote_it(kind, fields, reported):
    with pytest.raises(BadMessageError) as caught:
        read_body(message(fields), kind)

    assert caught.value.reason == reported


def test_a_refusal_of_many_fields_stays_short():
    with pytest.raises(BadMessageError) as caught:
        read_body(message({"resources": [5] * 250}), Path)

    assert len(caught.value.reason) < 200


def test_null_is_absent():
    fields: JsonObject = {"resource": "key", "childrenResources": None}

    assert write_body(read_body(message(fields), Free)) == {"resource": "key"}


def test_the_code_of_a_refusal_is_kept():
    with pytest.raises(BadMessageError) as caught:
        read_body(message({"resources": [ALICE] * 257}), Path)

    assert caught.value.code is Code.TOO_LARGE


def test_a_value_out_of_range_is_refused_in_words():
    fields: JsonObject = {"url": ALICE, "runtime": ALICE, "expires": 0.5}
    with pytest.raises(BadMessageError, match="expires must be >= 1"):
        read_body(message(fields), Record)
