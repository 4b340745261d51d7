"""Credentials of a NATS user: a signed statement of the account, and the key of the user.

A server sends a challenge and the client signs it, so no secret goes over the connection. The
file is one that `nsc generate creds` writes, or holds the seed of a key alone.
"""

import base64
import binascii
import re
from pathlib import Path
from typing import Final, Self, final

import attrs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from transports.nats.errors import CredentialsError

_BLOCK: Final = re.compile(r"-+BEGIN ([A-Z ]+)-+\s*(\S+)\s*-+END [A-Z ]+-+")
_SEED: Final = re.compile(r"SU[A-Z2-7]{56}")
_SEED_BYTES: Final = 36
"""Two bytes of prefixes, the seed of Ed25519, a checksum."""
_USER: Final = 20 << 3
"""Prefix of a public key of a user."""


@final
@attrs.frozen
class Credentials:
    """A key that proves who this client is.

    Attributes:
        statement: The statement (JWT) of the account about the user; empty: the server knows the
            key.
        key: The private key.
    """

    statement: str = attrs.field(repr=False)
    key: Ed25519PrivateKey = attrs.field(repr=False)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a file.

        Raises:
            CredentialsError: It cannot be read, or is of another form.
        """
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as exc:
            reason = str(exc.strerror).lower() if isinstance(exc, OSError) else "it is no text"
            raise CredentialsError(file, reason) from exc
        blocks = dict(_BLOCK.findall(text))
        seed = blocks.get("USER NKEY SEED", text.strip())
        if not _SEED.fullmatch(seed):
            raise CredentialsError(file, "it holds no seed of a user's key")
        return cls(blocks.get("NATS USER JWT", ""), _private(file, seed))

    def proof(self, challenge: str) -> dict[str, str]:
        """Return the fields of a greeting that answer the challenge of a server."""
        signed = base64.urlsafe_b64encode(self.key.sign(challenge.encode())).rstrip(b"=").decode()
        if self.statement:
            return {"jwt": self.statement, "sig": signed}
        public = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return {"nkey": _encoded(bytes([_USER]) + public), "sig": signed}


def _private(file: Path, seed: str) -> Ed25519PrivateKey:
    raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    if len(raw) != _SEED_BYTES or _checksum(raw[:-2]) != raw[-2:]:
        raise CredentialsError(file, "the seed of the key has a wrong checksum")
    return Ed25519PrivateKey.from_private_bytes(raw[2:-2])


def _encoded(raw: bytes) -> str:
    return base64.b32encode(raw + _checksum(raw)).rstrip(b"=").decode()


def _checksum(raw: bytes) -> bytes:
    return binascii.crc_hqx(raw, 0).to_bytes(2, "little")
