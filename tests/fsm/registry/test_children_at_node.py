"""Who may write children at a node: I-D10, SYN-24, MN-16."""

import pytest

from fsm.bus.node_routing import Admitted, NodeRouting, Refusal, ToRuntimes
from fsm.registry.node_rights import NodeRights, RightsRules
from fsm.session.node_session_io import PeerForm
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from tests.support.lone_paths import lone_addresses, lone_paths

RA, RB, RC = (f"hyperty-runtime://a.ex/{name}" for name in ("ra", "rb", "rc"))
HA, HB, HB2, HC = (f"hyperty://a.ex/{name}" for name in ("ha", "hb", "hb2", "hc"))
URL = "comm://a.ex/o"
TO = f"{URL}/children/resources"
WRITING = [MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE]


class Node:
    """A node with an object of RA, which HB of RB observes."""

    def __init__(self):
        allocation, self.subscriptions = lone_addresses(), lone_paths()
        for owner, addresses in ((RA, (HA, URL)), (RB, (HB, HB2)), (RC, (HC,))):
            allocation.allocate(owner, addresses)
        rights = NodeRights(
            "a.ex", allocation, dict.fromkeys((RA, RB, RC), PeerForm.OWN).get, RightsRules()
        )
        self.subscriptions.subscribe(RA, (TO,))
        self.subscriptions.subscribe(RB, (TO,), {TO})
        self.subscriptions.consent(URL, RB, HB)
        self.routing = NodeRouting("a.ex", rights, self.subscriptions, set())

    def admits(self, message, by):
        return self.routing.admit(message, by)


def said(sender, type_=MessageType.CREATE, name=None):
    body = {"resource": name or f"{sender}#1", "value": 1}
    return Message(1, type_, sender, TO, body)


def is_refused(found):
    return isinstance(found, Refusal) and (found.code, found.reason) == (
        Code.FORBIDDEN,
        DropReason.UNKNOWN_SOURCE,
    )


@pytest.mark.parametrize("type_", WRITING)
def test_the_reporter_and_observers_may_write_children_of_their_own(type_):
    node = Node()
    assert isinstance(node.admits(said(HA, type_), RA), Admitted)
    assert isinstance(node.admits(said(HB, type_), RB), Admitted)


@pytest.mark.parametrize("type_", WRITING)
def test_only_an_observer_writes_children_not_its_neighbour(type_):
    node = Node()
    assert is_refused(node.admits(said(HC, type_), RC))
    assert is_refused(node.admits(said(HB2, type_), RB))


@pytest.mark.parametrize("type_", WRITING)
def test_a_runtime_cannot_write_the_child_of_another(type_):
    node = Node()
    assert is_refused(node.admits(said(HB, type_, f"{HA}#1"), RB))
    assert is_refused(node.admits(said(HA, type_, f"{HB}#1"), RA))


def test_other_messages_about_children_are_refused():
    node = Node()
    for type_ in (MessageType.READ, MessageType.SUBSCRIBE, MessageType.EXECUTE):
        assert is_refused(node.admits(said(HB, type_), RB))


def test_the_sign_of_all_children_is_reported_by_their_object_alone():
    node, body = Node(), {"count": 0, "digest": "0" * 16}
    sign = Message(1, MessageType.UPDATE, URL, TO, body)
    assert isinstance(node.admits(sign, RA), Admitted)
    assert isinstance(node.admits(sign, RB), Refusal)
    assert is_refused(node.admits(Message(1, MessageType.UPDATE, HB, TO, body), RB))


def test_an_expelled_observer_writes_no_more_children():
    node = Node()
    node.subscriptions.withdraw(URL, RB, HB)
    assert is_refused(node.admits(said(HB), RB))


def test_a_child_goes_to_the_reporter_and_all_observers_once():
    """MN-16: once to each runtime; the author's own may have it back."""
    route = Node().routing.route(said(HB), RB)
    assert isinstance(route, ToRuntimes)
    assert sorted(route.runtimes) == [RA, RB]


def test_a_child_does_not_return_to_the_node_of_another_domain():
    node, there = Node(), "domain://msg-node.b.ex"
    node.subscriptions.subscribe(there, (TO,))
    route = node.routing.route(said("hyperty://b.ex/h"), there)
    assert sorted(route.runtimes) == [RA, RB]
