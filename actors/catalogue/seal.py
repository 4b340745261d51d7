"""Signed texts of catalogues: JSON Web Signatures in compact form (RFC 7515, RFC 8725).

What was signed is exactly what is read: the bytes stand within the signature, so nothing
has to be brought into a canonical form first, and no two readers could
differ. A text says which key signed it and how, and is believed in neither: the key comes
from the verifier, and there is one algorithm.
"""

import base64
import re
from enum import StrEnum, unique
from hashlib import sha256
from typing import Final, final

import attrs
import orjson
from joserfc import jws
from joserfc.errors import JoseError

from actors.catalogue.errors import BadSealError
from actors.keys.key_set import EDDSA, REGISTRY, Keys
from fsm.catalogue.descriptor_io import Reason
from specs.jsonvalue import Json, JsonObject
from specs.limits.foreign_code import REVOCATIONS_BYTES

__all__ = ["SealType", "Sealed", "read_seal", "verified"]

_FORM: Final = re.compile(rb"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\n?")
_HEADER: Final = frozenset({"alg", "kid", "typ"})
"""All that a header may hold: no key of its own, no certificate, no extension (RFC 8725, 3.10)."""


@final
@unique
class SealType(StrEnum):
    """Kinds of signed content; one is never accepted as another (RFC 8725, 3.11)."""

    DESCRIPTOR = "protofly-descriptor+jws"
    REVOCATIONS = "protofly-revocations+jws"
    PACKAGE = "protofly-package+jws"


@final
@attrs.frozen
class Sealed:
    """A signed text of the right form, with an unverified signature.

    Attributes:
        key_name: The name of the key that it states.
    """

    text: str = attrs.field(repr=False)
    kind: SealType
    key_name: str
    content: JsonObject = attrs.field(repr=False)
    digest: str


def read_seal(text: bytes, kind: SealType) -> Sealed:
    """Return the parts of a signed text of a kind; nothing is verified.

    Args:
        text: The signed text.
        kind: Kind of the signed text.

    Raises:
        BadSealError: It is not signed, or is of another kind.
    """
    parts = _FORM.fullmatch(text) if len(text) <= REVOCATIONS_BYTES else None
    if parts is None:
        raise BadSealError(Reason.UNSIGNED, "it is not signed")
    header = _object(_bytes(parts[1]))
    if header is None:
        raise BadSealError(Reason.UNSIGNED, "it is not signed")
    name = _key_name(header, kind)
    payload = _bytes(parts[2])
    content = _object(payload)
    if content is None or payload is None:
        raise BadSealError(Reason.MALFORMED, "what is signed is no JSON object")
    return Sealed(text.strip().decode(), kind, name, content, sha256(payload).hexdigest())


def verified(sealed: Sealed, keys: Keys) -> JsonObject:
    """Verify the signature of a text, and return its content.

    Args:
        sealed: The signed text.
        keys: Trusted keys.

    Raises:
        BadSealError: Its key is not one of these, or the signature is wrong.
    """
    key = keys.get(sealed.key_name)
    if key is None or key.algorithm != EDDSA:
        raise BadSealError(Reason.WRONG_KEY, f"the key {sealed.key_name[:40]!r} is not trusted")
    try:
        jws.deserialize_compact(sealed.text, key.key, registry=REGISTRY)
    except (JoseError, ValueError) as exc:
        raise BadSealError(Reason.BAD_SIGNATURE, "its signature does not fit") from exc
    return sealed.content


def _key_name(header: JsonObject, kind: SealType) -> str:
    """Return the name of the key in a header; refuse a header with more or less than allowed."""
    if header.get("alg") != EDDSA:
        raise BadSealError(Reason.UNSIGNED, f"it is not signed by {EDDSA}")
    if header.keys() - _HEADER:
        raise BadSealError(Reason.BAD_SIGNATURE, "its header holds more than alg, kid and typ")
    if header.get("typ") != kind:
        raise BadSealError(Reason.BAD_SIGNATURE, f"it was not signed as {kind}")
    name = header.get("kid")
    if not isinstance(name, str) or not name:
        raise BadSealError(Reason.WRONG_KEY, "it does not name the key that signed it")
    return name


def _bytes(part: bytes) -> bytes | None:
    try:
        return base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except ValueError:
        return None


def _object(text: bytes | None) -> JsonObject | None:
    try:
        read: Json = orjson.loads(text or b"")
    except orjson.JSONDecodeError:
        return None
    return read if isinstance(read, dict) else None
