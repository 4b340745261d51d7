"""Check of a login token's claims, its single use, and caching of keys (MN-05, M-55, S4, S5, T1).

The signature was verified before (RFC 8725); here the claims are checked: the issuer, the audience,
the times, earlier use, and the user.

A used token is remembered until it expires. When a token is forgotten, because it has expired or
for lack of space, the latest expiry time of forgotten tokens is kept: a token that does not expire
later counts as used. So no token becomes valid again if a clock is set back, and memory is limited.

The issuer's keys are fetched when a login needs them: no keys are known, the keys are too old, or a
token names an unknown key. After each attempt the next must wait, so tokens with invented key names
cause no load. If the keys cannot be fetched, the old keys are used until they are stale.
"""

import hashlib
import heapq
import hmac
import math
import re
from collections.abc import Iterator
from typing import Final

import attrs

from specs.addresses.address import RUNTIME_SCHEME, host_of, is_node, parse
from specs.errors import BadUrlError
from specs.identity import Identity, host_of_issuer
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import CLOCK_SKEW, KEYS_STALE, SPENT_TOKENS, TOKEN_LIFE, TOKEN_ROLES
from specs.limits.protocol import MAX_ID, MAX_LIST


def digest_of(token: str) -> str:
    """Return the SHA-256 of a login token in hexadecimal, to be stored in place of the token."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def is_login_of(identity: Identity | None, token: object) -> bool:
    """Return whether a token in a message is the token by which the session has logged in (C-64).

    If so, its signature and claims need no further check: the session ends when the token expires.

    Args:
        identity: Identity of a session; None: no login.
        token: The token of a message.
    """
    if identity is None or identity.login is None or not isinstance(token, str):
        return False
    return hmac.compare_digest(digest_of(token), identity.login)


# ---- used tokens


@attrs.frozen(slots=True)
class Use:
    """Record that a login token was used, to refuse a second use.

    Attributes:
        digest: SHA-256 of the issuer and the token's name.
        end: Time at which the token expires, in seconds since the epoch.
    """

    digest: bytes
    end: float


class SpentTokens:
    """Remembers the used login tokens, so that each token opens a single session.

    Args:
        room: Maximum number of remembered tokens.
        floor: The stored `floor` of an earlier process.

    Attributes:
        floor: The latest expiry time of forgotten tokens; tokens must expire later to be accepted.
    """

    __slots__ = ("_heap", "_known", "_room", "floor")

    def __init__(self, room: int = SPENT_TOKENS, floor: float = -math.inf) -> None:
        self._room = room
        self._known: set[bytes] = set()
        self._heap: list[tuple[float, bytes]] = []
        self.floor = floor

    def __len__(self) -> int:
        return len(self._known)

    def spend(self, issuer: str, name: str, end: float, now: float) -> Use | None:
        """Mark a token as used; return None if the token was, or may have been, used before.

        Args:
            issuer: The issuer of the token.
            name: The issuer's unique name of the token.
            end: Time at which the token expires.
            now: Current time, by the same clock.
        """
        while self._heap and self._heap[0][0] <= now:
            self._forget_first()
        # The length of the issuer makes the hashed text unique for each issuer and name.
        use = Use(hashlib.sha256(f"{len(issuer)} {issuer} {name}".encode()).digest(), end)
        if end <= self.floor or use.digest in self._known:
            return None
        if len(self._heap) >= self._room:
            self._forget_first()
        self._known.add(use.digest)
        heapq.heappush(self._heap, (use.end, use.digest))
        return use

    def give_back(self, use: Use) -> None:
        """Mark a token as unused again, since the login failed. Idempotent.

        Args:
            use: The result of `spend`.
        """
        if use.digest in self._known:
            self._known.discard(use.digest)
            self._heap.remove((use.end, use.digest))
            heapq.heapify(self._heap)

    def _forget_first(self) -> None:
        end, digest = heapq.heappop(self._heap)
        self._known.discard(digest)
        self.floor = max(self.floor, end)


# ---- check of the claims


USED: Final = "it has been used already: each opens one session"
"""The refusal of a token that was used before."""

BOUND: Final = "it is bound to a key, and this key was not proven"
"""The refusal of a token without a proof of the key that it names."""

_USER: Final = "user"
_MAX_NAME: Final = 256
"""Maximum number of characters in an identifier that another party chooses."""


@attrs.frozen
class AssertionTerms:
    """The requirements of a node on login tokens.

    Attributes:
        audiences: The accepted audiences; a token must name one of them.
        issuers: The accepted issuers; empty: any issuer that signs with a trusted key.
        clients: The clients to which a token may be issued, in addition to the audiences.
        life: Maximum lifetime of a token in seconds, counted from its issue.
        is_one_of_several: Whether the node trusts several issuers, so that each may name only users
            of its own host.
    """

    audiences: frozenset[str]
    issuers: frozenset[str] = frozenset()
    clients: frozenset[str] = frozenset()
    life: float = TOKEN_LIFE
    is_one_of_several: bool = attrs.field()

    @is_one_of_several.default
    def _is_one_of_several(self) -> bool:
        return len(self.issuers) > 1


@attrs.frozen
class Acceptable:
    """Result of a check: the login token is accepted, and was marked as used.

    Attributes:
        identity: The user and the user's rights.
        use: The record of the use, which must be stored.
    """

    identity: Identity
    use: Use


@attrs.frozen
class Unacceptable:
    """Result of a check: the login token is refused.

    Attributes:
        why: The reason, as half a sentence.
        after: Seconds until the token may be accepted; None: never.
    """

    why: str
    after: float | None = None


class _BadClaimError(Exception):
    """A claim of a login token is missing or wrong.

    Attributes:
        after: Seconds until the token may be accepted; None: never.
    """

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class AssertionCore:
    """Checks the claims of login tokens, and accepts each token once.

    Args:
        terms: The requirements on tokens.
        spent: The used tokens.
    """

    def __init__(self, terms: AssertionTerms, spent: SpentTokens | None = None) -> None:
        self._terms = terms
        self._spent = SpentTokens() if spent is None else spent

    def judge(
        self,
        claims: JsonObject,
        digest: str,
        now: float,
        key: str | None = None,
        *,
        is_one_of_several: bool = False,
    ) -> Acceptable | Unacceptable:
        """Check the claims of a token, and mark an acceptable token as used.

        The duration of the login does not depend on the token.

        Args:
            claims: The claims of the token.
            digest: Hash of the signed text, which identifies a token without a name (`jti`).
            now: Seconds since the epoch.
            key: Thumbprint of the key that the bearer has proven; None: none.
            is_one_of_several: Whether the node trusts several issuers, even if the terms do not
                say so.
        """
        is_one_of_several = is_one_of_several or self._terms.is_one_of_several
        try:
            identity = self._identity(claims, key, is_one_of_several=is_one_of_several)
            end = _check_times(claims, now, self._terms.life)
            name = _text(claims, "jti") if "jti" in claims else digest
        except _BadClaimError as exc:
            return Unacceptable(str(exc), exc.after)
        use = self._spent.spend(identity.issuer, name, end + CLOCK_SKEW, now)
        if use is None:
            return Unacceptable(USED)
        return Acceptable(identity, use)

    def _identity(
        self, claims: JsonObject, key: str | None, *, is_one_of_several: bool
    ) -> Identity:
        issuer = _text(claims, "iss")
        if self._terms.issuers and issuer not in self._terms.issuers:
            raise _BadClaimError(f"this node does not trust its issuer {issuer!r}")
        self._check_audience(claims)
        bound = _key(claims.get("cnf"))
        if bound is not None and bound != key:
            raise _BadClaimError(BOUND)
        user = _user(_text(claims, "sub"), issuer)
        if is_one_of_several and not _is_of(host_of(user), host_of_issuer(issuer)):
            raise _BadClaimError("its claim 'sub' names a user of another issuer")
        return Identity(
            user=user,
            issuer=issuer,
            until=math.inf,
            roles=_roles(claims.get("roles")),
            runtime=_runtime(claims.get("runtime")),
            addresses=_addresses(claims.get("addresses")),
            key=bound,
        )

    def _check_audience(self, claims: JsonObject) -> None:
        """Raise an error if the token was issued for another audience or to another client."""
        aud = claims.get("aud")
        audiences = set(_texts(aud if isinstance(aud, list) else [aud], "aud"))
        if not self._terms.audiences & audiences:
            raise _BadClaimError("it is meant for another audience than this node")
        # `azp` or `client_id` of an OAuth access token is the client it was issued to.
        name = "azp" if "azp" in claims or len(audiences) == 1 else "client_id"
        if name not in claims:
            if len(audiences) > 1:
                raise _BadClaimError("it is meant for others, too, and was issued to nobody named")
            return
        party = _text(claims, name)
        if party not in self._terms.audiences | self._terms.clients:
            raise _BadClaimError(f"it was issued to another party than this node: {party!r}")


def _check_times(claims: JsonObject, now: float, life: float) -> float:
    """Return the expiry time of a token.

    Raise an error if the token has expired, is not valid yet, or lives too long.
    """
    issued, end = _time(claims, "iat"), _time(claims, "exp")
    start = _time(claims, "nbf") if "nbf" in claims else issued
    if end + CLOCK_SKEW <= now:
        raise _BadClaimError(f"it expired {now - end:.0f} s ago")
    start = max(issued, start)
    if start - CLOCK_SKEW > now:
        why = f"it becomes good in {start - now:.0f} s"
        raise _BadClaimError(why, start - CLOCK_SKEW - now)
    if end - issued > life:
        raise _BadClaimError(f"it lives longer than {life:.0f} s")
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
    """Return the address of the user that a token names.

    A subject that is no address becomes a user name at the issuer's host.
    """
    if "://" not in subject:
        subject = f"{_USER}://{host_of_issuer(issuer)}/{_segment(subject)}"
    try:
        url = parse(subject)
    except BadUrlError as exc:
        raise _BadClaimError("its claim 'sub' names no user") from exc
    if url.scheme != _USER or not url.path:
        raise _BadClaimError("its claim 'sub' names no user")
    return url.text


def _is_of(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _segment(subject: str) -> str:
    """Return a subject such as `auth0|alice` as an unambiguous segment of an address."""
    return subject.replace("%", "%25").replace("|", "%7C")


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


def _addresses(value: Json) -> frozenset[str]:
    if value is None:
        return frozenset()
    try:
        listed = value if isinstance(value, list) and len(value) <= MAX_LIST else ()
        stated = frozenset(parse(text).text for text in _texts([*listed], "addresses"))
    except BadUrlError:
        stated = frozenset()
    if not stated:
        raise _BadClaimError(f"its claim 'addresses' is no list of 1 to {MAX_LIST} addresses")
    return stated


_THUMBPRINT: Final = re.compile("[A-Za-z0-9_-]{43}")


def _key(value: Json) -> str | None:
    """Return the thumbprint of the key to which a token is bound, or None (RFC 7800, RFC 9449).

    Raise an error if the token is bound in another way, which the bearer could not prove here.
    """
    if value is None:
        return None
    jkt = value.get("jkt") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(jkt, str) or not _THUMBPRINT.fullmatch(jkt):
        raise _BadClaimError("its claim 'cnf' binds it by something else than a 'jkt'")
    return jkt


# ---- keys


class KeyCacheCore:
    """Decides when a token issuer's public keys must be fetched, and how long they may be used.

    Args:
        fresh: Seconds for which keys need not be fetched again.
        pause: Seconds between two attempts to fetch keys.
    """

    __slots__ = ("_fresh", "_got", "_pause", "_tried")

    def __init__(self, fresh: float, pause: float) -> None:
        self._fresh = fresh
        self._pause = pause
        self._got = -math.inf
        self._tried = -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether the token issuer's keys must be fetched again, since they are too old."""
        return now - self._got >= self._fresh and self.may_be_tried(now)

    def may_be_tried(self, now: float) -> bool:
        """Return whether keys may be fetched for a token that names an unknown key."""
        return now - self._tried >= self._pause

    def tried(self, now: float) -> None:
        """Note that an attempt to fetch the keys begins."""
        self._tried = now

    def got(self, now: float) -> None:
        """Note that the keys have been fetched."""
        self._got = now

    def are_usable(self, now: float) -> bool:
        """Return whether the fetched keys may still be used."""
        return now - self._got < KEYS_STALE
