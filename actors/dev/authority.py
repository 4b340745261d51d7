"""TLS certificates for local development, and reloading of hyperty classes from source files."""

import datetime as dt
import importlib.util
import ipaddress
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Final, TypeAlias

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
from typing_extensions import override

from actors.kit.files import PRIVATE, write_whole
from actors.kit.supervision.supervisor import Crash
from actors.runtime.hyperty.hyperty import Hyperty
from specs.errors import ProtoflyError
from specs.limits.development import AUTHORITY_DAYS, CERTIFICATE_DAYS, RENEWAL_DAYS

_AUTHORITY: Final = "Protofly development authority"
_NODE: Final = "Protofly development node"
_EARLIER: Final = dt.timedelta(minutes=5)
"""Interval before its creation in which a certificate is already valid, as clocks may differ."""

_Alternative: TypeAlias = x509.DNSName | x509.IPAddress


@attrs.frozen
class LocalTls:
    """The TLS files of a local node, readable by their owner only.

    Attributes:
        ca: PEM file of the authority's certificate, for clients of the node.
        cert: PEM file of the node's certificate.
        key: PEM file of its private key.
    """

    ca: Path
    cert: Path
    key: Path


_Pair: TypeAlias = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]
"""A certificate and its key."""


def open_authority(folder: Path, hosts: Sequence[str], now: dt.datetime) -> LocalTls:
    """Return the TLS files in a folder; make those that are missing, damaged or nearly expired.

    The authority stays the same as long as it is valid, so that clients go on to trust it. Block.

    Args:
        folder: The folder, which exists.
        hosts: Names and addresses of the node.
        now: The present time.

    Raises:
        OSError: A file cannot be read or written.
    """
    files = LocalTls(folder / "ca.pem", folder / "node.pem", folder / "node-key.pem")
    ca_key = folder / "ca-key.pem"
    authority = _read(files.ca, ca_key, now)
    if authority is None:
        extensions = [x509.BasicConstraints(ca=True, path_length=0), _usage(is_ca=True)]
        authority = _make(_AUTHORITY, (now, AUTHORITY_DAYS), extensions)
        _write(files.ca, ca_key, authority)
    alternatives = [_alternative(host) for host in hosts]
    node = _read(files.cert, files.key, now)
    if node is None or not _fits(node[0], authority[0], alternatives):
        extensions = [
            x509.BasicConstraints(ca=False, path_length=None),
            _usage(is_ca=False),
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
            x509.SubjectAlternativeName(alternatives),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority[1].public_key()),
        ]
        node_pair = _make(_NODE, (now, CERTIFICATE_DAYS), extensions, authority[1])
        _write(files.cert, files.key, node_pair)
    return files


def _read(cert: Path, key: Path, now: dt.datetime) -> _Pair | None:
    """Read a certificate and its key; None: they are missing, no pair, or nearly expired."""
    try:
        certificate = x509.load_pem_x509_certificate(cert.read_bytes())
        private = load_pem_private_key(key.read_bytes(), password=None)
    except (ValueError, FileNotFoundError):
        return None
    latest = now + dt.timedelta(days=RENEWAL_DAYS)
    if not certificate.not_valid_before_utc <= now < latest < certificate.not_valid_after_utc:
        return None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        return None
    return (certificate, private) if private.public_key() == certificate.public_key() else None


def _fits(
    node: x509.Certificate, authority: x509.Certificate, alternatives: Sequence[_Alternative]
) -> bool:
    """Return whether the authority made the certificate of a node, for all of these hosts."""
    try:
        node.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    known = node.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return all(alternative in known for alternative in alternatives)


def _alternative(host: str) -> _Alternative:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return x509.DNSName(host)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
              "encipher_only", "decipher_only")  # fmt: skip
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        **dict.fromkeys(others, False),
    )


