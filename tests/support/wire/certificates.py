"""Certificates of a test's own authority, as files and as contexts."""

from pathlib import Path

import trustme

from transports.tls import client_context, server_context


class Certificates:
    """An authority, and a certificate of this machine's loopback address.

    Attributes:
        authority: The authority; it may issue more.
        ca: Its certificate, as a file.
        cert: The certificate of a listener, as a file.
        key: Its key, as a file.
        listener: What a listener shows.
        dialler: What trusts the authority, and no other.
    """

    def __init__(self, directory: Path, *names: str) -> None:
        self.authority = trustme.CA()
        self.ca = directory / "ca.pem"
        self.authority.cert_pem.write_to_path(str(self.ca))
        self.cert, self.key = self.issue(directory, "listener", *(names or ("127.0.0.1",)))
        self.listener = server_context(self.cert, self.key)
        self.dialler = client_context(self.ca)

    def issue(self, directory: Path, name: str, *identities: str, **more) -> tuple[Path, Path]:
        """Issue a certificate; return its file and that of its key."""
        issued = self.authority.issue_cert(*identities, **more)
        cert, key = directory / f"{name}.pem", directory / f"{name}.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        key.chmod(0o600)
        return cert, key
