"""Keys that sign: descriptors of a domain, and login tokens for development and for tests.

A key file is a JSON Web Key with its private part.
"""

import base64
import re
from typing import Final, final

import attrs
import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from actors.keys import key_set
from actors.keys.runtime_key import make_runtime_key
from actors.kit.arguments import PathInput, as_path
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import JWKS_BYTES, RSA_BITS_MIN

_NAME_CHARS: Final = 16
"""Characters of a key's thumbprint that are enough for a name."""

_MATERIAL: Final = ("kty", "crv", "x", "y", "n", "e", "d", "p", "q", "dp", "dq", "qi")


@final
@attrs.frozen
class SigningKey:
    """A private key.

    Attributes:
        name: What signatures call it (`kid`).
    """

    name: str
    algorithm: str
    _key: key_set.Key = attrs.field(repr=False)

    def private(self) -> JsonObject:
        """Return the private key as it is stored; keep it secret."""
        return self._with_name(dict(self._key.as_dict(private=True)))

    def public(self) -> JsonObject:
        """Return the public key, which verifies its signatures."""
        return self._with_name(dict(self._key.as_dict(private=False)))

    def signed(self, claims: JsonObject) -> str:
        """Return a token that claims this."""
        return self.sealed(orjson.dumps(claims), "JWT")

    def sealed(self, content: bytes, kind: str) -> str:
        """Return a compact JWS of some bytes, which says of what kind they are (`typ`).

        Args:
            content: Bytes to sign.
            kind: Value of `typ` in the header.
        """
        header = {"alg": self.algorithm, "kid": self.name, "typ": kind}
        return jws.serialize_compact(header, content, self._key, registry=key_set.REGISTRY)

    def _with_name(self, words: dict[str, str | list[str]]) -> JsonObject:
        plain: JsonObject = {name: words[name] for name in _MATERIAL if name in words}  # type: ignore[misc] # they are texts
        return {**plain, "kid": self.name, "alg": self.algorithm, "use": "sig"}


def make_key(algorithm: str, name: str | None = None) -> SigningKey:
    """Make a new key.

    Args:
        algorithm: One of `ALGORITHMS`.
        name: Name of the key; None: its fingerprint.

    Raises:
        ValueError: The algorithm is none of `ALGORITHMS`.
    """
    key = _generate(algorithm)
    return SigningKey(name or f"k{key.thumbprint()[:_NAME_CHARS]}", algorithm, key)


def make_domain_key(seed: bytes) -> SigningKey:
    """Make a key by which a domain states things of its runtimes.

    Args:
        seed: `SEED_BYTES` random bytes to make it of.
    """
    made = make_runtime_key(seed)
    words: JsonObject = orjson.loads(made.to_jwk())
    name = f"k{made.thumbprint[:_NAME_CHARS]}"
    return read_key(orjson.dumps({**words, "alg": key_set.EDDSA, "kid": name}))


def _generate(algorithm: str) -> key_set.Key:
    match key_set.canonical(algorithm):
        case "EdDSA":
            return OKPKey.generate_key("Ed25519")
        case "ES256":
            return ECKey.generate_key("P-256")
        case "ES384":
            return ECKey.generate_key("P-384")
        case "RS256" | "PS256":
            return RSAKey.generate_key(RSA_BITS_MIN)
        case _:
            raise ValueError(f"there is no algorithm {algorithm!r}")


def _content(path: PathInput) -> bytes:
    try:
        with as_path(path, "the key, if it is not bytes,").open("rb") as file:
            return file.read(JWKS_BYTES)
    except OSError as exc:
        raise key_set.BadKeysError(exc.strerror or "it cannot be read") from exc


def read_key(key: bytes | PathInput) -> SigningKey:
    """Read a key file. Blocks while it reads.

    Args:
        key: The content of the file, or its path.

    Raises:
        TypeError: It is neither.
        BadKeysError: It is none, or cannot be read.
    """
    try:
        content: Json = orjson.loads(key if isinstance(key, bytes) else _content(key))
    except orjson.JSONDecodeError as exc:
        raise key_set.BadKeysError("it is no JSON") from exc
    words = content if isinstance(content, dict) else {}
    algorithms = key_set.algorithms_of(words)
    name = words.get("kid")
    if not algorithms or not isinstance(name, str) or not name or "d" not in words:
        raise key_set.BadKeysError(
            f"it is no private key for {' or '.join(key_set.ALGORITHMS)} with a 'kid'"
        )
    try:
        material = key_set.import_key(words, _MATERIAL)
        _ = material.private_key
    except (JoseError, ValueError, KeyError) as exc:
        raise key_set.BadKeysError("the key is damaged") from exc
    return SigningKey(name, algorithms[0], material)


# Signed texts, before and after they are believed: JSON Web Signatures in compact form (RFC 7515).
#
# What was signed is exactly what is read: the bytes stand within the signature, so nothing has to
# be brought into a canonical form first, and no two readers could differ. A text says which key
# signed it and how, and is believed in neither: keys and algorithms come from the verifier.

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

    def is_signed_by(self, key: key_set.VerifyingKey) -> bool:
        """Return whether a key has signed the text."""
        try:
            jws.deserialize_compact(self.text, key.key, registry=key_set.REGISTRY)
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