def _make(
    subject: str,
    validity: tuple[dt.datetime, int],
    extensions: Sequence[x509.ExtensionType],
    signer: ec.EllipticCurvePrivateKey | None = None,
) -> _Pair:
    """Make a key and its certificate.

    Args:
        subject: Name of the subject.
        validity: Present time, and days for which the certificate is valid.
        extensions: Extensions of the certificate; those about its use are critical.
        signer: Key of the authority; None: the certificate signs itself.
    """
    now, days = validity
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(_AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    for each in extensions:
        is_critical = isinstance(each, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(each, critical=is_critical)
    return builder.sign(signer or key, hashes.SHA256()), key


def _write(cert: Path, key: Path, pair: _Pair) -> None:
    private = pair[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for path, text in ((key, private), (cert, pair[0].public_bytes(Encoding.PEM))):
        write_whole(path, text, PRIVATE)


# The class of a hyperty in a file or module, reloaded after a change.

_FORM: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9_-]+)=)?"
    r"(?P<where>[^=]+\.py|[A-Za-z_][\w.]*):(?P<kind>[A-Za-z_]\w*)"
)

Stamp: TypeAlias = tuple[int, int, int]
"""Modification time, size and inode of a file, which show a change."""


class BadSourceError(ProtoflyError):
    """A source provides no class of a hyperty.

    Attributes:
        details: Traceback of the error; may be empty.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


class _Uncached(SourceFileLoader):
    """Loader that compiles a file at each load, as cached compiled files may be outdated."""

    @override
    def path_stats(self, path: str) -> dict[str, object]:
        raise OSError("compiled files are not used")


@attrs.frozen
class Source:
    """Location of the class of a hyperty.

    Attributes:
        name: Name of the hyperty.
        where: File or module.
        kind: Name of the class.
    """

    name: str
    where: str
    kind: str

    @override
    def __str__(self) -> str:
        return f"{self.where}:{self.kind}"

    def file(self) -> Path:
        """Return the file of the class; block.

        Raises:
            BadSourceError: There is no such file.
        """
        return Path(self._spec().origin or "")

    def stamp(self, file: Path) -> Stamp | None:
        """Return a stamp that changes with the file; None: the file is missing. Block."""
        try:
            status = file.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def load(self) -> type[Hyperty]:
        """Run the file again and return the class; block as long as its code does.

        If the load fails, the previous module stays.

        Raises:
            BadSourceError: The file cannot be loaded, or has no such class.
        """
        spec = self._spec()
        module = importlib.util.module_from_spec(spec)
        previous = sys.modules.get(spec.name)
        sys.modules[spec.name] = module
        with Crash() as crash:
            vars(spec)["loader"].exec_module(module)
        error = crash.error
        loaded: object = vars(module).get(self.kind)
        if error is None and isinstance(loaded, type) and issubclass(loaded, Hyperty):
            return loaded
        if previous is None:
            del sys.modules[spec.name]
        else:
            sys.modules[spec.name] = previous
        if error is None:
            raise BadSourceError(f"{self.where} has no hyperty {self.kind!r}")
        why = f"{self.where}: {type(error).__name__}: {error}"
        raise BadSourceError(why, _traceback(error, spec.origin or "")) from error

    def _spec(self) -> ModuleSpec:
        """Find the source, with a loader that compiles it.

        Raises:
            BadSourceError: There is no source.
        """
        if self.where.endswith(".py"):
            name, file = f"dev_{self.name.replace('-', '_')}", Path(self.where).absolute()
            if not file.is_file():
                raise BadSourceError(f"there is no file {self.where}")
        else:
            name, file = self.where, _origin(self.where)
        loader = _Uncached(name, str(file))
        spec = importlib.util.spec_from_file_location(name, file, loader=loader)
        if spec is None:
            raise BadSourceError(f"{self.where} cannot be loaded")
        return spec


def read_source(text: str) -> Source:
    """Read `[NAME=]module:Class` or `[NAME=]FILE.py:Class`.

    Raises:
        ValueError: The text has another form.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not of the form NAME=module:Class or FILE.py:Class")
    return Source(match["name"] or match["kind"].lower(), match["where"], match["kind"])


def _origin(module: str) -> Path:
    spec = None
    with Crash() as crash:
        spec = importlib.util.find_spec(module)
    if crash.error is not None:
        raise BadSourceError(f"cannot import {module}: {crash.error}") from crash.error
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise BadSourceError(f"there is no module {module} with a source")
    return Path(spec.origin)


def _traceback(error: Exception, file: str) -> str:
    """Return the traceback from the file on; of a syntax error only the place in the file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()
