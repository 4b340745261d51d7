"""Order across a path switch at the end that sends (C-20, I-B7, I-R9)."""

import math

from fsm.bus.receiving_order import key_of
from fsm.bus.sending_order import Announce, PairPathCore
from fsm.p2p.transfer import Behind
from specs.limits.protocol import REPLY_TIMEOUT, SESSION_IDLE, STUB_QUEUE
from tests.support.wire.wire import A, B, C, answer, ask

NODE, LINK = "node-stub", "hyperty-runtime://a.ex/ra/p2prequester/1"


def sent(forwards):
    return [(forward.message.id, forward.route) for forward in forwards]


def test_on_one_path_nothing_waits():
    core = PairPathCore()
    assert sent(core.send(ask(1), NODE, 0.0)) == [(1, NODE)]
    assert sent(core.send(ask(2), NODE, 0.0)) == [(2, NODE)]
    assert core.deadline() == math.inf


def test_a_link_announces_once_what_went_by_the_node():
    core = PairPathCore()
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), NODE, 1.0)
    (third,) = core.send(ask(3), LINK, 1.5)
    assert (third.route, third.behind) == (LINK, Behind(A, B, 2, 2, 0.5))
    (fourth,) = core.send(ask(4), LINK, 1.5)
    assert fourth.behind is None


def test_an_answered_message_and_earlier_ones_are_not_awaited():
    core = PairPathCore()
    for number in (1, 2):
        core.send(ask(number), NODE, 0.0)
    assert core.settled(ask(2), 0.1, is_reached=True) == []
    (third,) = core.send(ask(3), LINK, 0.2)
    assert third.behind == Behind(A, B)


def test_an_answered_request_reports_nothing_of_answers_that_take_another_connection():
    core = PairPathCore()
    core.send(answer(ask(7, from_=B, to=A)), NODE, 0.0)
    core.send(ask(1), NODE, 0.0)
    core.settled(ask(1), 0.1, is_reached=True)
    (second,) = core.send(ask(2), LINK, 0.1)
    assert second.behind == Behind(A, B, f"{B}#7>{A}!200", 0, 0.1, frozenset({7}))


def test_what_was_sent_so_long_ago_that_nobody_waits_for_it_is_not_announced():
    core = PairPathCore()
    core.send(answer(ask(7, from_=B, to=A)), NODE, 0.0)
    core.send(ask(1), NODE, REPLY_TIMEOUT)
    (second,) = core.send(ask(2), LINK, REPLY_TIMEOUT)
    assert second.behind == Behind(A, B, 1, 1)


def test_a_message_refused_by_the_node_after_the_switch_is_announced_anew():
    core = PairPathCore()
    for number in (1, 2):
        core.send(ask(number), NODE, 0.0)
    core.send(ask(3), LINK, 0.0)
    assert core.settled(ask(2), 0.0) == [Announce(Behind(A, B, 1, 1), LINK)]
    assert core.settled(ask(1), 0.0) == [Announce(Behind(A, B), LINK)]


def test_a_request_answered_after_the_switch_is_not_announced_beside_an_answer():
    core = PairPathCore()
    core.send(answer(ask(7, from_=B, to=A)), NODE, 0.0)
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), LINK, 0.0)
    left = Behind(A, B, f"{B}#7>{A}!200", answers=frozenset({7}))
    assert core.settled(ask(1), 0.0) == [Announce(left, LINK)]


def test_answers_are_announced_by_name():
    core = PairPathCore()
    core.send(answer(ask(7)), NODE, 0.0)
    (following,) = core.send(answer(ask(8)), LINK, 0.0)
    assert following.behind == Behind(B, A, f"{A}#7>{B}!200", answers=frozenset({7}))


def test_a_repeated_message_reports_nothing_about_earlier_ones():
    """Its first copy may have come long ago, by another path."""
    core = PairPathCore()
    early = answer(ask(7, from_=B, to=A))
    for message in (early, ask(1), ask(2), early, ask(1)):
        core.send(message, NODE, 0.0)
    (third,) = core.send(ask(3), LINK, 0.0)
    assert (third.behind.last, third.behind.top) == (key_of(early), 2)


