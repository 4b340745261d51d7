"""The one way in, whole messages and single fields: N1..N7, N12..N14, N16, MSG-18."""

import pytest

from specs.dialects.normalise import is_normal, normalise
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from tests.specs.dialects.raw_messages import HA, HB, MN, O, R, body_of, raw, refused


def test_a_message_in_normal_form_is_taken_as_it_is():
    assert is_normal(raw())
    assert normalise(raw()) == Message(7, MessageType.EXECUTE, HA, HB, {})


@pytest.mark.parametrize("written", ["subscribe", "SUBSCRIBE", "Subscribe"])
def test_n1_types_in_any_case(written):
    """MSG-02, C-01."""
    body = {"resources": [O]}
    assert normalise(raw(type=written, to=f"{MN}/sm", body=body)).type == "subscribe"


@pytest.mark.parametrize("written", ["", "publish", "re-open", None, 1, ["read"], "read "])
def test_n1_other_types_are_refused(written):
    """MSG-02: an unknown verb is 400."""
    refused(type=written)


@pytest.mark.parametrize(("written", "meant"), [("7", 7), (7, 7), (2**53 - 1, 2**53 - 1)])
def test_n2_decimal_text_is_an_id(written, meant):
    assert normalise(raw(id=written)).id == meant


@pytest.mark.parametrize(
    "written",
    [
        0,
        -1,
        "0",
        "-1",
        "+1",
        "007",
        " 7",
        "7.0",
        7.0,
        "x",
        "",
        True,
        None,
        [7],
        "\u0667",
        2**53,
        "9" * 40,
    ],
)
def test_n2_everything_else_is_refused(written):
    refused(id=written)


@pytest.mark.parametrize(
    ("written", "meant"), [("2XX", 200), ("1XX", 100), ("404", 404), (503, 503), ("error", 500)]
)
def test_n4_codes_become_numbers(written, meant):
    assert body_of("response", HB, {"code": written}) == {"code": meant}


@pytest.mark.parametrize("written", ["4XX", "ok", "", 99, 600, "99", True, None, 200.0, [200]])
def test_n4_other_codes_are_refused(written):
    refused(type="response", body={"code": written})


def test_n4_an_answer_has_a_code_and_a_request_none():
    """I-T10."""
    refused(type="response")
    refused(body={"code": 200})


@pytest.mark.parametrize(
    ("written", "meant"),
    [("desc", "description"), ("Message", "description"), ("Value", "value")],
)
def test_n5_names_of_common_fields(written, meant):
    assert body_of("response", HB, {"code": 200, written: "x"}) == {"code": 200, meant: "x"}


def test_n5_code_with_a_capital():
    assert body_of("response", HB, {"Code": "200"}) == {"code": 200}


def test_n5_two_spellings_may_agree_and_must_not_differ():
    assert body_of("execute", HB, {"desc": "x", "description": "x"}) == {"description": "x"}
    refused(body={"desc": "x", "description": "y"})


@pytest.mark.parametrize("field", ["from", "to"])
@pytest.mark.parametrize("value", [[HB], [HB, HA], None, 7, {}, "nonsense"])
def test_n6_ends_are_one_address_each(field, value):
    refused(**{field: value})


@pytest.mark.parametrize("field", ["id", "type", "from", "to", "body"])
def test_an_envelope_has_five_fields(field):
    """MSG-01. MSG-01."""
    message = raw()
    del message[field]
    with pytest.raises(BadMessageError):
        normalise(message)


@pytest.mark.parametrize("type_", ["read", "delete"])
def test_some_requests_need_no_body(type_):
    message = raw(type=type_)
    del message["body"]
    assert normalise(message).body == {}


@pytest.mark.parametrize("body", [None, [], "x", 1])
def test_a_body_is_an_object(body):
    refused(body=body)
    refused(type="read", body=body)


def test_n7_one_via_becomes_a_list():
    assert body_of("execute", HB, {"via": "runtime://a.ex/ra"}) == {"via": [R]}
    assert body_of("execute", HB, {"via": [R, f"{R}/x"]}) == {"via": [R, f"{R}/x"]}


