"""A live link's transfer: numbered, acknowledged, handed back in order (P2P-15, I-P15, I-P22)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.p2p.transfer import Ack, Bye, Numbered, P2PTransferCore, Ping, Pong, TransferEnd
from specs.limits.protocol import LINK_WINDOW, PING_PERIOD, PONG_TIMEOUT, REPLY_TIMEOUT, STUB_QUEUE
from specs.message import Message, MessageType

MANY = 10**6


def message(number):
    return Message(number, MessageType.READ, "hyperty://a.ex/1", "hyperty://b.ex/2")


def sending(count):
    core = P2PTransferCore(0.0)
    assert all(core.send(message(number + 1)) for number in range(count))
    return core


def test_messages_are_numbered_from_one_in_order():
    written = sending(3).take_output(MANY, 0.0)
    assert [(item.seq, item.message.id) for item in written] == [(1, 1), (2, 2), (3, 3)]


def test_no_more_than_the_window_is_unacknowledged():
    core = sending(STUB_QUEUE)
    written = core.take_output(MANY, 0.0)
    assert len(written) == LINK_WINDOW
    assert all(core.send(message(number)) for number in range(1, 3))
    assert not core.has_output
    core.heard(Ack(1), 1.0)
    assert len(core.take_output(MANY, 0.0)) == 1


def test_too_many_waiting_messages_are_not_taken():
    assert not sending(STUB_QUEUE).send(message(1))


def test_a_dead_link_owes_what_was_not_acknowledged_and_what_still_waits():
    core = sending(5)
    core.take_output(3, 0.0)
    core.heard(Ack(2), 1.0)
    assert [each.id for each in core.owed()] == [3, 4, 5]
    assert core.owed() == []


def test_only_what_the_bus_has_taken_is_acknowledged():
    core = P2PTransferCore(0.0)
    first = core.received(message(1), 1.0)
    assert not core.has_output
    core.taken(first)
    core.taken(core.received(message(2), 1.0))
    assert core.take_output(MANY, 0.0) == [Ack(2)]
    assert not core.has_output


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


@pytest.mark.parametrize("press", [P2PTransferCore.insist_on_goodbye, P2PTransferCore.say_goodbye])
def test_a_link_ends_with_a_goodbye(press):
    core = taking(1)
    press(core)
    assert not core.may_wait
    assert core.take_output(MANY, 0.0) == [Ack(1), Bye()]


def test_a_transfer_waits_for_nothing_before_the_peer_has_to():
    assert taking(LINK_WINDOW // 8 - 1).may_wait
    assert not taking(LINK_WINDOW // 8).may_wait


def test_an_invalid_message_is_counted_as_well():
    core = P2PTransferCore(0.0)
    core.skipped(1.0)
    assert core.take_output(MANY, 0.0) == [Ack(1)]


def test_an_acknowledgement_of_what_was_never_sent_ends_the_link():
    core = sending(1)
    core.heard(Ack(1), 1.0)
    assert core.end is TransferEnd.PROTOCOL


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


def test_goodbye_can_be_insisted_on():
    core = sending(1)
    core.say_goodbye()
    core.take_output(MANY, 0.0)
    core.insist_on_goodbye()
    assert core.take_output(MANY, 0.0) == [Bye()]
    assert [each.id for each in core.owed()] == [1]


def test_a_peer_that_says_goodbye_ends_the_link():
    core = P2PTransferCore(0.0)
    core.heard(Bye(), 1.0)
    assert core.end is TransferEnd.BYE


def test_a_silent_peer_is_pinged_and_then_given_up():
    core = P2PTransferCore(0.0)
    core.time_passed(PING_PERIOD)
    assert core.take_output(MANY, 0.0) == [Ping()]
    core.time_passed(core.deadline())
    assert core.end is TransferEnd.SILENT
    assert core.deadline() == float("inf")


def test_a_half_open_link_is_noticed_within_thirty_seconds():
    assert PING_PERIOD + PONG_TIMEOUT <= 30.0


@pytest.mark.parametrize("sign", [Pong(), Ack(0), Ping()])
def test_any_sign_of_life_calms_the_watch(sign):
    core = P2PTransferCore(0.0)
    core.time_passed(PING_PERIOD)
    core.heard(sign, PING_PERIOD + 1)
    assert core.deadline() == PING_PERIOD + 1 + PING_PERIOD
    assert core.end is None


@pytest.mark.parametrize("is_message", [True, False], ids=["a message", "no message"])
def test_any_line_calms_the_watch(is_message):
    core = P2PTransferCore(0.0)
    core.time_passed(PING_PERIOD)
    if is_message:
        core.received(message(1), PING_PERIOD + 1)
    else:
        core.skipped(PING_PERIOD + 1)
    assert core.deadline() == PING_PERIOD + 1 + PING_PERIOD


def test_pings_are_answered_but_not_one_by_one():
    core = P2PTransferCore(0.0)
    core.heard(Ping(), 1.0)
    core.heard(Ping(), 1.0)
    assert core.take_output(MANY, 0.0) == [Pong()]


@given(cut=st.integers(0, 40), batch=st.integers(1, 9), acked=st.integers(1, 5))
def test_cut_anywhere_nothing_is_lost_and_order_is_kept(cut, batch, acked):
    sender, receiver = sending(40), P2PTransferCore(0.0)
    arrived = []
    while len(arrived) < cut:
        for item in sender.take_output(batch, 0.0):
            arrived.append(item.message.id)
            receiver.taken(receiver.received(item.message, 1.0))
        if len(arrived) % acked == 0:
            for control in receiver.take_output(MANY, 0.0):
                sender.heard(control, 1.0)
    owed = [each.id for each in sender.owed()]
    assert list(dict.fromkeys(arrived + owed)) == list(range(1, 41))
    assert owed == sorted(owed)


def test_an_unacknowledged_message_is_an_unanswered_ping():
    """R10: an answer must be had before its asker gives up, by another way if need be."""
    core = sending(2)
    core.take_output(MANY, 1.0)
    core.received(message(9), 9.0)
    assert core.deadline() == 1.0 + PONG_TIMEOUT < REPLY_TIMEOUT
    core.time_passed(core.deadline())
    assert core.end is TransferEnd.SILENT
    assert [each.id for each in core.owed()] == [1, 2]


def test_a_peer_that_acknowledges_some_frames_has_time_for_the_rest():
    core = sending(2)
    core.take_output(MANY, 1.0)
    core.heard(Ack(1), 9.0)
    assert core.deadline() == 9.0 + PONG_TIMEOUT
    core.heard(Ack(2), 10.0)
    assert core.deadline() == 10.0 + PING_PERIOD
