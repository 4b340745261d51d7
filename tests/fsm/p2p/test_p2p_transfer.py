"""A live link's transfer: numbered, acknowledged, handed back in order (P2P-15, I-P15, I-P22)."""

from fsm.p2p.transfer import Ack, Bye, Numbered, P2PTransferCore
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT
from specs.message import Message, MessageType

MANY = 10**6


def message(number):
    return Message(number, MessageType.READ, "hyperty://a.ex/1", "hyperty://b.ex/2")


def sending(count):
    core = P2PTransferCore(0.0)
    assert all(core.send(message(number + 1)) for number in range(count))
    return core


def taking(count):
    core = P2PTransferCore(0.0)
    for number in range(count):
        core.taken(core.received(message(number + 1), 1.0))
    return core


def test_an_acknowledgement_may_wait_for_a_message_to_go_with_it():
    core = taking(1)
    assert core.may_wait
    core.send(message(7))
    assert not core.may_wait
    assert core.take_output(MANY, 0.0) == [Numbered(1, message(7)), Ack(1)]
    assert not core.may_wait


def test_goodbye_waits_until_all_is_acknowledged():
    core = sending(1)
    core.say_goodbye()
    assert [type(item) for item in core.take_output(MANY, 0.0)] == [Numbered]
    assert not core.has_output
    core.heard(Ack(1), 1.0)
    assert core.take_output(MANY, 0.0) == [Bye()]
    assert not core.has_output


def test_a_message_is_turned_back_when_all_before_it_is_acknowledged():
    core = sending(1)
    core.take_output(MANY, 0.0)
    assert core.turn_back(message(2))
    assert core.take_turned() == []
    core.heard(Ack(1), 1.0)
    assert core.take_turned() == [message(2)]


def test_a_half_open_link_is_noticed_within_thirty_seconds():
    assert PING_PERIOD + PONG_TIMEOUT <= 30.0


def test_a_peer_that_acknowledges_some_frames_has_time_for_the_rest():
    core = sending(2)
    core.take_output(MANY, 1.0)
    core.heard(Ack(1), 9.0)
    assert core.deadline() == 9.0 + PONG_TIMEOUT
    core.heard(Ack(2), 10.0)
    assert core.deadline() == 10.0 + PING_PERIOD
