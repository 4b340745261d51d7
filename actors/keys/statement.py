"""The statement of a domain: which key speaks for a runtime, for which user, until when.

A statement is a JSON Web Token that the key of the domain has signed. Whoever has the public
keys of the domain checks it without asking.
"""

from typing import Final, final

import attrs
import orjson
from joserfc import jws
from joserfc.errors import JoseError

from actors.keys.key_set import REGISTRY, Keys
from actors.keys.signing import SigningKey
from specs.errors import ReasonError
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import CLOCK_SKEW, TOKEN_CHARS

_TYPE: Final = "protofly-statement+jwt"
_HEADER: Final = frozenset({"alg", "kid", "typ"})


@final
class BadStatementError(ReasonError):
    """A text is no statement of the domain, or it is over."""

    summary = "no valid statement"


@final
@attrs.frozen(kw_only=True)
class Statement:
    """A statement of a domain about one of its runtimes.

    Attributes:
        domain: The domain that says it.
        runtime: Address of the runtime.
        thumbprint: Name of the runtime's key.
        issued: Seconds since the epoch at which it was signed.
        until: Seconds since the epoch; from then on it is void.
        user: Address of the user who logged in; None: no login.
        issuer: Identity provider whose token the node accepted; None: no login.
    """

    domain: str
    runtime: str
    thumbprint: str
    issued: float
    until: float
    user: str | None = None
    issuer: str | None = None


def write_statement(said: Statement, key: SigningKey) -> str:
    """Sign a statement.

    Args:
        said: The statement.
        key: The key of its domain.

    Returns:
        A compact JWS.
    """
    claims: JsonObject = {
        "iss": said.domain,
        "sub": said.runtime,
        "cnf": {"jkt": said.thumbprint},
        "iat": int(said.issued),
        "exp": int(said.until),
    }
    if said.user is not None:
        claims["user"] = said.user
    if said.issuer is not None:
        claims["idp"] = said.issuer
    return key.sealed(orjson.dumps(claims), _TYPE)


def read_statement(text: str, domain: str, keys: Keys, now: float | None) -> Statement:
    """Verify a statement.

    Args:
        text: The statement.
        domain: The domain whose statement it must be.
        keys: Public keys of that domain.
        now: Seconds since the epoch; None: its time is not judged.

    Raises:
        BadStatementError: No key of the domain signed it, another domain is its issuer, its time
            is over or has not begun, or a claim is missing.
    """
    if len(text) > TOKEN_CHARS:
        raise BadStatementError(f"it is longer than {TOKEN_CHARS} characters")
    said = _said(_claims(text, keys))
    if said.domain != domain:
        raise BadStatementError(f"its issuer is {said.domain}, not {domain}")
    if now is not None and now >= said.until:
        raise BadStatementError("its time is over")
    if now is not None and said.issued > now + CLOCK_SKEW:
        raise BadStatementError("its time has not begun")
    return said


def _claims(text: str, keys: Keys) -> JsonObject:
    """Return what a statement claims, once its signature is verified."""
    try:
        header = jws.extract_compact(text.encode()).headers()
    except (JoseError, ValueError) as exc:
        raise BadStatementError("it is no signed statement") from exc
    name = header.get("kid")
    key = keys.get(name) if isinstance(name, str) else None
    if header.keys() != _HEADER or header["typ"] != _TYPE or key is None:
        raise BadStatementError("no key of the domain signed it")
    if header["alg"] not in key.algorithms:
        raise BadStatementError("its key is not for the algorithm that it names")
    try:
        verified = jws.deserialize_compact(text, key.key, registry=REGISTRY)
        claims: Json = orjson.loads(verified.payload)
    except (JoseError, ValueError) as exc:
        raise BadStatementError("no key of the domain signed it") from exc
    if not isinstance(claims, dict):
        raise BadStatementError("it is no JSON object")
    return claims


def _said(claims: JsonObject) -> Statement:
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
