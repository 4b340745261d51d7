"""What a trace tells of bodies: what the framework says, and no secret, no person, no hyperty."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.kit.trace import REDACTED, redacted_body
from actors.kit.trace_file import open_trace
from specs.message import Message, MessageType
from specs.trace import Op
from tests.support.trace.memory import MemoryTracer

R = "hyperty-runtime://a.ex/ra"
H, H2 = "hyperty://a.ex/ha", "hyperty://a.ex/hb"
DR, MN = "domain://registry.a.ex", "domain://msg-node.a.ex"
SECRET = "tell-nobody-1234"  # noqa: S105 - of nobody

RECORD = {
    "url": H,
    "runtime": R,
    "status": "live",
    "expires": 60,
    "p2pHandler": f"{R}/p2phandler/1",
    "user": "user://gmail.com/ann",
    "name": "Ann's phone",
}


def body_of(kind, from_, to, body):
    return redacted_body(Message(1, kind, from_, to, body))


def test_a_registration_is_reported_without_the_person():
    reported = json.loads(body_of(MessageType.CREATE, f"{R}/registry", DR, {"value": RECORD}))

    assert reported == {"value": {**RECORD, "user": REDACTED, "name": REDACTED}}


def test_addresses_that_are_allocated_are_reported():
    body = {"code": 200, "value": {"allocated": [H, H2]}}

    assert json.loads(body_of(MessageType.RESPONSE, f"{MN}/address-allocation", R, body)) == body


def test_a_block_of_addresses_is_reported_as_a_hash_in_both_requests():
    asked = {"scheme": "hyperty", "value": {"number": 1, "allocationKey": "Ann's phone"}}
    address = f"{MN}/address-allocation"

    allocated = json.loads(body_of(MessageType.CREATE, R, address, asked))
    freed = json.loads(body_of(MessageType.DELETE, R, address, {"resource": "Ann's phone"}))

    assert allocated["value"]["allocationKey"] == freed["resource"]
    assert "Ann" not in freed["resource"]


def test_registrations_and_unregistrations_are_recorded():
    body = {"operation": "add", "attributeType": "array", "value": [H]}

    reported = body_of(MessageType.UPDATE, f"{R}/registry", f"{R}/registry/changes", body)

    assert json.loads(reported) == body


@pytest.mark.parametrize(
    "resource", ["/hyperty/user/user://gmail.com/ann", "user://gmail.com/ann", "/hyperty/guid/1"]
)
def test_the_user_of_a_search_is_not_recorded(resource):
    reported = body_of(MessageType.READ, H, DR, {"resource": resource})

    assert json.loads(reported) == {"resource": REDACTED}


@pytest.mark.parametrize(
    ("from_", "to"),
    [
        (H, H2),
        (H, f"{R}/sm"),
        ("comm://a.ex/o1", "comm://a.ex/o1/changes"),
        (H, "domain://idm.a.ex"),
        (f"{R}/protostub/1", f"{MN}/session"),
        (f"{R}/graph-connector", "global://registry"),
    ],
)
def test_other_messages_are_not_reported(from_, to):
    assert body_of(MessageType.UPDATE, from_, to, {"value": "hello"}) is None


KEYS = st.sampled_from(["value", "params", "token", "identity", "assertion", "auth", "x"])


@given(
    st.recursive(
        st.just(SECRET.upper()) | st.just(f"{SECRET} ") | st.integers(-1000, 1000),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    )
)
def test_no_text_but_words_and_addresses_is_reported_however_deep(value):
    reported = body_of(MessageType.CREATE, f"{R}/registry", DR, {"value": value})

    assert SECRET not in reported.lower()


def test_internal_messages_are_recorded_without_bodies():
    assert body_of(MessageType.CREATE, f"{R}/registry", DR, {"number": 2**70}) is None


@pytest.mark.parametrize("bodies", [False, True])
def test_a_tracer_keeps_bodies_where_they_are_wanted(bodies):
    tracer = MemoryTracer(bodies=bodies)

    tracer.message("bus", Op.SUBMIT, Message(1, MessageType.READ, f"{R}/registry", DR, {}))

    assert tracer.facts[0].body == ("{}" if bodies else None)


@pytest.mark.parametrize("bodies", [False, True])
async def test_a_file_says_whether_it_has_bodies(tmp_path, bodies):
    message = Message(1, MessageType.READ, f"{R}/registry", DR, {"resource": H})
    async with open_trace(tmp_path, "ra", bodies=bodies) as tracer:
        tracer.message("bus", Op.SUBMIT, message)

    [part] = tmp_path.rglob("part-*")
    start, submitted, _ = map(orjson.loads, part.read_bytes().splitlines())

    assert start.get("kind") == ("bodies" if bodies else None)
    assert submitted.get("body") == ('{"resource":"hyperty://a.ex/ha"}' if bodies else None)
