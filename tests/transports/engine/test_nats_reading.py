"""A consumer of NATS gives all messages, or is made again."""

import pytest

from transports.engine.contract import Counts, Current, EngineDownError, Health, Put, Row
from transports.engine.nats import NatsEngine
from transports.engine.nats_follow import NatsStream, NatsWatch, Reading
from transports.engine.nats_rows import stored_message
from transports.nats.client import Missing
from transports.nats.connection import ServerUrl, Terms
from transports.nats.wire import Delivery, NatsError

TERMS = Terms((ServerUrl.read("nats://127.0.0.1"),), "n")
ACK = b"$JS.ACK.stream.consumer.1.%d.%d.1700000000.%d"
OF_A_DOMAIN = b"$JS.ACK.hub.hash.stream.consumer.1.%d.%d.1700000000.%d.token"


def reading(last=100):
    return Reading(b"inbox.", "now", last, last, is_whole=True)


def message(number, place, left, form=ACK):
    return Delivery(1, b"$KV.a.b", form % (number, place, left), b"", b"x")


def said(code, subject=b"inbox.1"):
    return Delivery(1, subject, b"", b"NATS/1.0 " + code + b"\r\n\r\n", b"")


@pytest.mark.parametrize("form", [ACK, OF_A_DOMAIN])
def test_messages_have_numbers(form):
    one = reading()
    assert [one.number(message(at, at, 9, form)) for at in (1, 2)] == [1, 2]


def test_a_message_that_is_missing_is_noticed():
    one = reading()
    one.number(message(1, 1, 9))
    with pytest.raises(NatsError, match="lost"):
        one.number(message(3, 3, 9))


@pytest.mark.parametrize("reply", [b"", b"a.b.c", b"$JS.ACK.s.c.1.x.1.0.0"])
def test_a_message_without_a_number_is_refused(reply):
    with pytest.raises(NatsError, match="number"):
        reading().number(Delivery(1, b"$KV.a.b", reply, b"", b"x"))


@pytest.mark.parametrize(
    ("deliveries", "is_caught_up"),
    [
        ([], False),
        ([message(1, 1, 9)], False),
        # A server that has come back lacks the others still.
        ([message(1, 1, 0)], False),
        ([message(100, 1, 9)], True),
        ([said(b"100 Idle Heartbeat", b"inbox.0")], True),
        ([said(b"404 No Messages")], True),
        ([said(b"408 Request Timeout")], True),
        ([said(b"409 Message Size Exceeds MaxBytes")], False),
        ([said(b"408 Request Timeout", b"inbox.0")], False),
    ],
)
def test_it_is_caught_up_when_nothing_older_can_come(deliveries, is_caught_up):
    one = reading()
    one.pull()
    for delivery in deliveries:
        one.number(delivery)
    assert one.is_caught_up is is_caught_up


@pytest.mark.parametrize(
    "code", [b"408 Request Timeout", b"404 No Messages", b"409 Message Size Exceeds MaxBytes"]
)
def test_it_asks_again_when_what_it_asked_for_is_over(code):
    one = reading()
    assert [one.pull(), one.pull()] == [b"inbox.1", None]
    one.number(said(code))
    assert one.pull() == b"inbox.2"


@pytest.mark.parametrize("code", [b"409 Consumer Deleted", b"503"])
def test_it_ends_when_the_consumer_is_gone(code):
    one = reading()
    one.pull()
    with pytest.raises(NatsError, match="gone"):
        one.number(said(code))


async def test_a_deletion_is_given_of_a_row_too_that_was_replaced_before_it_was_given():
    """Who has written that row knows it from the answer, and from nothing else that it has gone."""
    stream = NatsStream(TERMS, "a.ex", Counts())
    watch = NatsWatch(stream, "row/")
    mark = Delivery(
        1, b"$KV.protofly-a_ex.row.1", b"", b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n", b""
    )
    one = reading(last=5)
    one.is_caught_up = True
    assert [*watch._items(one, [(5, mark)])] == [Row("row/1", None, 5), Current()]


@pytest.mark.parametrize("missing", list(Missing))
async def test_what_a_write_conflicts_with_is_not_guessed(monkeypatch, missing):
    """A row that cannot be read is not reported as removed: a node would give its session up."""
    engine = NatsEngine(TERMS, "a.ex")
    engine.stream.health = Health(is_up=True)
    refused = b'{"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence"}}'
    answers = iter([[Delivery(1, b"inbox", b"", b"", refused)], [missing]])

    async def ask_all(_):
        return next(answers)

    monkeypatch.setattr(engine.stream.client, "ask_all", ask_all)
    (written,) = await engine.put_all([Put("session/r", b"{}", 4)])
    assert isinstance(written, EngineDownError)
    assert not written.is_unknown


STORED = {"subject": "$KV.a.b", "seq": 7, "hdrs": "aA==", "data": "eA=="}


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ({"message": STORED}, 7),
        ({"message": {**STORED, "hdrs": ""}}, 7),
        ({"error": {"code": 404, "err_code": 10037, "description": "no message found"}}, None),
    ],
)
def test_a_message_that_is_not_stored_is_none(answer, number):
    message = stored_message(answer)
    assert (None if message is None else message.number) == number


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}, "stream"),
        ({"error": {"code": 503, "err_code": 10008, "description": "unavailable"}}, "unavailable"),
        ({"message": {**STORED, "data": "x"}}, "base64"),
        ({}, "message"),
    ],
)
def test_any_other_answer_is_a_failure_and_its_reason_is_told_once(answer, why):
    with pytest.raises(NatsError, match=why) as caught:
        stored_message(answer)
    assert "JetStream gives no message" not in str(caught.value)
