"""What a token must claim to let somebody in (MN-05, S4, RFC 8725)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.session.assertion import Acceptable, AssertionCore, AssertionTerms, Unacceptable
from specs.identity import Identity, speaks_for

NOW = 1_800_000_000.0
GOOD = {
    "iss": "https://idp.ex",
    "sub": "user://idp.ex/alice",
    "aud": "a.ex",
    "iat": NOW,
    "exp": NOW + 300,
    "jti": "1",
}
TERMS = AssertionTerms(frozenset({"a.ex", "domain://msg-node.a.ex"}), frozenset({"https://idp.ex"}))


def judged(now=NOW, terms=TERMS, **changed):
    claims = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    verdict = AssertionCore(terms).judge(claims, "hash", now)
    return verdict.identity if isinstance(verdict, Acceptable) else verdict


def is_refused(verdict):
    return isinstance(verdict, Unacceptable)


def test_a_good_token_names_its_user():
    assert judged(roles=["admin"], runtime="runtime://a.ex/ra") == Identity(
        user="user://idp.ex/alice",
        issuer="https://idp.ex",
        until=float("inf"),
        roles=frozenset({"admin"}),
        runtime="hyperty-runtime://a.ex/ra",
    )


def test_a_token_may_state_addresses_of_its_runtime():
    stated = judged(addresses=["hyperty://B.ex/1/", "hyperty://b.ex/1", "comm://b.ex/2"]).addresses
    assert stated == {"hyperty://b.ex/1", "comm://b.ex/2"}


@pytest.mark.parametrize(
    ("issuer", "domain", "does"),
    [
        ("b.ex", "b.ex", True), ("https://b.ex:443/x", "b.ex", True),
        ("https://login.b.ex/realms/x", "b.ex", True), ("https://evil-b.ex", "b.ex", False),
        ("https://b.ex.evil.ex", "b.ex", False), ("https://ex", "b.ex", False),
        ("https://b.ex@evil.ex", "b.ex", False), ("b.ex", "sub.b.ex", False), ("", "b.ex", False),
    ],
)  # fmt: skip
def test_an_issuer_speaks_for_the_domain_of_its_host(issuer, domain, does):
    assert speaks_for(issuer, domain) is does


def test_a_token_may_be_bound_to_a_node():
    assert judged(runtime="domain://MSG-NODE.b.ex").runtime == "domain://msg-node.b.ex"
    assert is_refused(judged(runtime="domain://msg-node.b.ex/sm"))


@pytest.mark.parametrize("name", [one for one in GOOD if one != "jti"])
def test_no_claim_of_these_may_be_missing(name):
    assert is_refused(judged(**{name: None}))


@pytest.mark.parametrize("name", [*GOOD])
@pytest.mark.parametrize("value", ["", 7, True, [], {}, [[]], "\x00", "x" * 300, -1, float("nan")])
def test_a_claim_of_another_kind_is_no_login(name, value):
    is_time = name in {"iat", "exp"}
    if is_time and value == 7 and not isinstance(value, bool):
        value = 1e400
    assert is_refused(judged(**{name: value}))


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"iss": "https://evil.ex"}, "issuer"),
        ({"aud": "b.ex"}, "audience"),
        ({"aud": ["b.ex", "c.ex"]}, "audience"),
        ({"aud": "A.EX"}, "audience"),
        ({"aud": ["a.ex", "b.ex"]}, "nobody named"),
        ({"aud": ["a.ex", "b.ex"], "client_id": "app"}, "another party"),
        ({"aud": "a.ex", "azp": "app"}, "another party"),
        ({"aud": ["a.ex", "b.ex"], "azp": "b.ex"}, "another party"),
        ({"azp": "b.ex"}, "another party"),
        ({"sub": "hyperty://idp.ex/alice"}, "'sub'"),
        ({"sub": "user://idp.ex"}, "'sub'"),
        ({"sub": "two words"}, "'sub'"),
        ({"roles": "admin"}, "'roles'"),
        ({"roles": [1]}, "'roles'"),
        ({"roles": ["r"] * 65}, "'roles'"),
        ({"runtime": "hyperty://a.ex/ra"}, "'runtime'"),
        ({"runtime": 1}, "'runtime'"),
        ({"addresses": "hyperty://b.ex/1"}, "'addresses'"),
        ({"addresses": []}, "'addresses'"),
        ({"addresses": ["hyperty://b.ex/1", 1]}, "'addresses'"),
        ({"addresses": ["nonsense"]}, "'addresses'"),
        ({"addresses": ["hyperty://b.ex/1"] * 257}, "'addresses'"),
        ({"iat": NOW, "exp": NOW + 86_401}, "longer than"),
        ({"iat": NOW - 9, "nbf": NOW, "exp": NOW + 86_399}, "longer than"),
        ({"nbf": "soon"}, "'nbf'"),
    ],
)
def test_a_wrong_token_is_reported_with_its_error(claims, said):
    verdict = judged(**claims)

    assert is_refused(verdict)
    assert said in verdict.why


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["a.ex"]},
        {"aud": "domain://msg-node.a.ex"},
        {"aud": ["a.ex", "domain://msg-node.a.ex"], "azp": "a.ex"},
        {"aud": ["a.ex", "b.ex"], "azp": "a.ex"},
        {"unknown": {"claim": 1}, "nonce": "n"},
    ],
)
def test_these_are_good_as_well(claims):
    assert isinstance(judged(**claims), Identity)


@pytest.mark.parametrize(
    ("sub", "issuer", "user"),
    [
        ("alice", "https://idp.ex", "user://idp.ex/alice"),
        ("alice", "https://idp.ex:8443/realms/x", "user://idp.ex/alice"),
        ("alice", "idp.ex", "user://idp.ex/alice"),
        ("user://b.ex/bob", "https://idp.ex", "user://b.ex/bob"),
        ("auth0|alice", "https://idp.ex/", "user://idp.ex/auth0%7Calice"),
        ("auth0%7Calice", "https://idp.ex/", "user://idp.ex/auth0%257Calice"),
        ("app@clients", "https://idp.ex/", "user://idp.ex/app@clients"),
    ],
)
def test_a_subject_that_is_no_address_is_a_user_of_its_issuer(sub, issuer, user):
    terms = AssertionTerms(frozenset({"a.ex"}))

    assert judged(terms=terms, sub=sub, iss=issuer).user == user


@pytest.mark.parametrize(
    ("sub", "is_good"),
    [
        ("bob", True),
        ("user://idp.ex/bob", True),
        ("user://mail.idp.ex/bob", True),
        ("user://other.ex/bob", False),
        ("user://notidp.ex/bob", False),
        ("user://ex/bob", False),
    ],
)
def test_one_of_several_issuers_names_users_of_its_own_host_only(sub, is_good):
    """SEC-03: or each could speak for the users of the others."""
    terms = AssertionTerms(frozenset({"a.ex"}), frozenset({"https://idp.ex/r", "https://other.ex"}))
    alone = AssertionTerms(frozenset({"a.ex"}), frozenset({"https://idp.ex/r"}))
    assert is_refused(judged(terms=terms, sub=sub, iss="https://idp.ex/r")) is not is_good
    assert not is_refused(judged(terms=alone, sub=sub, iss="https://idp.ex/r"))


@pytest.mark.parametrize(
    ("claims", "now", "is_good"),
    [
        ({}, NOW + 359.9, True),
        ({}, NOW + 360, False),
        ({}, NOW - 60, True),
        ({}, NOW - 60.1, False),
        ({"nbf": NOW + 100}, NOW + 40, True),
        ({"nbf": NOW + 100}, NOW + 39, False),
    ],
    ids=["just over", "over", "clock behind", "clock far behind", "soon good", "not yet good"],
)
def test_clocks_may_differ_by_a_minute(claims, now, is_good):
    """R12: tokens are judged with 60 s of skew."""
    assert is_refused(judged(now=now, **claims)) is not is_good


def test_a_token_opens_one_session():
    core = AssertionCore(TERMS)

    assert isinstance(core.judge(GOOD, "hash", NOW), Acceptable)
    assert "used already" in core.judge(GOOD, "hash", NOW + 1).why
    assert isinstance(core.judge({**GOOD, "jti": "2"}, "hash", NOW + 1), Acceptable)


def test_a_token_without_a_name_is_known_by_its_hash():
    core = AssertionCore(TERMS)
    nameless = {name: value for name, value in GOOD.items() if name != "jti"}

    assert isinstance(core.judge(nameless, "one", NOW), Acceptable)
    assert "used already" in core.judge(nameless, "one", NOW).why
    assert isinstance(core.judge(nameless, "two", NOW), Acceptable)


@pytest.mark.parametrize(
    ("claims", "is_good"),
    [
        ({"azp": "app"}, True),
        ({"azp": "app", "aud": ["a.ex", "account"]}, True),
        ({"client_id": "app", "aud": ["a.ex", "account"]}, True),
        ({"client_id": "other", "aud": "a.ex"}, True),
        ({"client_id": "other", "aud": ["a.ex", "account"]}, False),
        ({"azp": "other", "client_id": "app"}, False),
        ({"aud": "app"}, False),
        ({"aud": ["a.ex", "account"]}, False),
    ],
)
def test_a_node_names_the_clients_of_its_identity_provider(claims, is_good):
    terms = AssertionTerms(frozenset({"a.ex"}), clients=frozenset({"app"}))

    assert is_refused(judged(terms=terms, **claims)) is not is_good


@pytest.mark.parametrize(("life", "is_good"), [(600.0, True), (600.1, False)])
def test_a_token_lives_as_long_as_the_operator_allows(life, is_good):
    terms = AssertionTerms(frozenset({"a.ex"}), life=600.0)

    assert is_refused(judged(terms=terms, exp=NOW + life)) is not is_good


def test_a_token_that_is_refused_is_not_used_up():
    core = AssertionCore(TERMS)

    assert is_refused(core.judge({**GOOD, "aud": "b.ex"}, "hash", NOW))
    assert isinstance(core.judge(GOOD, "hash", NOW), Acceptable)


def test_a_used_token_stays_used_when_the_clock_is_set_back():
    core = AssertionCore(TERMS)
    core.judge(GOOD, "hash", NOW)
    later = {**GOOD, "jti": "2", "iat": NOW + 3600, "exp": NOW + 3900}
    core.judge(later, "hash", NOW + 3600)

    assert "used already" in core.judge(GOOD, "hash", NOW + 10).why


JKT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_a_token_that_is_bound_to_a_key_is_good_with_that_key_only():
    core, bound = AssertionCore(TERMS), {**GOOD, "cnf": {"jkt": JKT}}
    for key in (None, "", "x" * 43, JKT.lower()):
        assert "bound to a key" in core.judge(bound, "hash", NOW, key).why
    assert core.judge(bound, "hash", NOW, JKT).identity.key == JKT


def test_a_token_that_is_bound_to_none_is_good_with_any_key():
    assert AssertionCore(TERMS).judge(GOOD, "hash", NOW, JKT).identity.key is None


@pytest.mark.parametrize(
    "cnf",
    [
        {}, [], "", "jkt", 5, True, {"jkt": None}, {"jkt": ""}, {"jkt": 5}, {"jkt": [JKT]},
        {"jkt": JKT + "A"}, {"jkt": JKT[:-1]}, {"jkt": JKT[:-1] + "="}, {"jkt": JKT[:-1] + "+"},
        {"jkt": JKT + "\n"}, {"jkt": JKT, "kid": "k"}, {"jkt": JKT, "x5t#S256": JKT},
        {"x5t#S256": JKT}, {"jwk": {"kty": "OKP"}}, {"kid": "k"}, {"JKT": JKT}, [{"jkt": JKT}],
    ],
)  # fmt: skip
def test_a_token_that_is_bound_in_another_way_is_refused(cnf):
    """Its holder could not prove that here: to take it as a bearer's would be a downgrade."""
    verdict = AssertionCore(TERMS).judge({**GOOD, "cnf": cnf}, "hash", NOW, JKT)
    assert "'cnf'" in verdict.why


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
anything = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(
    st.dictionaries(
        st.sampled_from([*GOOD, "nbf", "azp", "roles", "runtime", "addresses", "cnf"]), anything
    )
)
def test_every_claimed_token_is_judged(changed):
    assert isinstance(judged(**changed), Identity | Unacceptable)
