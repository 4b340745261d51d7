"""Subscriptions in another domain are known by the answers to their requests (PFY-03)."""

import pytest

from fsm.bus.transactions import HeldPaths
from specs.message import Message, MessageType

SM = "domain://msg-node.b.ex/sm"
ME = "hyperty-runtime://a.ex/ra/sm"


def request(kind, body, to=SM):
    return Message(1, kind, ME, to, body)


@pytest.fixture
def held():
    held = HeldPaths()
    held.record_success(
        request(MessageType.SUBSCRIBE, {"resources": ["comm://b.ex/1/changes", "x://b"]})
    )
    return held


def test_a_domain_is_held_until_the_last_resource_is_unsubscribed(held):
    assert held.holds("b.ex")
    assert not held.holds("a.ex")
    held.record_message(request(MessageType.UNSUBSCRIBE, {"resource": "x://b"}))
    assert held.holds("b.ex")
    held.record_message(request(MessageType.UNSUBSCRIBE, {"resources": ["comm://b.ex/1/changes"]}))
    assert not held.holds("b.ex")
    assert len(held) == 0