def test_from_a_link_to_the_node_the_stub_returns_a_message_and_the_rest_waits():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    (second,) = core.send(ask(2), NODE, 0.0)
    assert (second.route, second.then) == (LINK, NODE)
    assert core.send(ask(3), LINK, 0.0) == []
    assert core.returned((ask(2),), 0.0) == {f"{A}#2": NODE}
    assert sent(core.send(ask(2), NODE, 0.0)) == [(2, NODE), (3, LINK)]


def test_a_stub_that_gives_nothing_back_is_not_waited_for_for_ever():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    core.send(ask(2), NODE, 0.0)
    core.send(ask(3), NODE, 0.0)
    assert core.deadline() == REPLY_TIMEOUT
    assert core.tick(REPLY_TIMEOUT - 0.01) == []
    assert sent(core.tick(REPLY_TIMEOUT)) == [(3, NODE)]


def test_a_link_that_gave_messages_back_is_left_through_its_stub():
    """Messages of the pair may still wait there."""
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    core.link_ended(LINK, 0.0)
    (second,) = core.send(ask(2), NODE, 0.0)
    assert (second.route, second.then) == (LINK, NODE)


def test_a_link_that_gave_messages_back_announces_the_pair_anew():
    core = PairPathCore()
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), LINK, 0.0)
    core.link_ended(LINK, 0.0)
    (third,) = core.send(ask(3), LINK, 0.0)
    assert third.behind.last == 1
    (fourth,) = core.send(ask(4), LINK, 0.0)
    assert fourth.behind is None


def test_no_more_messages_wait_than_the_limit_allows():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    for number in range(2, STUB_QUEUE + 3):
        assert core.send(ask(number), NODE, 0.0) is not None
    assert core.send(ask(STUB_QUEUE + 3), NODE, 0.0) is None


def test_other_pairs_do_not_wait():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    core.send(ask(2), NODE, 0.0)
    assert sent(core.send(ask(1, to=C), NODE, 0.0)) == [(1, NODE)]


def test_returned_messages_go_before_younger_ones_in_their_order():
    core = PairPathCore()
    lost = [ask(1), ask(2)]
    for message in lost:
        core.send(message, LINK, 0.0)
    core.returned(tuple(lost), 0.0)
    assert core.send(ask(3), NODE, 0.1) == []
    assert core.send(ask(2), NODE, 0.1) == []
    (first,) = core.send(ask(1), NODE, 0.1)
    assert (first.route, first.then) == (LINK, NODE)
    core.returned((ask(1),), 0.1)
    assert sent(core.send(ask(1), NODE, 0.1)) == [(1, NODE), (2, NODE), (3, NODE)]


def test_a_message_given_back_twice_waits_once_and_goes_once():
    core = PairPathCore()
    for message in (ask(1), ask(2)):
        core.send(message, LINK, 0.0)
    core.returned((ask(1), ask(2)), 0.0)
    assert not core.waits(ask(2))
    core.send(ask(2), NODE, 0.1)
    core.returned((ask(2),), 0.1)
    # Its first copy waits, though the second has no route yet.
    assert core.waits(ask(2))
    core.send(ask(2), NODE, 0.1)
    core.send(ask(1), NODE, 0.1)
    core.returned((ask(1),), 0.1)
    assert sent(core.send(ask(1), NODE, 0.1)) == [(1, NODE), (2, NODE)]
    # It has gone: when it is given back once more, it does not wait yet.
    core.returned((ask(2),), 0.2)
    assert not core.waits(ask(2))


def test_younger_ones_wait_for_returned_messages_until_these_are_settled():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    core.returned((ask(1),), 0.0)
    core.send(ask(2), NODE, 0.1)
    assert core.tick(100.0) == []
    (second,) = core.settled(ask(1), 100.0)
    assert (second.message.id, second.route, second.then) == (2, LINK, NODE)


def test_a_lost_message_before_a_returned_one_precedes_it():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    core.send(ask(2), NODE, 0.0)
    core.returned((ask(1), ask(2)), 0.0)
    assert core.send(ask(2), NODE, 0.0) == []
    assert sent(core.send(ask(1), NODE, 0.0)) == [(1, NODE), (2, NODE)]


def test_pairs_that_fell_silent_are_forgotten():
    core = PairPathCore()
    for number in range(10):
        core.send(ask(1, to=f"{B}/{number}"), NODE, 0.0)
    core.send(ask(1, to=C), NODE, SESSION_IDLE)
    assert len(core._paths) == 1
