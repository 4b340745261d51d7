"""The envelope: MSG-01..06, ADR-05, ADR-06, STB-06."""

import attrs
import pytest

from specs.errors import BadMessageError
from specs.message import (
    Message,
    MessageType,
    instance_id,
    refuse,
    reply_to,
    request_id,
    stamped,
)
from specs.reply_code import Code

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
O = "comm://a.ex/o1"  # noqa: E741 the protocol's name for an object
S = "hyperty-runtime://a.ex/ra/protostub/1"


def ask(**changes):
    message = Message(id=7, type=MessageType.READ, from_=HA, to=HB, body={"resource": "x"})
    return attrs.evolve(message, **changes)


def test_an_answer_swaps_the_ends_and_repeats_the_id():
    """MSG-04."""
    answer = reply_to(ask(), Code.OK, {"value": 1})
    assert (answer.id, answer.from_, answer.to) == (7, HB, HA)
    assert answer.body == {"code": 200, "value": 1}
    assert answer.is_response


def test_a_refusal_says_why():
    answer = refuse(ask(), Code.NOT_FOUND, "nobody there")
    assert (answer.code, answer.body["description"]) == (404, "nobody there")


def test_an_event_or_an_answer_is_not_answered():
    """ADR-05, MSG-04: exactly one final answer, and only to a request."""
    event = ask(type=MessageType.UPDATE, to=f"{O}/changes")
    for message in (event, reply_to(ask(), Code.OK)):
        with pytest.raises(BadMessageError, match="nothing answers"):
            reply_to(message, Code.OK)


def test_a_refused_event_may_be_reported_to_its_sender_but_not_answered():
    """SC-36 step 6."""
    assert refuse(ask(type=MessageType.UPDATE, to=f"{O}/changes"), 403, "no").code == 403
    with pytest.raises(BadMessageError, match="nothing answers"):
        refuse(reply_to(ask(), Code.OK), Code.FORBIDDEN, "no")


@pytest.mark.parametrize("code", [0, 99, 201, 418, 600])
def test_only_codes_in_use_are_answered(code):
    """MSG-17."""
    with pytest.raises(BadMessageError, match="is no reply code; in use are 100, 183, 200"):
        reply_to(ask(), code)
    with pytest.raises(BadMessageError, match="is no reply code"):
        refuse(ask(), code, "no")


def test_an_answer_has_one_code():
    assert reply_to(ask(), Code.OK, {"code": 200}).body == {"code": 200}
    with pytest.raises(BadMessageError, match="cannot say 200 and 404"):
        reply_to(ask(), Code.OK, {"code": 404})


@pytest.mark.parametrize(("code", "final"), [(100, False), (183, False), (200, True), (503, True)])
def test_codes_from_200_end_a_transaction(code, final):
    """MSG-05."""
    assert attrs.evolve(reply_to(ask(), Code.OK), body={"code": code}).is_final is final


def test_only_answers_are_final():
    assert not ask(body={"code": 200}).is_final
    assert ask().code == 0


@pytest.mark.parametrize(
    ("type_", "to", "event"),
    [
        (MessageType.CREATE, f"{S}/status", True),
        (MessageType.UPDATE, f"{S}/status", True),
        (MessageType.UPDATE, f"{O}/changes", True),
        (MessageType.UPDATE, f"{HB}/registration", True),
        (MessageType.UPDATE, f"{O}/observers", True),
        (MessageType.UPDATE, f"{O}/children/resources", True),
        (MessageType.DELETE, f"{O}/children/resources", True),
        (MessageType.CREATE, f"{O}/children/resources", False),
        (MessageType.DELETE, f"{O}/changes", False),
        (MessageType.READ, f"{S}/status", False),
        (MessageType.UPDATE, "domain://registry.a.ex", False),
    ],
)
def test_events_have_no_answer_and_requests_always_have_one(type_, to, event):
    """ADR-05, ADR-06 and the event marks of the catalogue."""
    message = ask(type=type_, to=to)
    assert (message.is_event, message.is_request) == (event, not event)


def test_a_message_is_one_instance_at_every_hop():
    assert instance_id(stamped(ask(), S)) == instance_id(ask())


def test_an_answer_names_the_request_it_answers():
    assert request_id(reply_to(ask(), Code.OK)) == instance_id(ask())


def test_a_provisional_answer_is_another_instance_than_the_final_one():
    assert instance_id(reply_to(ask(), Code.TRYING)) != instance_id(reply_to(ask(), Code.OK))


def test_stamping_appends_and_leaves_the_original_as_it_was():
    """STB-06, I-L3."""
    first = ask()
    twice = stamped(stamped(first, S), f"{S}2")
    assert twice.via == (S, f"{S}2")
    assert first.via == ()


@pytest.mark.parametrize(
    "via", [None, "x", [], [S], [S, "x"], ["x", S], [S, 5], [5], [S, 5, "x", None], [S, ["x"]]]
)
def test_the_last_stub_is_the_last_text_of_the_list(via):
    message = ask(body={} if via is None else {"via": via})
    for stub in (S, "x", ""):
        assert message.is_last_by(stub) == (message.via[-1:] == (stub,))


def test_a_via_that_is_no_list_counts_as_none():
    assert ask(body={"via": "x"}).via == ()


def test_a_message_has_what_it_is_made_of_and_keeps_it():
    message = ask(body={"value": 1})
    assert attrs.evolve(message) == message
    assert not message.is_response
    assert attrs.evolve(message, type=MessageType.RESPONSE).is_response
    for field in attrs.fields(type(message)):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(message, field.name, None)


def test_messages_without_bodies_share_none():
    first, second = (Message(1, MessageType.READ, "a", "b") for _ in range(2))
    assert first.body == {}
    assert first.body is not second.body
