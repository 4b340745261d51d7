"""The one way in: N1..N14, N16, MSG-18."""

from contextlib import suppress

import pytest
from hypothesis import given

from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.normalise import is_normal, normalise
from tests.support.wire_json import MANGLED, WIRE

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
R = "hyperty-runtime://a.ex/ra"
MN = "domain://msg-node.a.ex"
O = "comm://a.ex/o1"  # noqa: E741 the protocol's name for an object


def raw(**changes):
    return {"id": 7, "type": "execute", "from": HA, "to": HB, "body": {}, **changes}


def body_of(type_, to, body):
    return normalise(raw(type=type_, to=to, body=body)).body


def refused(**changes):
    with pytest.raises(BadMessageError) as caught:
        normalise(raw(**changes))
    assert str(caught.value)
    return caught.value


def test_a_message_in_normal_form_is_taken_as_it_is():
    assert is_normal(raw())
    assert normalise(raw()) == Message(7, MessageType.EXECUTE, HA, HB, {})


@pytest.mark.parametrize("written", ["subscribe", "SUBSCRIBE", "Subscribe"])
def test_n1_types_in_any_case(written):
    body = {"resources": [O]}
    assert normalise(raw(type=written, to=f"{MN}/sm", body=body)).type == "subscribe"


@pytest.mark.parametrize("written", ["", "publish", "re-open", None, 1, ["read"], "read "])
def test_n1_other_types_are_refused(written):
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
    """MSG-01."""
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


@pytest.mark.parametrize("key", ["resources", "subscribe", "unsubscribe", "resource"])
@pytest.mark.parametrize("to", [f"{MN}/sm", f"{R}/p2phandler/1", f"{R}/registry"])
@pytest.mark.parametrize("type_", ["subscribe", "unsubscribe"])
def test_n8_path_messages_list_resources(type_, to, key):
    assert body_of(type_, to, {key: [HA]}) == {"resources": [HA]}
    assert body_of(type_, to, {key: HA}) == {"resources": [HA]}


def test_n8_two_lists_may_agree_and_must_not_differ():
    assert body_of("subscribe", f"{MN}/sm", {"resources": [O], "subscribe": O}) == {
        "resources": [O]
    }
    refused(type="subscribe", to=f"{MN}/sm", body={"resources": [O], "subscribe": [HA]})


@pytest.mark.parametrize("to", [f"{R}/sm", f"{O}/subscription", HB])
def test_n8_other_subscribes_keep_their_resource(to):
    """M-36, M-42, M-45 are no path messages."""
    assert body_of("subscribe", to, {"resource": O}) == {"resource": O}


@pytest.mark.parametrize("listed", [[["x"]], [None], 7, {}, [7]])
def test_n8_a_list_holds_addresses(listed):
    refused(type="subscribe", to=f"{MN}/sm", body={"resources": listed})


def test_n9_the_subscriber_is_the_source():
    assert body_of("execute", HB, {"subscriber": HA}) == {"source": HA}
    refused(body={"subscriber": HA, "source": HB})


@pytest.mark.parametrize("source", [None, 7, [HA], "nonsense"])
def test_n9_a_source_is_one_address(source):
    refused(body={"source": source})


@pytest.mark.parametrize("type_", ["subscribe", "unsubscribe"])
def test_n10_the_seed_form_lists_changes_and_children(type_):
    """MN-17."""
    body = {"resource": O, "childrenResources": ["resources", "votes"]}
    assert body_of(type_, f"{MN}/sm", body) == {
        "resources": [f"{O}/changes", f"{O}/children/resources", f"{O}/children/votes"]
    }


def test_n10_only_at_a_node():
    body = {"source": HA, "childrenResources": ["resources"]}
    assert body_of("subscribe", f"{O}/subscription", body) == body


@pytest.mark.parametrize(
    "body",
    [
        {"childrenResources": ["resources"]},
        {"resource": O, "childrenResources": "resources"},
        {"resource": O, "childrenResources": [7]},
        {"resource": O, "childrenResources": [f"{O}/children/resources"]},
        {"resource": O, "childrenResources": ["a b"]},
        {"resource": [O], "childrenResources": []},
        {"resource": f"{O}/changes", "childrenResources": ["resources"]},
        {"resource": O, "childrenResources": ["resources"], "resources": [O]},
        {"resource": O, "childrenResources": ["x"] * 300},
    ],
)
def test_n10_what_is_not_clear_is_refused(body):
    refused(type="subscribe", to=f"{MN}/sm", body=body)


@pytest.mark.parametrize(
    "written", [f"{O}/resources/child", f"{O}/resources", f"{O}/children/resources"]
)
def test_n11_children_that_the_schema_names(written):
    assert normalise(raw(type="create", to=written)).to == f"{O}/children/resources"
    body = body_of("subscribe", f"{MN}/sm", {"resources": [written]})
    assert body == {"resources": [f"{O}/children/resources"]}


@pytest.mark.parametrize(
    "written",
    [f"{O}/votes", f"{O}/votes/child", "comm://a.ex/resources", "ctxt://a.ex/o1/resources", HA],
)
def test_n11_everything_else_stays(written):
    assert normalise(raw(type="create", to=written)).to == written


@pytest.mark.parametrize("written", ["runtime://a.ex/ra", "hyperty-runtime://A.EX/ra/", R])
@pytest.mark.parametrize("field", ["from", "to"])
def test_n12_ends_are_canonical(field, written):
    message = normalise(raw(**{field: written}))
    assert R in {message.from_, message.to}


@pytest.mark.parametrize("written", ["http://a.ex:80/x", f"{HA}//", "mn:/session", "hyperty://"])
def test_n12_what_is_no_address_is_refused(written):
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


@given(MANGLED)
def test_any_object_is_a_message_or_is_refused(mangled):
    with suppress(BadMessageError):
        assert isinstance(normalise(mangled), Message)


@given(WIRE)
def test_unknown_keys_survive_and_the_input_is_left_alone(wire):
    """MSG-09."""
    before = repr(wire)
    try:
        message = normalise(wire)
    except BadMessageError:
        return
    finally:
        assert repr(wire) == before
    unknown = {key: value for key, value in wire["body"].items() if key.startswith("x-")}
    assert unknown.items() <= message.body.items()


@given(WIRE)
def test_what_counts_as_normal_is_not_changed(wire):
    if is_normal(wire):
        message = normalise(wire)
        assert message.body == wire["body"]
        assert (message.from_, message.to, message.id) == (wire["from"], wire["to"], wire["id"])
