"""Web Push: keys of a device and of a sender, and encrypted messages that only the device can read.

Messages are encrypted by RFC 8291, with the library `http-ece`; a sender proves its identity by RFC
8292 (VAPID). The library is part of the extra `push`.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, final

import attrs
import orjson
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    derive_private_key,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from actors.keys.base64url import read_base64url, write_base64url
from actors.keys.key_file import KeyFileError
from actors.keys.signing import SigningKey, make_key, read_key
from actors.kit.arguments import PathInput, as_path
from actors.kit.files import errors_of, write_private
from specs.bodies.push import Call, PushSubscription
from specs.bodies.push import PushKeys as PublicKeys
from specs.errors import BadMessageError, ReasonError
from specs.limits.node import JWKS_BYTES
from transports.bodies import read_object

if TYPE_CHECKING:
    from specs.jsonvalue import Json, JsonObject


_AUTH_BYTES: Final = 16
_POINT_BYTES: Final = 65
_ENCODING: Final = "aes128gcm"
_PROOF_LIFE: Final = 12 * 3600
"""Seconds for which a sender's signed proof of identity is valid; RFC 8292 permits a day."""


@final
class PushError(ReasonError, public=True):
    """A push message cannot be read by this device, or a key of a device is invalid."""

    summary = "no push message"


@final
@attrs.frozen
class PushKeys:
    """The private keys of a device for its push messages; keep them while the device sleeps."""

    _private: EllipticCurvePrivateKey = attrs.field(repr=False)
    _auth: bytes = attrs.field(repr=False)

    @classmethod
    def load(cls, path: PathInput) -> Self:
        """Return the private keys in a file; if it is missing, make keys and write the file.

        Blocks.

        Args:
            path: Path of the file, which only its owner can read.

        Raises:
            TypeError: The argument is no path.
            KeyFileError: The file cannot be read or made, or contains no such keys.
        """
        file = as_path(path, "path")
        try:
            if not file.exists():
                number = generate_private_key(SECP256R1()).private_numbers().private_value
                words = {
                    "private": write_base64url(number.to_bytes(32, "big")),
                    "auth": write_base64url(os.urandom(_AUTH_BYTES)),
                }
                write_private(file, orjson.dumps(words))
            with file.open("rb") as stream:
                return cls._read(stream.read(JWKS_BYTES))
        except OSError as exc:
            raise KeyFileError(file, exc.strerror or "it cannot be read") from exc
        except (ValueError, TypeError, KeyError) as exc:
            raise KeyFileError(file, "it holds no keys of a device") from exc

    @classmethod
    def _read(cls, text: bytes) -> Self:
        words: dict[str, str] = orjson.loads(text)
        secret = int.from_bytes(read_base64url(words["private"]), "big")
        return cls(derive_private_key(secret, SECP256R1()), read_base64url(words["auth"]))

    def subscription(self, endpoint: str) -> PushSubscription:
        """Return the subscription to send to the node: URL and public keys of this device.

        Args:
            endpoint: URL that the push service gave to the device.
        """
        point = self._private.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        return PushSubscription(
            endpoint, PublicKeys(write_base64url(point), write_base64url(self._auth))
        )

    def read(self, content: bytes) -> Call:
        """Decrypt a push message, and return the call that it announces.

        Args:
            content: The encrypted content of the push message.

        Raises:
            PushError: The message is for other keys, was changed on its way, or contains no call.
        """
        import http_ece  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

        try:
            text: bytes = http_ece.decrypt(
                content, private_key=self._private, auth_secret=self._auth, version=_ENCODING
            )
            value: Json = orjson.loads(text)
            if not isinstance(value, dict):
                raise PushError("it is no object")
            return read_object(value, Call, "call")
        except (http_ece.ECEException, ValueError, BadMessageError) as exc:
            raise PushError("it is not for this device") from exc


def encrypt(subscription: PushSubscription, text: bytes) -> bytes:
    """Encrypt a text so that only one device can read it.

    Args:
        subscription: Subscription of the device, with its public keys.
        text: At most 3993 bytes.

    Raises:
        PushError: The keys of the device are invalid.
    """
    import http_ece  # noqa: PLC0415 - an extra

    try:
        point, secret = read_keys(subscription)
        content: bytes = http_ece.encrypt(
            text,
            private_key=generate_private_key(SECP256R1()),
            dh=point,
            auth_secret=secret,
            version=_ENCODING,
        )
    except (http_ece.ECEException, ValueError) as exc:
        raise PushError("the device has no valid keys") from exc
    return content


def read_keys(subscription: PushSubscription) -> tuple[bytes, bytes]:
    """Return the public key (a curve point) and the authentication secret in a subscription.

    Raises:
        ValueError: The keys are invalid.
    """
    point = read_base64url(subscription.keys.p256dh)
    secret = read_base64url(subscription.keys.auth)
    EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    if len(point) != _POINT_BYTES or len(secret) != _AUTH_BYTES:
        raise ValueError("a key has another size")
    return point, secret


def open_push_key(path: Path) -> SigningKey:
    """Return the key with which a node signs push requests; make the file if missing.

    Blocks.

    Args:
        path: The file, a JSON Web Key for ES256.

    Raises:
        KeyFileError: The file cannot be read or made, or contains no such key.
    """
    with errors_of(path, KeyFileError):
        if not path.exists():
            write_private(path, orjson.dumps(make_key("ES256").private()))
        key = read_key(path)
    if key.algorithm != "ES256":
        raise KeyFileError(path, f"it is a key for {key.algorithm}, and push services take ES256")
    return key


def public_point(key: SigningKey) -> str:
    """Return a public key as text, in the form of `applicationServerKey` of browsers (RFC 8292)."""
    words = key.public()
    return write_base64url(
        b"\x04" + read_base64url(str(words["x"])) + read_base64url(str(words["y"]))
    )


def vapid(key: SigningKey, origin: str, contact: str, now: float) -> str:
    """Return the header `Authorization` that identifies the sender to a push service (RFC 8292).

    Args:
        key: Key of the sender.
        origin: Scheme, host and port of the push service.
        contact: `mailto:` or `https:` URL of the operator.
        now: Seconds since the epoch.
    """
    claims: JsonObject = {"aud": origin, "exp": int(now) + _PROOF_LIFE, "sub": contact}
    return f"vapid t={key.signed(claims)}, k={public_point(key)}"
