"""Claims of login tokens, and what a program makes of them: a page has to make the same of them."""

from random import Random
from typing import Any

from actors.runtime.link_guard import _login_of
from fsm.session.assertion import Acceptable, AssertionCore, AssertionTerms
from specs.addresses.address import message_node

NOW = 1_800_000_000
KEY, OTHER = "k" * 43, "o" * 43
ISSUER, DOMAIN = "https://sso.a.ex:8443/realms/main", "b.ex"
GOOD = {
    "iss": ISSUER, "sub": "alice", "aud": DOMAIN, "iat": NOW - 10, "exp": NOW + 60,
    "cnf": {"jkt": KEY}, "runtime": "hyperty-runtime://b.ex/rb",
}  # fmt: skip
ODD: dict[str, tuple[Any, ...]] = {
    "iss": ("", 7, "x" * 256, "x" * 257, "sso.a.ex", "https://sso.a.ex\n", "a b"),
    "sub": (
        "auth0|alice", "a%b", "user://sso.a.ex/bob", "user://x.sso.a.ex/bob", "user://b.ex/bob",
        "user://evilsso.a.ex/bob", "user://sso.a.ex", "hyperty://sso.a.ex/x", "", "a/b", "a b", 7,
        None, "\u200b", "\u00e4", "user://SSO.a.ex/Bob", "\ud83d\ude00",
    ),
    "aud": (
        [DOMAIN], [DOMAIN, "c.ex"], [DOMAIN, DOMAIN], message_node(DOMAIN), "c.ex", [], None, 7,
        [7], [DOMAIN, None], {},
    ),
    "azp": (DOMAIN, "app", "another", 7, "", None),
    "client_id": (DOMAIN, "app", "another", 7),
    "iat": (
        NOW, NOW + 59, NOW + 61, NOW - 43_100, NOW - 43_300, NOW - 90_000, "x", True, None, -1,
        1e300,
    ),
    "exp": (NOW, NOW - 59, NOW - 61, NOW + 86_390, NOW + 86_391, "x", None, 1e300, False),
    "nbf": (NOW, NOW + 59, NOW + 100, -5, "x", True),
    "cnf": ({"jkt": OTHER}, {"jkt": KEY, "x5t": "y"}, {}, None, [], KEY, {"jkt": None}),
    # One of something else is that of no peer, and a page looks no further.
    "runtime": (
        None, "hyperty-runtime://c.ex/rc", "RUNTIME://b.ex/rb", "x", 7, message_node(DOMAIN),
    ),
    "roles": ([], ["admin"], None, "admin", [7], ["x"] * 64, ["x"] * 65),
}  # fmt: skip

LATE = {"iat": NOW - 43_300, "exp": NOW - 61}
"""Of a login that is over, the token must not be."""


def assertion_cases(dice: Random, count: int) -> list[dict[str, Any]]:
    """Return claims, the terms, and the user and runtime that they name; None: they are refused."""
    single = [{key: odd} for key, values in ODD.items() for odd in values]
    pairs = [dice.choice(single) | dice.choice(single) for _ in range(count)]
    return [
        _case({**GOOD, **changed}, several=several)
        for changed in ({}, LATE, *single, *pairs)
        for several in (False, True)
    ]


def _case(claims: dict[str, Any], *, several: bool) -> dict[str, Any]:
    meant = frozenset({DOMAIN, message_node(DOMAIN)})
    clients = frozenset({"app"})
    terms = AssertionTerms(meant, frozenset(), clients, is_one_of_several=several)
    at, _ = _login_of(claims, NOW)
    verdict = AssertionCore(terms).judge(claims, "digest", at, KEY)
    found = verdict.identity if isinstance(verdict, Acceptable) and verdict.identity.key else None
    return {
        "claims": claims,
        "clients": sorted(clients),
        "terms": {"thumbprint": KEY, "meant": sorted(meant), "isOneOfSeveral": several, "now": NOW},
        "user": found and found.user,
        "runtime": found and found.runtime,
    }
