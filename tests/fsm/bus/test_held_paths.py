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


def test_a_subscription_without_a_list_is_of_its_receiver():
    held, to = HeldPaths(), "comm://b.ex/1/subscription"
    held.record_success(request(MessageType.SUBSCRIBE, {}, to))
    held.record_success(request(MessageType.SUBSCRIBE, {}, to))
    assert len(held) == 1
    held.record_message(request(MessageType.UNSUBSCRIBE, {}, to))
    assert not held.holds("b.ex")


@pytest.mark.parametrize("kind", [MessageType.READ, MessageType.UNSUBSCRIBE, MessageType.EXECUTE])
def test_other_requests_hold_nothing(kind):
    held = HeldPaths()
    held.record_success(request(kind, {"resource": "comm://b.ex/1"}))
    assert len(held) == 0


def test_what_runtimes_follow_over_their_link_holds_no_stub():
    held = HeldPaths()
    held.record_success(request(MessageType.SUBSCRIBE, {}, "hyperty-runtime://b.ex/rb/registry"))
    assert not held.holds("b.ex")
