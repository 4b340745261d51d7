"""Keys of NATS, and statements about them, as its tools write them."""

import base64
import binascii
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3


def encoded(raw: bytes) -> str:
    raw += binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(raw).decode().rstrip("=")


class Key:
    """A key of NATS, written as its tools write it."""

    def __init__(self, kind: int) -> None:
        self._key = Ed25519PrivateKey.generate()
        raw = self._key.private_bytes_raw()
        self.public = encoded(bytes([kind]) + self._key.public_key().public_bytes_raw())
        self.seed = encoded(bytes([SEED | kind >> 5, (kind & 31) << 3]) + raw)

    def state(self, subject: "Key", claims: dict[str, object]) -> str:
        """Return a signed statement about another key."""
        parts = [
            {"typ": "JWT", "alg": "ed25519-nkey"},
            {"iss": self.public, "sub": subject.public, "iat": 1, "jti": "1",
             "nats": {"version": 2, **claims}},
        ]  # fmt: skip
        text = ".".join(unpadded(json.dumps(part).encode()) for part in parts)
        return f"{text}.{unpadded(self._key.sign(text.encode()))}"


def unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
