"""The check of a login token's claims (MN-05, M-55, S4, S5, T1, RFC 8725).

The signature was verified before; here the claims are checked: the issuer, the audience, the times,
earlier use, and the user.

A used token is remembered until it expires. When one is forgotten, because it has expired or for
lack of space, its expiry time is kept: a token that expires no later than any forgotten one counts
as used. So no token is valid again when a clock is set back, and the memory is bounded.

Keys are fetched when a login needs them: there are none yet, they are no longer fresh, or a token
names one that is not among them. After an attempt there is a pause, whatever names tokens have, so
guesses cause no work. Keys whose source fails are used until they are stale.
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
    """Return the digest by which a login token is remembered: its SHA-256 in hexadecimal."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def is_login_of(identity: Identity | None, token: object) -> bool:
    """Return whether an identity was proven by a token (C-64).

    Its signature and claims were checked at the login, and the session ends with it.

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
    """The use of one token.

    Attributes:
        digest: SHA-256 of the issuer and the token's name.
        end: Time at which it expires, in seconds since the epoch.
    """

    digest: bytes
    end: float


class SpentTokens:
    """The tokens used so far.

    Args:
        room: Maximum number of remembered tokens.
        floor: The greatest end of those that were forgotten in an earlier life.

    Attributes:
        floor: The greatest end of those that are forgotten: none that ends by then is taken.
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
        """Use up a token, or return None if it was used before, or may have been.

        Args:
            issuer: The issuer.
            name: The issuer's unique name of the token.
            end: Time at which it expires.
            now: Current time, by the same clock.
        """
        while self._heap and self._heap[0][0] <= now:
            self._forget_first()
        # The length makes the text unique for each pair.
        use = Use(hashlib.sha256(f"{len(issuer)} {issuer} {name}".encode()).digest(), end)
        if end <= self.floor or use.digest in self._known:
            return None
        if len(self._heap) >= self._room:
            self._forget_first()
        self._known.add(use.digest)
        heapq.heappush(self._heap, (use.end, use.digest))
        return use

    def give_back(self, use: Use) -> None:
        """Forget the use of a token that led to no login. Idempotent.

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


# ---- the check


USED: Final = "it has been used already: each opens one session"
"""The refusal of a token that was used before."""

BOUND: Final = "it is bound to a key, and this key was not proven"
"""The refusal of a token without a proof of the key that it names."""

_USER: Final = "user"
_MAX_NAME: Final = 256
"""Maximum number of characters in an identifier that another party chooses."""


@attrs.frozen
class AssertionTerms:
    """The requirements of a node on a token.

    Attributes:
        audiences: The accepted audiences; a token must name one of them.
        issuers: The accepted issuers; empty: any holder of a key of the set.
        clients: The clients to which a token may be issued, besides the audiences.
        life: Maximum lifetime of a token in seconds, counted from its issue.
        is_one_of_several: Whether other issuers are trusted as well, so that each may name only
            users of its own host.
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
    """The token is accepted, and used up.

    Attributes:
        identity: The user.
        use: The use, which must be remembered.
    """

    identity: Identity
    use: Use


@attrs.frozen
class Unacceptable:
    """The token is refused.

    Attributes:
        after: Seconds until it may be accepted; None: never.
    """

    why: str
    after: float | None = None


class _BadClaimError(Exception):
    """A claim is missing or wrong; the text is half a sentence.

    Attributes:
        after: Seconds until the token may be accepted; None: never.
    """

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class AssertionCore:
    """Checks tokens and remembers those that were used.

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
        """Check a token, and use up an acceptable one.

        The token does not decide how long the login then lasts.

        Args:
            claims: Its claims.
            digest: Hash of the signed text; the name of a token without a name.
            now: Seconds since the epoch.
            key: Thumbprint of the key that the bearer has proven; None: none.
            is_one_of_several: Whether other issuers are trusted as well, even if the terms name
                none.
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
        """Refuse a token that was meant for another party."""
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
    """Return the expiry of a token; refuse an expired, future or long-lived one."""
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
    """Return the address of the user: the subject, or the subject at the issuer's host."""
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
    """Return the key that a token is bound to (RFC 7800, RFC 9449).

    A token that is bound in another way is refused: its bearer could not prove it here.
    """
    if value is None:
        return None
    jkt = value.get("jkt") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(jkt, str) or not _THUMBPRINT.fullmatch(jkt):
        raise _BadClaimError("its claim 'cnf' binds it by something else than a 'jkt'")
    return jkt


# ---- keys


class KeyCacheCore:
    """Decides when the keys of one source are fetched and used.

    Args:
        fresh: Seconds for which keys need not be fetched again.
        pause: Seconds between two attempts.
    """

    __slots__ = ("_fresh", "_got", "_pause", "_tried")

    def __init__(self, fresh: float, pause: float) -> None:
        self._fresh = fresh
        self._pause = pause
        self._got = -math.inf
        self._tried = -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether the keys must be fetched again."""
        return now - self._got >= self._fresh and self.may_be_tried(now)

    def may_be_tried(self, now: float) -> bool:
        """Return whether keys may be fetched for a token that names an unknown key."""
        return now - self._tried >= self._pause

    def tried(self, now: float) -> None:
        """Note that a fetch begins."""
        self._tried = now

    def got(self, now: float) -> None:
        """Note that a fetch has brought keys."""
        self._got = now

    def are_usable(self, now: float) -> bool:
        """Return whether the present keys may still be used."""
        return now - self._got < KEYS_STALE
