"""The private key of a runtime: making and reading keys, signing, and verifying signatures.

The key is Ed25519 (RFC 8032). Its name is its thumbprint as a JSON Web Key (RFC 7638), the value of
`jkt` in the `cnf` claim of a token (RFC 7800). Each signature covers its purpose, so that a
signature for one purpose is void for all others.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import attrs
import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from actors.keys.base64url import read_base64url, write_base64url
from actors.keys.key_set import BadKeysError

_KEY_BYTES: Final = 32
SEED_BYTES: Final = _KEY_BYTES
"""Number of random bytes from which a private key can be made."""

_PREFIX: Final = "protofly/1"


@attrs.frozen
class RuntimeKey:
    """Ed25519 private key of a runtime, which signs the runtime's statements to peers and nodes.

    Attributes:
        public: The public key, 32 bytes in base64url without padding (`x` of its JSON Web Key).
        thumbprint: Name of the key: SHA-256 of its JSON Web Key, in base64url without padding.
    """

    public: str
    thumbprint: str
    _key: Ed25519PrivateKey = attrs.field(repr=False)

    def signature(self, purpose: str, parts: Sequence[str]) -> str:
        """Sign a list of texts for a purpose, and return the signature.

        Args:
            purpose: Purpose of the signature, such as `open`; the signature covers it.
            parts: The texts, in an order that signer and verifier both know.

        Returns:
            The signature in base64url without padding.
        """
        return write_base64url(self._key.sign(_bytes_to_sign(purpose, parts)))

    def to_jwk(self) -> bytes:
        """Return the private key as a JSON Web Key, to be stored in its file; keep it secret."""
        private = write_base64url(self._key.private_bytes_raw())
        words = {"kty": "OKP", "crv": "Ed25519", "x": self.public, "d": private}
        return orjson.dumps(words, option=orjson.OPT_APPEND_NEWLINE)


def make_runtime_key(seed: bytes | None = None) -> RuntimeKey:
    """Make a new Ed25519 key.

    Args:
        seed: `SEED_BYTES` random bytes for the key; None: from the operating system.
    """
    if seed is None:
        return _of(Ed25519PrivateKey.generate())
    return _of(Ed25519PrivateKey.from_private_bytes(seed))


def read_runtime_key(text: bytes) -> RuntimeKey:
    """Read a private key from the content of a key file.

    Args:
        text: A JSON Web Key for Ed25519 with its private part.

    Raises:
        BadKeysError: The text is no such key, or its private and public parts do not match.
    """
    try:
        words = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise BadKeysError("it is no JSON") from exc
    match words:
        case {"kty": "OKP", "crv": "Ed25519", "x": str(public), "d": str(private)}:
            raw = _part(private)
        case _:
            raise BadKeysError("it is no private key for Ed25519")
    if len(raw) != _KEY_BYTES:
        raise BadKeysError("the key is damaged")
    key = _of(Ed25519PrivateKey.from_private_bytes(raw))
    if key.public != public:
        raise BadKeysError("its public part belongs to another key")
    return key


def thumbprint_of(public: str) -> str:
    """Return the thumbprint of a public key, which serves as its name (RFC 7638).

    Args:
        public: The public key in base64url.

    Raises:
        BadKeysError: The text is no public key for Ed25519.
    """
    if len(_part(public)) != _KEY_BYTES:
        raise BadKeysError("a public key for Ed25519 has 32 bytes")
    canonical = f'{{"crv":"Ed25519","kty":"OKP","x":"{public}"}}'
    return write_base64url(hashlib.sha256(canonical.encode()).digest())


def is_signed(public: str, purpose: str, parts: Sequence[str], signature: str) -> bool:
    """Return whether a signature of some texts for a purpose was made by a certain key.

    Args:
        public: The public key in base64url.
        purpose: The purpose for which the texts must be signed.
        parts: The texts, in the order of the signer.
        signature: The signature in base64url.
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(read_base64url(public))
        key.verify(read_base64url(signature), _bytes_to_sign(purpose, parts))
    except (ValueError, InvalidSignature):
        return False
    return True


def _of(key: Ed25519PrivateKey) -> RuntimeKey:
    public = write_base64url(key.public_key().public_bytes_raw())
    return RuntimeKey(public, thumbprint_of(public), key)


def _bytes_to_sign(purpose: str, parts: Sequence[str]) -> bytes:
    """Return the bytes to sign: a JSON list, so that no two lists of texts give the same bytes."""
    return orjson.dumps([_PREFIX, purpose, *parts])


def _part(text: str) -> bytes:
    try:
        return read_base64url(text)
    except ValueError as exc:
        raise BadKeysError("a part of it is no base64url") from exc
