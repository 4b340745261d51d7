"""A local certificate authority and the certificate of the local node, in files."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from actors.keys.key_file import write_private
from specs.limits.development import AUTHORITY_DAYS, CERTIFICATE_DAYS, RENEWAL_DAYS

_AUTHORITY: Final = "Protofly development authority"
_NODE: Final = "Protofly development node"
_EARLIER: Final = dt.timedelta(minutes=5)
"""How long before its making a certificate is good: clocks of one machine may differ a little."""

_Alternative: TypeAlias = x509.DNSName | x509.IPAddress


@final
@attrs.frozen
class LocalTls:
    """The TLS files of a local node, readable by their owner only.

    Attributes:
        ca: PEM file of the authority's certificate, for those who dial the node.
        cert: PEM file of the node's certificate.
        key: PEM file of its private key.
    """

    ca: Path
    cert: Path
    key: Path


@final
@attrs.frozen
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = attrs.field(repr=False)


def open_authority(folder: Path, hosts: Sequence[str], now: dt.datetime) -> LocalTls:
    """Return the files of TLS in a folder; what is missing, damaged or nearly over is made.

    The authority stays the same as long as it is good, so what trusts it goes on to do so.
    Blocks.

    Args:
        folder: The folder, which exists.
        hosts: Names and addresses by which the node is dialled.
        now: The present time.

    Raises:
        OSError: A file cannot be read or written.
    """
    files = LocalTls(folder / "ca.pem", folder / "node.pem", folder / "node-key.pem")
    ca_key = folder / "ca-key.pem"
    authority = _read(files.ca, ca_key, now)
    if authority is None:
        authority = _make_authority(now)
        _write(files.ca, ca_key, authority)
    alternatives = [_alternative(host) for host in hosts]
    node = _read(files.cert, files.key, now)
    if node is None or not _fits(node.certificate, authority.certificate, alternatives):
        _write(files.cert, files.key, _make_node(authority, alternatives, now))
    return files


def _read(cert: Path, key: Path, now: dt.datetime) -> _Pair | None:
    """Read a certificate and its key; None: they are not there, no pair, or nearly over."""
    if not (cert.exists() and key.exists()):
        return None
    try:
        certificate = x509.load_pem_x509_certificate(cert.read_bytes())
        private = load_pem_private_key(key.read_bytes(), password=None)
    except ValueError:
        return None
    latest = now + dt.timedelta(days=RENEWAL_DAYS)
    if not certificate.not_valid_before_utc <= now < latest < certificate.not_valid_after_utc:
        return None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        return None
    return _Pair(certificate, private) if private.public_key() == certificate.public_key() else None


def _fits(
    node: x509.Certificate, authority: x509.Certificate, alternatives: Sequence[_Alternative]
) -> bool:
    """Return whether this authority made the certificate of a node, for all of these hosts."""
    try:
        node.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    known = node.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return all(one in known for one in alternatives)


def _alternative(host: str) -> _Alternative:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return x509.DNSName(host)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _begun(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, good: tuple[dt.datetime, int]
) -> x509.CertificateBuilder:
    now, days = good
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _make_authority(now: dt.datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _begun(_AUTHORITY, _AUTHORITY, key, (now, AUTHORITY_DAYS))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _make_node(authority: _Pair, alternatives: Sequence[_Alternative], now: dt.datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    names = x509.SubjectAlternativeName(alternatives)
    builder = _begun(_NODE, _AUTHORITY, key, (now, CERTIFICATE_DAYS))
    builder = builder.add_extension(
        x509.BasicConstraints(ca=False, path_length=None), critical=True
    )
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(server, critical=False)
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(issuer, critical=False)
    return _Pair(builder.sign(authority.key, hashes.SHA256()), key)


def _write(cert: Path, key: Path, pair: _Pair) -> None:
    private = pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for path, text in ((key, private), (cert, pair.certificate.public_bytes(Encoding.PEM))):
        path.unlink(missing_ok=True)
        write_private(path, text)