@pytest.mark.parametrize("via", [7, None, [7], ["nonsense"], [[R]], {}])
def test_n7_a_via_that_is_no_address_is_refused(via):
    refused(body={"via": via})


def test_a_via_beyond_the_limit_is_too_large():
    assert refused(body={"via": [R] * 257}).code == 413


@pytest.mark.parametrize("written", ["runtime://a.ex/ra", "hyperty-runtime://A.EX/ra/", R])
@pytest.mark.parametrize("field", ["from", "to"])
def test_n12_ends_are_canonical(field, written):
    message = normalise(raw(**{field: written}))
    assert R in {message.from_, message.to}


@pytest.mark.parametrize("written", ["http://a.ex:80/x", f"{HA}//", "mn:/session", "hyperty://"])
def test_n12_an_invalid_address_is_refused(written):
    refused(to=written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("connected", "live"),
        ("connecting", "in-progress"),
        ("create", "created"),
        ("LIVE", "live"),
        ("Disconnected", "disconnected"),
        ("failed", "failed"),
        ("deployment-failed", "deployment-failed"),
        ("Hello", "Hello"),
        (7, 7),
    ],
)
def test_n13_status_words(written, meant):
    event = body_of("update", f"{R}/protostub/1/status", {"value": written})
    assert event == {"value": meant}


def test_n13_status_in_registrations():
    registry = "domain://registry.a.ex"
    value = {"value": {"status": "CONNECTED", "user": "X"}}
    assert body_of("update", registry, value) == {"value": {"status": "live", "user": "X"}}
    one = {"resource": HA, "attribute": "status", "value": "Disconnected"}
    assert body_of("update", registry, one)["value"] == "disconnected"
    other = {"resource": HA, "attribute": "name", "value": "LIVE"}
    assert body_of("update", registry, other) == other


def test_n13_elsewhere_words_stay():
    assert body_of("update", f"{O}/changes", {"value": "CONNECTED"}) == {"value": "CONNECTED"}
    assert body_of("update", f"{R}/x/status", {}) == {}


def test_n14_the_block_to_free():
    to = f"{MN}/address-allocation"
    assert body_of("delete", to, {"value": {"allocationKey": "k"}}) == {"resource": "k"}
    kept = {"value": {"allocationKey": "k", "x": 1}, "resource": "k"}
    assert body_of("delete", to, kept) == {"resource": "k", "value": {"x": 1}}
    assert body_of("delete", to, {"resource": "k"}) == {"resource": "k"}
    refused(type="delete", to=to, body={"resource": "a", "value": {"allocationKey": "b"}})


def test_n14_only_at_address_allocation():
    body = {"value": {"allocationKey": "k"}}
    assert body_of("delete", HB, body) == body


@pytest.mark.parametrize("part", ["hyperty-address-allocation", "object-address-allocation"])
def test_n16_one_allocation_address(part):
    assert normalise(raw(to=f"{MN}/{part}")).to == f"{MN}/address-allocation"
    answer = normalise(raw(type="response", **{"from": f"{MN}/{part}"}, body={"code": 200}))
    assert answer.from_ == f"{MN}/address-allocation"


def test_n16_only_at_a_node():
    assert normalise(raw(to=f"{R}/hyperty-address-allocation")).to.endswith(
        "/hyperty-address-allocation"
    )


def test_a_forwarded_message_comes_into_normal_form_too():
    """M-39, MSG-16."""
    inner = {"id": "2", "type": "SUBSCRIBE", "from": "hyperty://B.ex/hb", "to": f"{O}/"}
    message = normalise(raw(type="forward", body={"message": inner, "x": 1}))
    assert message.body == {
        "message": {"id": 2, "type": "subscribe", "from": HB, "to": O},
        "x": 1,
    }


@pytest.mark.parametrize("inner", [None, "x", {}, {"id": 1}])
def test_a_forward_wraps_a_message(inner):
    refused(type="forward", body={"message": inner})


def test_a_forward_in_a_forward_is_looked_at_once():
    inner = raw(type="forward", body={"message": {"anything": 1}})
    outer = normalise(raw(type="forward", body={"message": inner}))
    assert outer.body["message"]["body"] == {"message": {"anything": 1}}
