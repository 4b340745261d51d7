"""Who may write children at a node: I-D10, SYN-24, MN-16."""

from fsm.bus.node_routing import NodeRouting, ToRuntimes
from fsm.registry.node_rights import NodeRights, RightsRules
from fsm.session.node_session_io import PeerForm
from specs.message import Message, MessageType
from tests.support.lone_paths import lone_addresses, lone_paths

RA, RB, RC = (f"hyperty-runtime://a.ex/{name}" for name in ("ra", "rb", "rc"))
HA, HB, HB2, HC = (f"hyperty://a.ex/{name}" for name in ("ha", "hb", "hb2", "hc"))
URL = "comm://a.ex/o"
TO = f"{URL}/children/resources"


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


def test_a_child_does_not_return_to_the_node_of_another_domain():
    node, there = Node(), "domain://msg-node.b.ex"
    node.subscriptions.subscribe(there, (TO,))
    route = node.routing.route(said("hyperty://b.ex/h"), there)
    assert sorted(route.runtimes) == [RA, RB]


def test_a_child_goes_to_the_reporter_and_all_observers_once():
    """MN-16: once to each runtime; the author's own may have it back."""
    route = Node().routing.route(said(HB), RB)
    assert isinstance(route, ToRuntimes)
    assert sorted(route.runtimes) == [RA, RB]
