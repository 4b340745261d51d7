"""What a runtime shows at its direct links, and by which keys it believes others."""

import hashlib
from base64 import urlsafe_b64decode
from types import SimpleNamespace

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.trust_file import DomainTrust, IssuerTrust, KeyTrust, Trust
from actors.keys.base64url import write_base64url
from actors.keys.certificate import make_certificate
from actors.keys.key_set import read_keys
from actors.keys.runtime_key import make_runtime_key
from actors.keys.signing import make_key
from actors.keys.token import Statement, write_statement
from actors.kit.http_client import ServerUrl
from actors.runtime import link_guard
from actors.runtime.config import RuntimeConfig
from actors.runtime.link_guard import LinkGuard, Scope, _signed_texts
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.stubs.credentials import GivenToken
from fsm.p2p.dialling import Believed, Distrusted
from fsm.p2p.link_end import LinkEnd
from specs.bodies.object import Candidate, ConnectionData
from specs.identity import SenderIdentity, VouchedBy
from specs.limits.node import SESSION_LIFE
from tests.support.catalogues import keys_of
from tests.support.link_calls import RecordingPort
from tests.support.lone_end import lone_end
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.issuer import ISSUER, Issuer

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
BOND = Scope(signer=RB, reader=RA, object="connection://b.ex/1", answers="connection://a.ex/1")
DATA = ConnectionData(f"{RB}/p2phandler/1", candidates=(Candidate("tcp", "h:1", "00"),))
USER = "user://idp.ex/bob"
OWN_USER = "user://idp.b.ex/bob"
"""A user of Bob's domain."""


def shown_by(identity):
    """What Bob's runtime offers to Alice's."""
    return attrs.evolve(DATA, security=LinkGuard(identity).sign(DATA, BOND))


def stated(key, **changed):
    """Bob's identity with a statement of his domain."""
    identity = OwnIdentity(make_runtime_key())
    now = trio.current_time()
    said = Statement(
        domain="b.ex",
        runtime=RB,
        thumbprint=identity.key.thumbprint,
        issued=now,
        until=now + 500,
        user=OWN_USER,
    )
    identity.statement = write_statement(attrs.evolve(said, **changed), key)
    return identity


def alice(require=VouchedBy.DOMAIN, trust=None, **identity):
    own = OwnIdentity(make_runtime_key(), **identity)
    return LinkGuard(own, domain="a.ex", trust=trust, require=require)


async def test_the_keys_of_another_domain_are_those_it_has_shown(autojump_clock):
    key = make_key("EdDSA", "of-b")
    offered = shown_by(stated(key))
    unknown = alice().standing(offered, BOND)
    assert unknown.why.endswith("the keys of b.ex are not known here")
    known = alice(foreign_keys={"b.ex": keys_of(key)}).standing(offered, BOND)
    assert known.identity == SenderIdentity(RB, OWN_USER, VouchedBy.DOMAIN)
    assert known.until == trio.current_time() + 500


async def test_another_domain_names_users_of_its_own_only(autojump_clock):
    """As its node does (`said_by`): a user of an identity provider is vouched for by that."""
    key = make_key("EdDSA", "of-b")
    guard = alice(foreign_keys={"b.ex": keys_of(key)})
    believed = guard.standing(shown_by(stated(key, user=USER)), BOND)
    assert believed.identity == SenderIdentity(RB, None, VouchedBy.DOMAIN)


async def test_keys_in_the_trust_file_count_more_than_those_that_were_shown(autojump_clock):
    pinned, shown = make_key("EdDSA", "pinned"), make_key("EdDSA", "shown")
    domain = DomainTrust(KeyTrust.PUBLISHED, statements=keys_of(pinned))
    guard = alice(trust=Trust({"b.ex": domain}), foreign_keys={"b.ex": keys_of(shown)})
    assert isinstance(guard.standing(shown_by(stated(pinned)), BOND), Believed)
    assert isinstance(guard.standing(shown_by(stated(shown)), BOND), Distrusted)


async def test_the_keys_of_the_own_domain_say_nothing_about_others(autojump_clock):
    key = make_key("EdDSA", "of-a")
    offered = shown_by(stated(key, domain="a.ex"))
    guard = alice(domain_keys=keys_of(key), foreign_keys={"b.ex": keys_of(key)})
    assert isinstance(guard.standing(offered, BOND), Distrusted)


async def test_a_statement_counts_in_the_time_of_the_world(autojump_clock):
    key, offset = make_key("EdDSA", "of-b"), 1_000_000.0
    now = trio.current_time() + offset
    offered = shown_by(stated(key, issued=now, until=now + 50))
    own = OwnIdentity(make_runtime_key(), foreign_keys={"b.ex": keys_of(key)})
    guard = LinkGuard(own, domain="a.ex", require=VouchedBy.DOMAIN, clock_offset=offset)
    assert guard.standing(offered, BOND).until == trio.current_time() + 50
    await trio.sleep(50)
    assert isinstance(guard.standing(offered, BOND), Distrusted)


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


