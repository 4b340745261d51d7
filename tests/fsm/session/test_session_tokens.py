"""The token of a session is replaced at each re-open, and the session outlives its node."""

import pytest

from fsm.session.node_session_io import Credentials, Granted
from specs.limits.protocol import SESSION_IDLE
from tests.fsm.session.test_node_session import asked, kind, lone_session

T0, T1, T2, T3 = "t0", "t1", "t2", "t3"


def opened(**more):
    core = lone_session()
    core.open(asked(1, None, T0, **more), 0.0)
    core.note_life(0.0)
    return core


def reopened(core, link, token, fresh):
    """Return the token that a re-open was given; None: it was refused."""
    [verdict] = [
        one
        for one in core.reopen(asked(link, token, fresh=fresh), float(link))
        if kind(one) in {"grant", "refuse"}
    ]
    return verdict.token if isinstance(verdict, Granted) else None


def test_a_reopen_replaces_the_token():
    """SEC-05."""
    core = opened()
    assert reopened(core, 2, T0, T1) == T1

    core.note_life(2.5)
    assert reopened(core, 3, T0, T2) is None
    assert reopened(core, 4, T1, T2) == T2


def test_an_older_token_is_good_while_the_answer_may_have_been_lost():
    core = opened()
    reopened(core, 2, T0, T1)
    core.lose_link(2, "lost", 2.0)

    assert reopened(core, 3, T0, T2) == T2
    assert reopened(core, 4, T0, T3) == T3
    assert not core.knows(T1), "nobody has got it"
    assert not core.knows(T2)


def test_the_use_of_the_newer_token_voids_the_older_one():
    """SEC-05."""
    core = opened()
    reopened(core, 2, T0, T1)
    assert reopened(core, 3, T1, T2) == T2

    assert reopened(core, 4, T0, T3) is None


def test_a_void_token_ends_no_session():
    core = opened()
    reopened(core, 2, T0, T1)
    core.note_life(2.0)
    reopened(core, 3, T0, T2)

    assert core.link == 2
    assert core.knows(T1)


def test_a_new_login_voids_both_tokens():
    alice = Credentials("user://a.ex/alice", "a.ex", 999.0)
    core = opened(credentials=alice)
    reopened(core, 2, T0, T1)
    core.open(asked(3, None, T2, credentials=alice), 3.0)

    assert [core.knows(one) for one in (T0, T1, T2)] == [False, False, True]


def test_upstreams_form_keeps_its_token_and_ends_with_the_node():
    core = opened(is_fixed=True)
    assert reopened(core, 2, T0, None) == T0
    assert reopened(core, 3, T0, T1) == T0
    assert core.kept is None
    assert not core.leave()[1].is_resumable


# ---- a node that starts again


def resumed(core):
    again = lone_session("k2")
    again.restore(core.kept, 100.0)
    return again


def test_a_later_process_resumes_a_session_and_says_that_it_owns_nothing():
    again = resumed(opened())
    assert again.state == "detached"

    granted = again.reopen(asked(1, T0, fresh=T1), 101.0)[-1]
    assert granted == Granted(1, T1, (), is_lasting=True, is_emptied=True, is_recovered=False)


def test_it_says_so_again_if_the_answer_was_lost():
    again = resumed(opened())
    reopened(again, 1, T0, T1)
    assert again.reopen(asked(2, T0, fresh=T2), 101.0)[-1].is_emptied

    again.note_life(102.0)
    assert not again.reopen(asked(3, T2, fresh=T3), 103.0)[-1].is_emptied


@pytest.mark.parametrize("lost", [T0, T1])
def test_a_later_process_takes_either_token_of_a_lost_answer(lost):
    core = opened()
    reopened(core, 2, T0, T1)
    assert reopened(resumed(core), 1, lost, T2) == T2


def test_what_is_stored_is_no_token():
    core = opened()
    assert T0.encode() not in (core.kept.digest, core.kept.previous)


def test_a_session_whose_token_came_to_nobody_is_opened_anew_by_a_later_process():
    core = lone_session()
    core.open(asked(1, None, T0), 0.0)
    again = resumed(core)
    assert again.open(asked(1, None, T1), 101.0)[-1].token == T1


def test_nobody_else_opens_a_resumed_session():
    again = resumed(opened())
    [refused] = again.open(asked(1, None, T1), 101.0)
    assert refused.code == 409


def test_credentials_end_a_resumed_session_when_they_would_have():
    core = opened(credentials=Credentials("user://a.ex/alice", "a.ex", 150.0))
    again = resumed(core)
    [refused] = again.reopen(asked(1, T0, fresh=T1), 151.0)
    assert refused.code == 401


def test_a_resumed_session_waits_for_its_runtime_as_long_as_any():
    again = resumed(opened())
    assert again.deadline() == 100.0 + SESSION_IDLE
    step, ended = again.time_over(again.deadline())
    assert (step.new, ended.is_resumable) == ("expired", False)


def test_a_node_that_leaves_keeps_sessions_and_a_goodbye_does_not():
    assert opened().leave()[1].is_resumable
    assert not opened().close(1)[1].is_resumable


def test_a_sign_of_life_changes_what_is_stored_once():
    core = lone_session()
    core.open(asked(1, None, T0), 0.0)
    assert [core.note_life(1.0), core.note_life(2.0)] == [True, False]
    reopened(core, 2, T0, T1)
    assert [core.note_life(3.0), core.note_life(4.0)] == [True, False]
