"""Login tokens (JSON Web Tokens, RFC 7519, RFC 8725) and statements of domains about runtimes.

The key and the algorithm that a token names are not trusted: the key comes from the set of the
operator, and each key has its algorithms. Other entries in the header, such as keys, certificates,
extensions, encryption or nesting, make the token invalid.
"""

import hashlib
import secrets
from typing import Final

import attrs
import orjson

from actors.keys.key_set import ALGORITHMS, Keys, canonical
from actors.keys.signing import HEADER, SignedText, SigningKey, read_signed
from specs.errors import ReasonError
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import CLOCK_SKEW, TOKEN_CHARS

_ENCRYPTED_DOTS: Final = 4
"""Number of dots in an encrypted token (RFC 7516), for a better error message."""

_NAME_BYTES: Final = 16
_TYPE: Final = "jwt"
_TYPES: Final = frozenset({_TYPE, "at+jwt"})
"""Accepted values of `typ` (RFC 7519, RFC 9068), without the optional prefix `application/`."""


class BadTokenError(ReasonError):
    """A text is no acceptable login token; the user who presented the token has to act.

    The reason never contains text of the token.
    """

    summary = "the token cannot be taken"


@attrs.frozen
class SignedToken:
    """Parsed login token, before its signature and claims are verified.

    Attributes:
        key_name: Name of its key, as the token states; None: it names no key.
        algorithm: Usual name of its algorithm, as the token states.
    """

    signed: SignedText
    key_name: str | None
    algorithm: str
    claims: JsonObject = attrs.field(repr=False)

    @property
    def digest(self) -> str:
        """Hash of the signed bytes, which identifies the token.

        The hash excludes the signature: for ECDSA anybody can make another valid one.
        """
        return hashlib.sha256(self.signed.text.rpartition(".")[0].encode()).hexdigest()


def read_token(text: str) -> SignedToken:
    """Parse a login token without verifying its signature.

    Raises:
        BadTokenError: The text is no token, or a token of a kind that is not accepted.
    """
    if len(text) > TOKEN_CHARS:
        raise BadTokenError(f"it is longer than {TOKEN_CHARS} characters")
    signed = read_signed(text)
    if signed is None or signed.header is None or signed.content is None:
        is_encrypted = text.count(".") == _ENCRYPTED_DOTS
        raise BadTokenError("it is encrypted" if is_encrypted else "it is no signed JSON Web Token")
    return SignedToken(signed, *_read_header(signed.header), signed.content)


def is_bound_to(text: str, thumbprint: str) -> bool:
    """Return whether an unverified token claims to belong to the holder of a certain key.

    Args:
        text: The text.
        thumbprint: Name of the key.
    """
    try:
        return key_of(read_token(text).claims) == thumbprint
    except BadTokenError:
        return False


def key_of(claims: JsonObject) -> str | None:
    """Return the thumbprint of the key that a token is bound to (RFC 7800); None: to no key.

    Args:
        claims: Claims of the token.
    """
    bound = claims.get("cnf")
    key = bound.get("jkt") if isinstance(bound, dict) else None
    return key if isinstance(key, str) else None


def read_verified(token: SignedToken, keys: Keys, *, is_shared: bool = False) -> JsonObject:
    """Verify the signature of a token, and return its claims.

    If a token names no key, each key for its algorithm is tried.

    Args:
        token: The token.
        keys: Trusted keys.
        is_shared: Whether the keys are of several issuers, so that each key must name its issuer.

    Raises:
        BadTokenError: The token's key is not trusted, is of another issuer, or did not sign it.
    """
    key_name = token.key_name
    if key_name is not None and key_name not in keys:
        raise BadTokenError("the key that it names is unknown")
    issuer = token.claims.get("iss")
    issuer_keys = [
        key
        for name, key in keys.items()
        if key_name in {None, name} and key.is_of(issuer, is_shared=is_shared)
    ]
    if not issuer_keys:
        raise BadTokenError("no key here is bound to its issuer")
    fitting = [key for key in issuer_keys if token.algorithm in key.algorithms]
    if not fitting:
        raise BadTokenError(_NO_KEY if key_name is None else _OTHER_ALGORITHM)
    if not any(map(token.signed.is_signed_by, fitting)):
        raise BadTokenError("its signature does not fit")
    return token.claims


_NO_KEY: Final = "nobody here has a key for the algorithm that it names"
_OTHER_ALGORITHM: Final = "its key is not for the algorithm that it names"


def _read_header(header: JsonObject) -> tuple[str | None, str]:
    """Return key name and algorithm from a token's header; refuse unknown header members."""
    if header.keys() - HEADER:
        raise BadTokenError("its header holds more than alg, kid and typ")
    named, name, kind = header.get("alg"), header.get("kid"), header.get("typ", _TYPE)
    algorithm = canonical(named) if isinstance(named, str) else None
    if algorithm is None:
        raise BadTokenError(f"it is signed by none of {', '.join(ALGORITHMS)}")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise BadTokenError("it is a token of another kind")
    if "kid" in header and (not isinstance(name, str) or not name):
        raise BadTokenError("it does not name the key that signed it by a text")
    return (name if isinstance(name, str) else None), algorithm