async def test_a_login_outlives_the_token_that_it_was_proven_by(autojump_clock):
    """As at a node: until then a link can be set up."""
    issuer = Issuer()
    trust = Trust({}, issuers={ISSUER: IssuerTrust(read_keys(issuer.jwks()))})
    guard = alice(VouchedBy.IDENTITY_PROVIDER, trust)
    offered = shown_by(with_token(issuer))
    await trio.sleep(SESSION_LIFE - 1)
    assert isinstance(guard.standing(offered, BOND), Believed)
    await trio.sleep(1)
    over = guard.standing(offered, BOND)
    assert isinstance(over, Distrusted)
    assert "expired" in over.why


async def test_one_of_several_identity_providers_names_its_own_users_only(autojump_clock):
    """SEC-23."""
    issuer = Issuer()
    trusted = IssuerTrust(read_keys(issuer.jwks()))
    trust = Trust({}, issuers={ISSUER: trusted, "https://other.ex": trusted})
    guard = alice(VouchedBy.IDENTITY_PROVIDER, trust)
    for user, kind in ((USER, Believed), ("user://other.ex/bob", Distrusted)):
        offered = shown_by(with_token(issuer, sub=user))
        assert isinstance(guard.standing(offered, BOND), kind)


async def test_the_keys_of_an_identity_provider_are_fetched_when_a_peer_shows_its_token():
    now = trio.current_time()
    issuer = Issuer(now=int(now))

    async def handler(_call):
        await trio.lowlevel.checkpoint()
        return Said(raw=issuer.jwks())

    async with open_http_server(handler) as server:
        trusted = IssuerTrust(ServerUrl.read(server.url))
        guard = alice(VouchedBy.IDENTITY_PROVIDER, Trust({}, issuers={ISSUER: trusted}))
        offered = shown_by(with_token(issuer))
        assert isinstance(guard.standing(offered, BOND), Distrusted)
        assert guard.lacks_keys(offered)
        await guard.fetch_keys(offered)
        assert not guard.lacks_keys(offered)
        assert isinstance(guard.standing(offered, BOND), Believed)
        await guard.fetch_keys(offered)
        assert len(server.calls) == 1
        await guard.aclose()


async def test_a_provider_that_is_away_is_asked_once_in_a_while(autojump_clock):
    issuer = Issuer()
    trusted = IssuerTrust(ServerUrl.read("http://127.0.0.1:9"))
    guard = alice(VouchedBy.IDENTITY_PROVIDER, Trust({}, issuers={ISSUER: trusted}))
    offered = shown_by(with_token(issuer))
    await guard.fetch_keys(offered)
    assert not guard.lacks_keys(offered)
    await trio.sleep(10)
    assert guard.lacks_keys(offered)
    await guard.aclose()


def config(**more):
    return RuntimeConfig(domain="a.ex", name="ra", node="ws://127.0.0.1:1/link", **more)


@pytest.mark.parametrize(
    ("more", "required"),
    [
        ({}, VouchedBy.NONE),
        ({"credentials": GivenToken("x")}, VouchedBy.DOMAIN),
        ({"p2p_require": VouchedBy.IDENTITY_PROVIDER}, VouchedBy.IDENTITY_PROVIDER),
        ({"credentials": GivenToken("x"), "p2p_require": VouchedBy.NONE}, VouchedBy.NONE),
    ],
)
def test_a_runtime_that_logs_in_requires_the_domain_of_its_peers(more, required):
    assert config(**more).link_requirement is required


def test_no_token_and_no_statement_is_in_a_text():
    security = LinkGuard(OwnIdentity(make_runtime_key(), "a.b.c", "d.e.f")).sign(DATA, BOND)
    assert "a.b.c" not in repr(security)
    assert "d.e.f" not in repr(security)


# ---- what a peer writes by itself, and signs

DER = make_certificate().der
CERTIFICATES = {
    "no DER": b"none",
    "a part of one": DER[:-1],
    "one with more behind it": DER + b"\0",
    "two": DER * 2,
    "something large": bytes(1_000_000),
    "a sequence of nothing": b"\x30\x00",
}


def with_certificate(text):
    """An offer that is signed by its key as a peer without the checks of our own does it."""
    identity = OwnIdentity(make_runtime_key())
    proper = LinkGuard(identity).sign(DATA, BOND)
    covered = list(_signed_texts(DATA, proper, BOND))
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    covered[covered.index(hashlib.sha256(urlsafe_b64decode(padded(proper))).hexdigest())] = (
        hashlib.sha256(raw).hexdigest()
    )
    signature = identity.key.signature(BOND.purpose, covered)
    return attrs.evolve(DATA, security=attrs.evolve(proper, certificate=text, signature=signature))


