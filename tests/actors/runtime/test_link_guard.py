"""What a runtime shows at its direct links, and by which keys it believes others."""

import attrs
import pytest

from actors.catalogue.trust_file import IssuerTrust, Trust
from actors.keys.key_set import read_keys
from actors.keys.runtime_key import make_runtime_key
from actors.runtime.link_guard import LinkGuard, Scope
from actors.runtime.own_identity import OwnIdentity
from fsm.p2p.dialling import Believed
from specs.bodies.object import Candidate, ConnectionData
from specs.identity import SenderIdentity, VouchedBy
from specs.limits.node import SESSION_LIFE
from tests.support.node.issuer import ISSUER, Issuer

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
BOND = Scope(signer=RB, reader=RA, object="connection://b.ex/1", answers="connection://a.ex/1")
DATA = ConnectionData(f"{RB}/p2phandler/1", candidates=(Candidate("tcp", "h:1", "00"),))
USER = "user://idp.ex/bob"


def shown_by(identity):
    """What Bob's runtime offers to Alice's."""
    return attrs.evolve(DATA, security=LinkGuard(identity).sign(DATA, BOND))


def alice(require=VouchedBy.DOMAIN, trust=None, **identity):
    own = OwnIdentity(make_runtime_key(), **identity)
    return LinkGuard(own, domain="a.ex", trust=trust, require=require)


def with_token(issuer, **claims):
    identity = OwnIdentity(make_runtime_key())
    bound = {"cnf": {"jkt": identity.key.thumbprint}, "sub": USER, "aud": "b.ex", "runtime": RB}
    identity.assertion = issuer.token(**{**bound, **claims})
    return identity


@pytest.mark.parametrize(
    ("audience", "claims", "is_believed"),
    [
        ((), {}, True),
        ((), {"aud": "domain://msg-node.b.ex"}, True),
        ((), {"aud": "elsewhere"}, False),
        (("elsewhere",), {"aud": "elsewhere"}, True),
        (("elsewhere",), {}, False),
        ((), {"runtime": RA}, False),
        ((), {"runtime": None}, False),
    ],
)
async def test_a_token_is_for_the_domain_and_the_runtime_of_the_peer_or_as_the_trust_file_says(
    audience, claims, is_believed, autojump_clock
):
    issuer = Issuer()
    trusted = IssuerTrust(read_keys(issuer.jwks()), frozenset(audience))
    guard = alice(VouchedBy.IDENTITY_PROVIDER, Trust({}, issuers={ISSUER: trusted}))
    standing = guard.standing(shown_by(with_token(issuer, **claims)), BOND)
    assert isinstance(standing, Believed) is is_believed
    if is_believed:
        assert standing.identity == SenderIdentity(RB, USER, VouchedBy.IDENTITY_PROVIDER)
        assert standing.until == ISSUED + SESSION_LIFE


ISSUED = 0
"""When the tokens of these tests are issued."""
