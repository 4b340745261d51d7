"""JSON Web Signatures in compact form (RFC 7515), before and after they are believed.

What was signed is exactly what is read: the bytes stand within the signature, so nothing has to be
brought into a canonical form first, and no two readers could differ. A text says which key signed
it and how, and is believed in neither: keys and algorithms come from the verifier.
"""

import base64
import re
from typing import Final

import attrs
import orjson
from joserfc import jws
from joserfc.errors import JoseError

from actors.keys.key_set import REGISTRY, VerifyingKey
from specs.jsonvalue import Json, JsonObject

_FORM: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")

HEADER: Final = frozenset({"alg", "kid", "typ"})
"""All that a header may hold: no key of its own, no certificate, no extension (RFC 8725, 3.10)."""


@attrs.frozen
class SignedText:
    """A signed text, with an unverified signature.

    Attributes:
        header: None: it is no JSON object.
        payload: The bytes that were signed.
        content: The payload; None: it is no JSON object.
    """

    text: str = attrs.field(repr=False)
    header: JsonObject | None
    payload: bytes = attrs.field(repr=False)
    content: JsonObject | None = attrs.field(repr=False)

    def is_signed_by(self, key: VerifyingKey) -> bool:
        """Return whether a key has signed the text."""
        try:
            jws.deserialize_compact(self.text, key.key, registry=REGISTRY)
        except (JoseError, ValueError):
            return False
        return True


def read_signed(text: str) -> SignedText | None:
    """Return the parts of a signed text; None: it has another form."""
    parts = _FORM.fullmatch(text)
    if parts is None:
        return None
    header, payload = (_bytes(part) for part in parts.groups())
    return SignedText(text, _object(header), payload, _object(payload))


def _bytes(part: str) -> bytes:
    """Return decoded bytes; none if the part is no base64url."""
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return b""


def _object(text: bytes) -> JsonObject | None:
    try:
        read: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return read if isinstance(read, dict) else None