def padded(security):
    return security.certificate + "=" * (-len(security.certificate) % 4)


@pytest.mark.parametrize("name", CERTIFICATES)
async def test_a_signed_offer_without_a_certificate_is_not_believed(name):
    offered = with_certificate(write_base64url(CERTIFICATES[name]))
    assert isinstance(alice(VouchedBy.NONE).standing(offered, BOND), Distrusted)


@pytest.mark.parametrize("spelling", ["....", "====", "{}.", "{}=", "{}\n", " {}", "{}AAAA"])
async def test_a_certificate_has_one_spelling(spelling):
    text = write_base64url(DER)
    assert isinstance(alice(VouchedBy.NONE).standing(with_certificate(text), BOND), Believed)
    odd = with_certificate(spelling.format(text))
    assert isinstance(alice(VouchedBy.NONE).standing(odd, BOND), Distrusted)


ODD = st.one_of(
    st.text(min_size=1),
    st.binary(min_size=1, max_size=200).map(write_base64url),
    st.binary(max_size=40).map(lambda raw: f"{write_base64url(raw)}.{write_base64url(raw)}.AA"),
    st.sampled_from([".", "..", "....", "A", "=", "null", "\0", "\u00e9", "A" * 1_000_000]),
    st.just(write_base64url(DER)),
)


@pytest.mark.parametrize("name", ["key", "certificate", "signature", "assertion", "statement"])
@given(odd=ODD)
def test_no_text_of_a_peer_raises_an_error(name, odd):
    async def found():
        await trio.lowlevel.checkpoint()
        issuer = IssuerTrust(read_keys(Issuer().jwks()))
        guard = alice(VouchedBy.NONE, Trust({}, issuers={ISSUER: issuer}))
        proper = LinkGuard(OwnIdentity(make_runtime_key())).sign(DATA, BOND)
        altered = attrs.evolve(DATA, security=attrs.evolve(proper, **{name: odd}))
        assert not guard.lacks_keys(altered)
        assert isinstance(guard.standing(altered, BOND), Distrusted | Believed)
        if name in ("assertion", "statement"):
            shown = OwnIdentity(make_runtime_key(), **{name: odd})
            assert isinstance(guard.standing(shown_by(shown), BOND), Believed)

    trio.run(found)


# ---- what an end has verified


@pytest.fixture
def verifications(monkeypatch):
    """The signatures that are verified."""
    made, verify = [], link_guard.is_signed

    def is_signed(*parts):
        made.append(parts)
        return verify(*parts)

    monkeypatch.setattr(link_guard, "is_signed", is_signed)
    return made


def observer(guard, data):
    """Alice's end of a link to Bob, which observes his answer."""
    config = SimpleNamespace(runtime=RA)
    context = SimpleNamespace(url=f"{RA}/p2prequester/1", config=config, guard=lambda: guard)
    context.tracer = None
    end = lone_end(context, RB, f"{RB}/p2phandler/1")
    end.own_object, end.peer_object, end.seen = BOND.answers, BOND.object, data
    return end


def seen_with(end, **changed):
    end.seen = attrs.evolve(end.seen, **changed)
    terms, end.core = end.core.terms, RecordingPort(LinkEnd)
    end.core.terms = terms
    end.see_again()
    (seen,) = end.core.take()
    return seen.standing


async def test_what_is_believed_is_verified_once(verifications, autojump_clock):
    key = make_key("EdDSA", "of-b")
    guard = alice(foreign_keys={"b.ex": keys_of(key)})
    end = observer(guard, shown_by(stated(key)))
    standing = seen_with(end)
    assert isinstance(standing, Believed)
    assert seen_with(end, status="unreachable-1") is standing
    assert len(verifications) == 1
    security = end.seen.security
    for changed in (
        {"status": "negotiation-2"},
        {"owner": f"{RB}/p2phandler/2"},
        {"candidates": ()},
        {"security": attrs.evolve(security, certificate=write_base64url(DER))},
        {"security": attrs.evolve(security, statement=None)},
    ):
        held = end.seen
        assert isinstance(seen_with(end, **changed), Distrusted)
        end.seen = held
    assert seen_with(end) is standing
    end.own_object = "connection://a.ex/2"
    assert isinstance(seen_with(end), Distrusted)
    end.own_object = BOND.answers
    await trio.sleep(500)
    assert isinstance(seen_with(end), Distrusted)


async def test_what_is_not_believed_is_verified_again(autojump_clock):
    key, known = make_key("EdDSA", "of-b"), {}
    end = observer(alice(foreign_keys=known), shown_by(stated(key)))
    assert isinstance(seen_with(end), Distrusted)
    known["b.ex"] = keys_of(key)
    assert isinstance(seen_with(end), Believed)
