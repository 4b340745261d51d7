"""Whether an offer or answer is believed, and what an end of a link does then."""

import attrs
import pytest

from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import (
    UNSIGNED,
    Believed,
    DialPolicy,
    Distrusted,
    Shown,
    Vouching,
    standing_of,
)
from fsm.p2p.link_end import LinkTerms, Opening, Role
from specs.bodies.object import Candidate, ConnectionData
from specs.identity import SenderIdentity, VouchedBy
from tests.support.link_calls import asks, tell, told_end
from tests.support.p2p_objects import believed

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH, PC = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1", f"{RB}/p2phandler/1/conn/1"
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"
POLICY = DialPolicy(("tcp",))
TCP = Candidate("tcp", "11.0.0.1:1", "00")
NONE, DOMAIN, PROVIDER = VouchedBy.NONE, VouchedBy.DOMAIN, VouchedBy.IDENTITY_PROVIDER
BOB, CAROL = "user://idp.ex/bob", "user://idp.ex/carol"

TOKEN = Vouching(thumbprint="key", user=BOB, runtime=RB, until=70.0)
UNBOUND = attrs.evolve(TOKEN, runtime=None)
STATED = Vouching(thumbprint="key", user=BOB, runtime=RB, until=90.0)


def shown(assertion=None, statement=None):
    held = {"assertion": assertion, "statement": statement}
    return Shown(is_signed=True, thumbprint="key", certificate="der", **held)


def known_as(standing):
    """User, voucher and end of who is believed; or None."""
    if isinstance(standing, Distrusted):
        return None
    assert standing.identity.runtime == RB
    return standing.identity.user, standing.identity.vouched_by, standing.until


FOREVER = float("inf")
NOBODY = (None, NONE, FOREVER)
BY_TOKEN, BY_DOMAIN = (BOB, PROVIDER, 70.0), (BOB, DOMAIN, 90.0)

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
CASES = [
    # assertion                                   statement                                 none       domain     provider
    (None,                                        None,                                     NOBODY,    None,      None),
    (None,                                        STATED,                                   BY_DOMAIN, BY_DOMAIN, None),
    (TOKEN,                                       None,                                     BY_TOKEN,  BY_TOKEN,  BY_TOKEN),
    (TOKEN,                                       STATED,                                   BY_TOKEN,  BY_TOKEN,  BY_TOKEN),
    ("it expired",                                STATED,                                   BY_DOMAIN, BY_DOMAIN, None),
    (TOKEN,                                       "its time is over",                       BY_TOKEN,  BY_TOKEN,  BY_TOKEN),
    (attrs.evolve(TOKEN, thumbprint="other"),     STATED,                                   BY_DOMAIN, BY_DOMAIN, None),
    (attrs.evolve(TOKEN, runtime=RA),             None,                                     NOBODY,    None,      None),
    (UNBOUND,                                     None,                                     NOBODY,    None,      None),
    (UNBOUND,                                     STATED,                                   BY_DOMAIN, BY_DOMAIN, None),
    (UNBOUND,                                     attrs.evolve(STATED, user=CAROL),         None,      None,      None),
    (None,                                        attrs.evolve(STATED, thumbprint="other"), NOBODY,    None,      None),
    (None,                                        attrs.evolve(STATED, runtime=RA),         NOBODY,    None,      None),
    (None,                                        attrs.evolve(STATED, runtime=None),       NOBODY,    None,      None),
    (TOKEN,                                       attrs.evolve(STATED, user=None),          BY_TOKEN,  BY_TOKEN,  BY_TOKEN),
    (TOKEN,                                       attrs.evolve(STATED, user=CAROL),         None,      None,      None),
]
# fmt: on


@pytest.mark.parametrize(("assertion", "statement", "none", "domain", "provider"), CASES)
def test_what_is_said_of_a_key_decides(assertion, statement, none, domain, provider):
    found = shown(assertion, statement)
    for require, expected in ((NONE, none), (DOMAIN, domain), (PROVIDER, provider)):
        assert known_as(standing_of(found, RB, require)) == expected


# ---- what an end does


def requester():
    core = told_end(LinkTerms(RA, RB, PQ, PH), Role.REQUESTER, POLICY)
    return core, [tell.start(), tell.object_created(), tell.peer_invited(C2, PH)], PH


def controller():
    core = told_end(LinkTerms(RB, RA, PC, PQ), Role.HANDLER, POLICY, C1)
    return core, [tell.start(), tell.row_reported(has_own_request=False)], PQ


BOTH = pytest.mark.parametrize("make", [requester, controller])


def data(owner, status=""):
    return ConnectionData(owner, status, None, (TCP,))


def begun(make):
    core, inputs, owner = make()
    for one in inputs:
        core.tell(one, 0.0)
    return core, owner


def live(make, standing=None):
    """An end with a live link to its peer, which it believes."""
    core, owner = begun(make)
    shown_now = believed(data(owner))
    core.tell(tell.peer_object_seen(shown_now.data, standing or shown_now.standing), 0.0)
    if make is controller:
        core.tell(tell.object_created(), 0.0)
    core.tell(tell.link_opened("L1", Opening.ACCEPTED), 0.0)
    assert core.state is State.LIVE
    return core, owner


UNTIL = Believed(SenderIdentity(RB, BOB, DOMAIN), "der", 50.0)


@BOTH
def test_nothing_counts_before_it_is_signed(make):
    core, owner = begun(make)
    assert core.tell(tell.peer_object_seen(data(owner), UNSIGNED), 0.0) == []
    assert core.tell(tell.link_opened("L1", Opening.ACCEPTED), 0.0) == [asks.close_link("L1")]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (("der", ""), ("der", ""), True),
        (("der", "print"), ("der", ""), True),
        (("", "print"), ("der", "print"), True),
        (("der", ""), ("", "print"), False),
        (("der", "print"), ("der", "another"), False),
        (("der", "print"), ("another", "print"), False),
        (("", ""), ("", ""), False),
    ],
)
def test_an_end_is_known_by_a_certificate_that_it_has_named_before(first, second, is_same):
    """One that names none of them may be another end that is believed as well."""
    one, other = (
        Believed(SenderIdentity(RB), certificate, fingerprint=fingerprint)
        for certificate, fingerprint in (first, second)
    )
    assert one.is_same_end(other) is is_same


@BOTH
def test_a_newer_statement_lets_a_live_link_last(make):
    core, owner = live(make, UNTIL)
    newer = attrs.evolve(UNTIL, until=90.0)
    assert core.tell(tell.peer_object_seen(data(owner), newer), 2.0) == [asks.pin(newer)]
    assert core.deadline() == 90.0


def test_an_offer_of_an_earlier_negotiation_is_void():
    core, owner = live(controller)
    core.tell(believed(data(owner, "negotiation-2")), 1.0)
    dialled = core.tell(believed(data(owner, "unreachable-1")), 1.0)
    assert dialled == []
