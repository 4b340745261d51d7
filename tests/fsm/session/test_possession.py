"""Challenges of a node, and what a stub does with them (M-14, M-15, RFC 7800)."""

import pytest

from specs.bodies.word import SessionMethod
from specs.limits.protocol import PING_PERIOD
from tests.fsm.session.test_stub_client import OPENED, answered, connecting, live, tell
from tests.support.link_calls import is_asked


def challenged(method, challenge="c"):
    return answered(method, 401, why="prove the key", challenge=challenge)


# ---- the stub's side


@pytest.mark.parametrize("method", [SessionMethod.PING, SessionMethod.CLOSE])
def test_a_challenge_to_anything_else_is_let_be(method):
    stub = live()
    assert stub.feed(challenged(method)) == []


# ---- statements


def stated(life):
    stub = connecting()
    stub.feed(tell.note_statement(life), OPENED)
    return stub


def busy_until(stub, moment):
    """Let time pass on a link that is never silent; return the controls that were asked for."""
    asked = []
    while stub.core.deadline() <= moment or stub.now + PING_PERIOD / 2 <= moment:
        stub.now = min(stub.now + PING_PERIOD / 2, max(stub.now, stub.core.deadline()))
        asked += [
            (stub.now, one.method)
            for one in stub.feed(tell.time_over(), tell.note_life())
            if is_asked(one, "ask")
        ]
    return asked


def test_a_statement_is_renewed_at_half_of_its_life_on_a_busy_link_too():
    assert busy_until(stated(1000.0), 520.0) == [(500.0, SessionMethod.RENEW)]
