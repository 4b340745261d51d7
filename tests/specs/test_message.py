"""The envelope: MSG-01..06, ADR-05, ADR-06, STB-06."""

import attrs
import pytest

from specs.errors import BadMessageError
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
O = "comm://a.ex/o1"  # noqa: E741 the protocol's name for an object
S = "hyperty-runtime://a.ex/ra/protostub/1"


def ask(**changes):
    message = Message(id=7, type=MessageType.READ, from_=HA, to=HB, body={"resource": "x"})
    return attrs.evolve(message, **changes)


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