# The statement of a domain: the key of a runtime, its user, and the expiry.

_STATEMENT_TYPE: Final = "protofly-statement+jwt"


class BadStatementError(ReasonError):
    """A text is not a valid statement of a domain about a runtime, or it has expired."""

    summary = "no valid statement"


@attrs.frozen(kw_only=True)
class Statement:
    """Signed statement of a domain about one of its runtimes: key, user and expiry.

    Attributes:
        domain: The domain that makes the statement.
        runtime: Address of the runtime.
        issued: Time at which the domain signed the statement, in seconds since the epoch.
        issued: Time of its signature, in seconds since the epoch.
        until: Expiry, in seconds since the epoch.
        user: Address of the user who logged in at the runtime; None: no login.
        issuer: Identity provider whose token the node accepted; None: no login.
    """

    domain: str
    runtime: str
    thumbprint: str
    issued: float
    until: float
    user: str | None = None
    issuer: str | None = None


def write_statement(statement: Statement, key: SigningKey) -> str:
    """Return a statement of a domain about a runtime as signed text.

    Args:
        statement: The statement.
        key: The private key of the domain.

    Returns:
        A compact JWS.
    """
    claims: JsonObject = {
        "iss": statement.domain,
        "sub": statement.runtime,
        "cnf": {"jkt": statement.thumbprint},
        "iat": int(statement.issued),
        "exp": int(statement.until),
    }
    if statement.user is not None:
        claims["user"] = statement.user
    if statement.issuer is not None:
        claims["idp"] = statement.issuer
    return key.sealed(orjson.dumps(claims), _STATEMENT_TYPE)


def read_statement(text: str, domain: str, keys: Keys, now: float | None) -> Statement:
    """Verify the signature and validity of a statement about a runtime, and return its content.

    Args:
        text: The statement.
        domain: The domain whose statement it must be.
        keys: Public keys of that domain.
        now: Seconds since the epoch; None: expiry is not checked.

    Raises:
        BadStatementError: No key of the domain signed it, another domain is its issuer, it has
            expired or is not valid yet, or a claim is missing.
    """
    if len(text) > TOKEN_CHARS:
        raise BadStatementError(f"it is longer than {TOKEN_CHARS} characters")
    statement = _read_claims(_claims(text, keys))
    if statement.domain != domain:
        raise BadStatementError(f"its issuer is {statement.domain}, not {domain}")
    if now is not None and now >= statement.until:
        raise BadStatementError("its time is over")
    if now is not None and statement.issued > now + CLOCK_SKEW:
        raise BadStatementError("its time has not begun")
    return statement


def _claims(text: str, keys: Keys) -> JsonObject:
    signed = read_signed(text)
    if signed is None or signed.header is None:
        raise BadStatementError("it is no signed statement")
    header, name = signed.header, signed.header.get("kid")
    key = keys.get(name) if isinstance(name, str) else None
    if header.keys() != HEADER or header["typ"] != _STATEMENT_TYPE or key is None:
        raise BadStatementError("no key of the domain signed it")
    if header["alg"] not in key.algorithms:
        raise BadStatementError("its key is not for the algorithm that it names")
    if not signed.is_signed_by(key):
        raise BadStatementError("no key of the domain signed it")
    if signed.content is None:
        raise BadStatementError("it is no JSON object")
    return signed.content


def _read_claims(claims: JsonObject) -> Statement:
    match claims:
        case {
            "iss": str(domain),
            "sub": str(runtime),
            "cnf": {"jkt": str(thumbprint)},
            "iat": int(issued),
            "exp": int(until),
        }:
            return Statement(
                domain=domain,
                runtime=runtime,
                thumbprint=thumbprint,
                issued=float(issued),
                until=float(until),
                user=_optional(claims, "user"),
                issuer=_optional(claims, "idp"),
            )
        case _:
            raise BadStatementError("a claim is missing")


def _optional(claims: JsonObject, name: str) -> str | None:
    value = claims.get(name)
    if value is not None and not isinstance(value, str):
        raise BadStatementError(f"its {name} is no text")
    return value


def login_claims(user: str, audience: str, now: int, life: float) -> dict[str, Json]:
    """Return the claims of a login token for one session, except the issuer.

    Args:
        user: Address of the user.
        audience: Domain whose node accepts it.
        now: Present time, in seconds since 1970.
        life: Number of seconds for which the token is valid.
    """
    name = secrets.token_urlsafe(_NAME_BYTES)
    return {"sub": user, "aud": audience, "iat": now, "exp": now + int(life), "jti": name}
