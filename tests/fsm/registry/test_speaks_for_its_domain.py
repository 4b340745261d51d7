"""A session speaks for its own domain only, and a route wins over it (MN-13, MN-18, S14).

All pairs of a session and a name, in each state of the routes, with and without logins.
"""

import attrs

from fsm.bus.node_routing import NodeRouting
from fsm.registry.node_rights import Names, NodeRights, Ownership, RightsRules
from fsm.session.node_session_io import PeerForm
from specs.addresses.address import domain_of, message_node
from specs.identity import Identity
from tests.support.lone_paths import lone_addresses, lone_paths

OWN = "a.ex"
DOMAINS = (OWN, "b.ex", "c.ex", "sub.a.ex", "msg-node.b.ex")
STATED = {domain: f"hyperty://{domain}/stated" for domain in DOMAINS}


@attrs.frozen
class Session:
    """A session: of a node or runtime, in a form, with the login of an issuer or without one."""

    by: str
    form: PeerForm
    issuer: str | None = None

    @property
    def domain(self):
        return domain_of(self.by)


class Node:
    def __init__(self, session, route, *, has_login, names):
        peer = message_node(session.domain)
        self.forms = {session.by: session.form}
        if route == "a session of its node":
            self.forms[peer] = PeerForm.OWN
        self.allocation = lone_addresses()
        identity = session.issuer and Identity(
            user="user://u.ex/u",
            issuer=session.issuer,
            until=0.0,
            addresses=frozenset({STATED[session.domain]}),
        )
        rules = RightsRules(
            abroad={session.domain} if route == "a configured route" else set(),
            names=names,
            has_login=has_login,
        )
        brought = {session.domain} if route == "its node has left" else set()
        self.rights = NodeRights(
            OWN, self.allocation, self.forms.get, rules, lambda _: identity, brought
        )
        self.routing = NodeRouting(OWN, self.rights, lone_paths(), ())


def test_an_address_that_a_session_was_given_here_is_of_this_domain():
    """A runtime of another domain neither keeps nor claims one here."""
    session = Session("hyperty-runtime://b.ex/r", PeerForm.UPSTREAM)
    node = Node(session, "no route", has_login=False, names=Names.STRICT)
    node.allocation.allocate(session.by, (f"hyperty://{OWN}/1",))

    assert node.rights.ownership(f"hyperty://{OWN}/1", session.by) is Ownership.FOREIGN
    assert not node.rights.may_claim(f"comm://{OWN}/free", session.by)
    assert node.rights.may_claim(f"comm://{OWN}/free", f"hyperty-runtime://{OWN}/ra")
