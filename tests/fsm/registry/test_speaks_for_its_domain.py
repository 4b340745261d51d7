"""A session speaks for its own domain only, and a route wins over it (MN-13, MN-18, S14).

All pairs of a session and a name, in each state of the routes, with and without logins.
"""

from itertools import product

import attrs
import pytest

from fsm.bus.node_routing import Admitted, NodeRouting, ToRuntimes
from fsm.registry.node_rights import Names, NodeRights, Ownership, RightsRules
from fsm.session.node_session_io import PeerForm
from specs.addresses.address import canonical, domain_of, message_node
from specs.identity import Identity
from specs.message import Message, MessageType
from tests.support.lone_paths import lone_addresses, lone_paths

OWN = "a.ex"
DOMAINS = (OWN, "b.ex", "c.ex", "sub.a.ex", "msg-node.b.ex")
OTHERS = DOMAINS[1:]
STATED = {domain: f"hyperty://{domain}/stated" for domain in DOMAINS}
NAMES = {
    domain: [
        f"hyperty://{domain}/stated", f"hyperty://{domain}/stated/x", f"hyperty://{domain}/free",
        f"comm://{domain}/free", f"comm://{domain}/free/changes", f"user://{domain}/u",
        f"hyperty-runtime://{domain}/r", f"hyperty-runtime://{domain}/r/p2phandler/1",
        f"hyperty-runtime://{domain}/victim/sm", f"hyperty-runtime://{domain}/registry/1",
        f"domain://msg-node.{domain}", f"domain://registry.{domain}",
    ]
    for domain in DOMAINS
}  # fmt: skip


@attrs.frozen
class Session:
    """A session: of a node or runtime, in a form, with the login of an issuer or without one."""

    by: str
    form: PeerForm
    issuer: str | None = None

    @property
    def domain(self):
        return domain_of(self.by)


def runtimes(domain):
    issuers = (None, OWN, domain, f"https://idp.{domain}:443/x", f"evil-{domain}", "ex")
    for form, issuer in product(PeerForm, issuers):
        yield Session(f"hyperty-runtime://{domain}/r", form, issuer)


SESSIONS = [
    *(Session(message_node(domain), PeerForm.OWN) for domain in OTHERS),
    *(session for domain in DOMAINS for session in runtimes(domain)),
]
ROUTES = ("no route", "a configured route", "a session of its node", "its node has left")


def believed(session, route, *, has_login):
    """The rule of the documents, written apart from the code that decides."""
    if session.domain == OWN or session.by == message_node(session.domain):
        return True
    if route in {"a configured route", "a session of its node"}:
        return False
    if has_login:
        return session.issuer in {session.domain, f"https://idp.{session.domain}:443/x"}
    return route == "no route"


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


CASES = pytest.mark.parametrize(
    ("has_login", "names", "route"), list(product((True, False), Names, ROUTES))
)


@CASES
def test_a_session_owns_no_name_of_another_domain_and_none_where_it_is_not_believed(
    has_login, names, route
):
    for session in SESSIONS:
        if route == "a session of its node" and session.domain == OWN:
            continue
        node = Node(session, route, has_login=has_login, names=names)
        is_believed = believed(session, route, has_login=has_login)
        assert node.rights.may_speak(session.by) is is_believed, session
        for domain in DOMAINS:
            for name in map(canonical, NAMES[domain]):
                owned = node.rights.ownership(name, session.by)
                case = (session, name)
                if domain_of(name) != session.domain or not is_believed:
                    assert owned is Ownership.FOREIGN, case
                elif session.domain != OWN and owned is Ownership.BINDABLE and has_login:
                    assert name.startswith(STATED[domain]), case
                elif session.by.startswith("domain://"):
                    assert owned is Ownership.OWN, case
                elif session.domain == OWN and owned is Ownership.BINDABLE:
                    # A component of a runtime without a session, in upstream's forms (C-43).
                    assert name.startswith(f"hyperty-runtime://{OWN}/"), case


@CASES
def test_what_is_sent_to_a_domain_takes_the_route_if_there_is_one(has_login, names, route):
    """Whatever a runtime of it has bound or opened before."""
    for session in SESSIONS:
        if session.domain == OWN:
            continue
        node = Node(session, route, has_login=has_login, names=names)
        bound = f"hyperty://{session.domain}/stated"
        node.allocation.bind(session.by, bound)
        for name in (bound, f"{session.by}/p2phandler/1"):
            message = Message(1, MessageType.READ, f"hyperty-runtime://{OWN}/ra", name, {})
            match node.routing.route(message, f"hyperty-runtime://{OWN}/ra"):
                case ToRuntimes((to,)):
                    has_route = route in {"a configured route", "a session of its node"}
                    is_of_node = session.by == message_node(session.domain)
                    peer = message_node(session.domain)
                    assert to == (peer if has_route or is_of_node else session.by), (session, name)
                case _:
                    assert (route, has_login) == ("its node has left", False), (session, name)


@CASES
def test_the_messages_of_a_session_that_is_not_believed_are_not_admitted(has_login, names, route):
    """Not even those from its own address, nor answers for what it is subscribed to."""
    for session in SESSIONS:
        node = Node(session, route, has_login=has_login, names=names)
        message = Message(1, MessageType.READ, f"{session.by}/ua", f"hyperty://{OWN}/h", {})
        is_admitted = isinstance(node.routing.admit(message, session.by), Admitted)
        assert is_admitted is believed(session, route, has_login=has_login), session


def test_an_address_that_a_session_was_given_here_is_of_this_domain():
    """A runtime of another domain neither keeps nor claims one here."""
    session = Session("hyperty-runtime://b.ex/r", PeerForm.UPSTREAM)
    node = Node(session, "no route", has_login=False, names=Names.STRICT)
    node.allocation.allocate(session.by, (f"hyperty://{OWN}/1",))

    assert node.rights.ownership(f"hyperty://{OWN}/1", session.by) is Ownership.FOREIGN
    assert not node.rights.may_claim(f"comm://{OWN}/free", session.by)
    assert node.rights.may_claim(f"comm://{OWN}/free", f"hyperty-runtime://{OWN}/ra")
