"""A session that somebody logged in for: whose it is, and until when (MN-04, MN-05, C-84)."""

import math

import pytest

from fsm.session.node_session_io import Credentials, Granted, Liveness, OutboundMessage
from specs.limits.protocol import PING_PERIOD, SESSION_IDLE
from specs.message import Message, MessageType
from tests.fsm.session.test_node_session import R, asked, asks, kind, lone_session

FIRST, SECOND = "1" * 64, "2" * 64


def kinds(effects):
    """Return the names of what is requested."""
    return [kind(effect) for effect in effects]


def alice(until=1000.0):
    return Credentials("user://idp.ex/alice", "idp", until)


def opened(credentials=None, liveness=Liveness.PINGED):
    core = lone_session(f"mn|{R}")
    core.open(asked(1, None, FIRST, liveness, credentials or alice()), 0.0)
    return core


def detached():
    core = opened()
    core.lose_link(1, "lost", 0.0)
    return core


def login(core, link, credentials, now=1.0):
    return core.open(asked(link, None, SECOND, Liveness.PINGED, credentials), now)


def test_the_owner_gets_a_session_by_a_login_and_the_old_token_is_void():
    core = opened()

    assert kinds(login(core, 2, alice())) == ["cut", "step", "step", "grant"]
    assert core.knows(SECOND)
    assert not core.knows(FIRST)
    assert kinds(core.reopen(asked(3, FIRST), 2.0)) == ["refuse"]
    assert core.link == 2


def test_the_owner_of_a_session_gets_waiting_messages():
    core = detached()
    entry = OutboundMessage(Message(1, MessageType.CREATE, "a://b/c", R), b"x")
    assert core.wait(entry) == [asks.queued(entry.message)]

    assert login(core, 2, alice())[-1] == Granted(
        2, SECOND, (entry,), is_lasting=True, is_recovered=True
    )


@pytest.mark.parametrize("make", [opened, detached])
@pytest.mark.parametrize(
    "outsider",
    [
        Credentials("user://idp.ex/bob", "idp", 1000.0),
        Credentials("user://idp.ex/alice", "another idp", 1000.0),
        None,
    ],
)
def test_the_session_is_given_to_no_other_user(make, outsider):
    core = make()

    assert [one.code for one in login(core, 2, outsider)] == [409]
    assert core.knows(FIRST)


def test_a_session_without_a_login_has_no_owner():
    core = lone_session()
    core.open(asked(1, None, FIRST), 0.0)

    assert [one.code for one in login(core, 2, alice())] == [409]


def test_a_claimed_session_has_no_owner():
    core = lone_session()
    core.claim(1, Liveness.BY_LINK, 0.0)

    assert [one.code for one in login(core, 2, alice())] == [409]
    assert not core.knows("")


@pytest.mark.parametrize("liveness", [*Liveness])
def test_an_idle_session_is_left_when_its_credentials_are_over(liveness):
    core = opened(alice(PING_PERIOD - 1), liveness)

    assert core.deadline() == PING_PERIOD - 1
    assert core.time_over(PING_PERIOD - 1.5) == []
    assert kinds(core.time_over(PING_PERIOD - 1)) == ["cut", "step"]
    assert core.state == "detached"
    assert core.deadline() == PING_PERIOD - 1 + SESSION_IDLE


def test_an_idle_login_session_is_pinged_before_that_as_any_other():
    core = opened(alice(1000.0))

    assert core.deadline() == PING_PERIOD
    assert kinds(core.time_over(PING_PERIOD)) == ["ping"]


@pytest.mark.parametrize("name", ["reopen", "open"])
@pytest.mark.parametrize(("now", "code"), [(999.9, None), (1000.0, 401)])
def test_the_token_of_a_session_opens_nothing_once_the_credentials_are_over(name, now, code):
    core = detached()
    verdict = getattr(core, name)(asked(2, FIRST, SECOND), now)[-1]

    assert getattr(verdict, "code", None) == code


def test_a_new_login_after_that_resumes_it():
    core = opened()
    core.time_over(1000.0)

    assert kinds(login(core, 2, alice(5000.0), 1100.0)) == ["step", "grant"]
    assert not core.is_over(1100.0)
    assert core.is_over(5000.0)


def test_a_login_over_the_link_that_has_it_lengthens_it():
    core = opened()

    assert login(core, 1, alice(5000.0)) == [
        Granted(1, SECOND, (), is_lasting=True, is_recovered=True)
    ]
    assert not core.is_over(4999.0)


def test_without_credentials_nothing_is_ever_over():
    core = lone_session()
    core.open(asked(1, None, FIRST, Liveness.BY_LINK), 0.0)

    assert not core.is_over(1e12)
    assert core.deadline() == math.inf
