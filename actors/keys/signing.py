"""Private keys that sign descriptors of a domain and login tokens for development and tests.

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
"""Number of characters of a key's thumbprint that form its default name."""

_MATERIAL: Final = ("kty", "crv", "x", "y", "n", "e", "d", "p", "q", "dp", "dq", "qi")


@final
@attrs.frozen
class SigningKey:
    """Private key that signs tokens and documents, with its name and algorithm.

    Attributes:
        name: Name of the key in signatures (`kid`).
    """

    name: str
    algorithm: str
    _key: key_set.Key = attrs.field(repr=False)

    def private(self) -> JsonObject:
        """Return the private key as a JSON Web Key, to be stored; keep it secret."""
        return self._with_name(dict(self._key.as_dict(private=True)))

    def public(self) -> JsonObject:
        """Return the public key as a JSON Web Key, which verifiers need."""
        return self._with_name(dict(self._key.as_dict(private=False)))

    def signed(self, claims: JsonObject) -> str:
        """Return a signed JSON Web Token with some claims."""
        return self.sealed(orjson.dumps(claims), "JWT")

    def sealed(self, content: bytes, kind: str) -> str:
        """Sign some bytes; return a compact JWS whose header states their kind (`typ`).

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
    """Make a new private key for an algorithm.

    Args:
        algorithm: One of `ALGORITHMS`.
        name: Name of the key; None: the beginning of its thumbprint.

    Raises:
        ValueError: The algorithm is not in `ALGORITHMS`.
    """
    key = _generate(algorithm)
    return SigningKey(name or f"k{key.thumbprint()[:_NAME_CHARS]}", algorithm, key)


def make_domain_key(seed: bytes) -> SigningKey:
    """Make the key with which a domain signs statements about its runtimes.

    Args:
        seed: `SEED_BYTES` random bytes for the key.
    """
    runtime_key = make_runtime_key(seed)
    words: JsonObject = orjson.loads(runtime_key.to_jwk())
    name = f"k{runtime_key.thumbprint[:_NAME_CHARS]}"
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
    """Read a private key from its file, or from the content of the file.

    Blocks.

    Args:
        key: The content of the file, or its path.

    Raises:
        TypeError: The argument is neither bytes nor a path.
        BadKeysError: The content is no private key, or the file cannot be read.
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


# Signed texts, before and after their verification: JSON Web Signatures in compact form (RFC 7515).
#
# The signed bytes are part of the text, so that they need no canonical form, and all readers read
# the same bytes. The key and the algorithm that a text names are not trusted: keys and algorithms
# come from the verifier.

_FORM: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")

HEADER: Final = frozenset({"alg", "kid", "typ"})
"""The only members that a header may have; no key, certificate or extension (RFC 8725, 3.10)."""


@attrs.frozen
class SignedText:
    """JSON Web Signature, split into its parts; the signature has not been verified.

    Attributes:
        header: The decoded header; None: it is no JSON object.
        payload: The signed bytes, decoded.
        content: The payload as a JSON object; None: it is no JSON object.
    """

    text: str = attrs.field(repr=False)
    header: JsonObject | None
    payload: bytes = attrs.field(repr=False)
    content: JsonObject | None = attrs.field(repr=False)

    def is_signed_by(self, key: key_set.VerifyingKey) -> bool:
        """Return whether a key has made the signature of this text."""
        try:
            jws.deserialize_compact(self.text, key.key, registry=key_set.REGISTRY)
        except (JoseError, ValueError):
            return False
        return True


def read_signed(text: str) -> SignedText | None:
    """Split a signed text into header and payload; None: the text is no JSON Web Signature."""
    parts = _FORM.fullmatch(text)
    if parts is None:
        return None
    header, payload = (_bytes(part) for part in parts.groups())
    return SignedText(text, _object(header), payload, _object(payload))


def _bytes(part: str) -> bytes:
    """Decode a base64url part of a signed text; return empty bytes if it is not base64url."""
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return b""


def _object(text: bytes) -> JsonObject | None:
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
