"""Whether what a login token claims lets somebody in (MN-05, M-55, S4, T1, RFC 8725).

Its signature has been verified before; here its claims are judged: who issued it, for
whom, from when until when, whether it was used before, and whose it is.
"""

import math
from collections.abc import Iterator
from typing import Final, final

import attrs

from fsm.session.spent_tokens import SpentTokens, Use
from specs.addresses.address import RUNTIME_SCHEME, is_node, parse
from specs.errors import BadUrlError
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject
from specs.limits.login import CLOCK_SKEW, TOKEN_LIFE, TOKEN_ROLES
from specs.limits.protocol import MAX_ID

__all__ = ["USED", "Acceptable", "AssertionCore", "AssertionTerms", "Unacceptable"]

USED: Final = "it has been used already: each opens one session"
"""Why a token that was used lets nobody in."""

_USER: Final = "user"
_MAX_NAME: Final = 256
"""Characters in an identifier that somebody else makes up."""


@final
@attrs.frozen
class AssertionTerms:
    """What a node asks of a token.

    Attributes:
        audiences: What the token must be meant for: one of these.
        issuers: Who may have issued it; empty: whoever has a key of the set.
    """

    audiences: frozenset[str]
    issuers: frozenset[str] = frozenset()


@final
@attrs.frozen
class Acceptable:
    """The token lets somebody in, now that it is used up.

    Attributes:
        identity: Whom.
        use: What must be remembered of it.
    """

    identity: Identity
    use: Use


@final
@attrs.frozen
class Unacceptable:
    """The token lets nobody in, because of this."""

    why: str


class _BadClaimError(Exception):
    """A claim is missing or wrong; the text is half a sentence."""


@final
class AssertionCore:
    """Judges tokens, and remembers those that were used.

    Args:
        terms: What is asked of them.
        spent: Which have been used.
    """

    def __init__(self, terms: AssertionTerms, spent: SpentTokens | None = None) -> None:
        self._terms = terms
        self._spent = SpentTokens() if spent is None else spent

    def judge(self, claims: JsonObject, now: float) -> Acceptable | Unacceptable:
        """Judge a token and, if it is acceptable, use it up.

        How long the login then lasts is not the token's to say.

        Args:
            claims: What it claims.
            now: Seconds since the epoch.
        """
        try:
            identity = self._identity(claims)
            end = _check_times(claims, now)
            name = _text(claims, "jti")
        except _BadClaimError as exc:
            return Unacceptable(str(exc))
        use = self._spent.spend(identity.issuer, name, end + CLOCK_SKEW, now)
        if use is None:
            return Unacceptable(USED)
        return Acceptable(identity, use)

    def _identity(self, claims: JsonObject) -> Identity:
        issuer = _text(claims, "iss")
        if self._terms.issuers and issuer not in self._terms.issuers:
            raise _BadClaimError(f"nobody here trusts its issuer {issuer!r}")
        self._check_audience(claims)
        return Identity(
            user=_user(_text(claims, "sub"), issuer),
            issuer=issuer,
            until=math.inf,
            roles=_roles(claims.get("roles")),
            runtime=_runtime(claims.get("runtime")),
        )

    def _check_audience(self, claims: JsonObject) -> None:
        """Refuse a token that somebody else could have been given to use it here."""
        aud = claims.get("aud")
        party = _text(claims, "azp") if "azp" in claims else None
        meant = list(_texts(aud if isinstance(aud, list) else [aud], "aud"))
        known = self._terms.audiences
        if not known & set(meant):
            raise _BadClaimError("it is meant for another audience than this node")
        if (len(set(meant)) > 1 or party is not None) and party not in known:
            raise _BadClaimError("it was issued to another party than this node")


def _check_times(claims: JsonObject, now: float) -> float:
    """Return when a token is over; refuse one that is over, or not yet good, or lives long."""
    issued, end = _time(claims, "iat"), _time(claims, "exp")
    start = _time(claims, "nbf") if "nbf" in claims else issued
    if end + CLOCK_SKEW <= now:
        raise _BadClaimError(f"it expired {now - end:.0f} s ago")
    if max(issued, start) - CLOCK_SKEW > now:
        raise _BadClaimError(f"it becomes good in {max(issued, start) - now:.0f} s")
    if end - issued > TOKEN_LIFE:
        raise _BadClaimError(f"it lives longer than {TOKEN_LIFE:.0f} s")
    return end


def _text(claims: JsonObject, name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_NAME or not value.isprintable():
        raise _BadClaimError(f"its claim {name!r} is missing or no text")
    return value


def _texts(values: Json, name: str) -> Iterator[str]:
    for value in values if isinstance(values, list) else ():
        if not isinstance(value, str):
            raise _BadClaimError(f"its claim {name!r} is missing or no text")
        yield value


def _time(claims: JsonObject, name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_ID:
        raise _BadClaimError(f"its claim {name!r} is missing or no time")
    return float(value)


def _user(subject: str, issuer: str) -> str:
    """Return the address of the user: the subject, or the subject at the issuer's host."""
    if "://" not in subject:
        host = issuer.partition("://")[2] or issuer
        subject = f"{_USER}://{host.partition('/')[0].partition(':')[0]}/{subject}"
    try:
        url = parse(subject)
    except BadUrlError as exc:
        raise _BadClaimError("its claim 'sub' names no user") from exc
    if url.scheme != _USER or not url.path:
        raise _BadClaimError("its claim 'sub' names no user")
    return url.text


def _roles(value: Json) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list) or len(value) > TOKEN_ROLES:
        raise _BadClaimError(f"its claim 'roles' is no list of at most {TOKEN_ROLES}")
    return frozenset(_texts(value, "roles"))


def _runtime(value: Json) -> str | None:
    if value is None:
        return None
    try:
        url = parse(value) if isinstance(value, str) else None
    except BadUrlError:
        url = None
    is_runtime = url is not None and url.scheme == RUNTIME_SCHEME and len(url.path) == 1
    if url is None or not (is_runtime or is_node(url.text)):
        raise _BadClaimError("its claim 'runtime' names no runtime and no node")
    return url.text
