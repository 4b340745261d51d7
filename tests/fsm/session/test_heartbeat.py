"""When a silent peer is asked, and when it is given up (RELIABILITY R8)."""

from fsm.session.node_session import Beat, Heartbeat
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT


def test_a_silent_peer_is_asked_once_and_then_given_up_within_30_seconds():
    heart = Heartbeat()

    assert heart.deadline(0.0) == PING_PERIOD
    assert heart.look(0.0, PING_PERIOD) is Beat.PING
    assert heart.deadline(0.0) == PING_PERIOD + PONG_TIMEOUT == 30.0
    assert heart.look(0.0, 30.0) is Beat.GIVE_UP


def test_an_answer_buys_another_period():
    heart = Heartbeat()
    heart.look(0.0, PING_PERIOD)

    assert heart.deadline(21.0) == 21.0 + PING_PERIOD
    assert heart.look(21.0, 30.0) is Beat.WAIT
    assert heart.look(21.0, 41.0) is Beat.PING


def test_a_peer_that_answers_each_question_is_never_given_up():
    heart, heard = Heartbeat(), 0.0
    for _ in range(30):
        asked = heart.deadline(heard)
        assert heart.look(heard, asked) is Beat.PING
        heard = asked + PONG_TIMEOUT
    assert heard > 600.0


def test_an_answer_at_the_moment_of_the_question_counts():
    heart = Heartbeat()
    heart.look(0.0, PING_PERIOD)

    assert heart.deadline(PING_PERIOD) == 2 * PING_PERIOD


def test_a_peer_that_sends_is_not_pinged():
    heart = Heartbeat()

    assert all(heart.look(now - 1.0, now) is Beat.WAIT for now in range(1, 1000))
