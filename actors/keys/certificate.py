"""Self-signed certificates of runtimes for direct links, and checks of certificate files.

The certificate of direct links is made in memory and used by one process. A peer recognises this
certificate only by the offer or answer that the key of the runtime has signed. So the certificate
has no expiry and no name.
"""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from transports.tls import OwnCertificate

_NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "protofly link")])
_SERIAL: Final = 1
"""Serial number of all certificates: each has its own key, so its issuer has no other."""

_BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
_END: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Expiry of the certificates: the date that means "no expiry" (RFC 5280 section 4.1.2.5)."""


def make_certificate(seed: bytes | None = None) -> OwnCertificate:
    """Make a self-signed certificate with a new Ed25519 key.

    Args:
        seed: `SEED_BYTES` random bytes for the key; None: from the operating system.
    """
    if seed is None:
        key = Ed25519PrivateKey.generate()
    else:
        key = Ed25519PrivateKey.from_private_bytes(seed)
    return _own(key, None)


def make_channel_certificate(seed: bytes | None = None) -> OwnCertificate:
    """Make a self-signed DTLS certificate, with a new key on a curve of all browsers (P-256).

    Args:
        seed: `SEED_BYTES` random bytes for the key; None: from the operating system.
    """
    curve = SECP256R1()
    if seed is None:
        return _own(generate_private_key(curve), SHA256())
    order = curve.group_order
    return _own(derive_private_key(1 + int.from_bytes(seed, "big") % (order - 1), curve), SHA256())


def fingerprint_of(certificate: OwnCertificate) -> str:
    """Return the SHA-256 fingerprint of a DTLS certificate, written as in a session description."""
    return f"sha-256 {hashlib.sha256(certificate.der).digest().hex(':').upper()}"


def _own(
    key: Ed25519PrivateKey | EllipticCurvePrivateKey, algorithm: SHA256 | None
) -> OwnCertificate:
    certificate = (
        x509.CertificateBuilder(_NAME, _NAME, key.public_key(), _SERIAL)
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, algorithm)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem = certificate.public_bytes(Encoding.PEM) + private
    return OwnCertificate(certificate.public_bytes(Encoding.DER), pem)


def is_certificate(der: bytes) -> bool:
    """Return whether some bytes are exactly one certificate in DER form."""
    try:
        x509.load_der_x509_certificate(der)
    except ValueError:
        return False
    return True


def invalid_time_reason(file: Path, now: datetime) -> str:
    """Return why the first certificate of a PEM file is not valid now; empty if it is valid.

    Args:
        file: The file.
        now: The present time.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file contains no certificate.
    """
    cert = x509.load_pem_x509_certificate(file.read_bytes())
    if now > cert.not_valid_after_utc:
        return f"the certificate in {file} is good until {cert.not_valid_after_utc:%Y-%m-%d} only"
    if now < cert.not_valid_before_utc:
        return f"the certificate in {file} is good from {cert.not_valid_before_utc:%Y-%m-%d} on"
    return ""
