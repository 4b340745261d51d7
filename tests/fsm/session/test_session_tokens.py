"""The token of a session is replaced at each re-open, and the session outlives its node."""

from fsm.session.node_session_io import Granted
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


def test_upstreams_form_keeps_its_token_and_ends_with_the_node():
    core = opened(is_fixed=True)
    assert reopened(core, 2, T0, None) == T0
    assert reopened(core, 3, T0, T1) == T0
    assert core.kept is None
    assert not core.leave()[1].is_resumable
