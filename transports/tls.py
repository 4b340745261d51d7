"""TLS for links: contexts made of files or of pinned certificates, and encrypted connections.

The dialling end of a WebSocket uses Trio's `SSLStream`. Other ends use `TlsStream`: after a
cancelled write, the next write can continue at the same byte, which `SSLStream` does not allow. The
handshake of an accepting end takes place in the first read, within its deadline.

Two ends that know each other's certificate beforehand accept no other one (`PinnedTls`).
"""

import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from specs.errors import ProtoflyError
from specs.limits.protocol import READ_BYTES
from transports.errors import CertificateError, DialError

_RECORD: Final = 1 << 14
"""Bytes of plain text in one record of TLS at most (RFC 8446 section 5.1)."""


NOT_ACCEPTED: Final = "its certificate is not accepted"
"""Beginning of the reason in an error if the certificate of a server is not accepted."""

_OTHERS: Final = 0o077


@final
class TlsFileError(ProtoflyError, public=True):
    """A file of certificates or keys cannot be used.

    Attributes:
        file: Its path.
    """

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"cannot use {file}: {reason}")
        self.file = file


def server_context(cert: Path, key: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """Make the TLS context for a listener from files.

    Args:
        cert: PEM file: the certificate of the listener, then those between it and its authority.
        key: PEM file: the private key, not encrypted.
        client_ca: PEM file: authorities of the certificate that every peer has to show; None: no
            certificate is needed.

    Raises:
        TlsFileError: A file cannot be read or used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A peer of TLS 1.2 could otherwise have keys computed again and again.
    context.options |= ssl.OP_NO_RENEGOTIATION
    load_identity(context, cert, key)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        _load_authorities(context, client_ca)
    return context


def client_context(
    ca: Path | None = None, cert: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """Make the TLS context for dialling from files.

    Args:
        ca: PEM file: the trusted authorities; None: those of the operating system.
        cert: PEM file: the certificate to show to a listener that asks for one; None: none.
        key: PEM file: its private key.

    Raises:
        TlsFileError: A file cannot be read or used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is None:
        context.load_default_certs()
    else:
        _load_authorities(context, ca)
    if cert is not None and key is not None:
        load_identity(context, cert, key)
    return context


def load_identity(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """Load the certificate and key with which a TLS context identifies itself in later handshakes.

    Raises:
        TlsFileError: A file cannot be read or used; the context stays as it was.
    """
    for file in (cert, key):
        _check_readable(file)
    try:
        # Without a callback OpenSSL would ask for a password at the terminal.
        context.load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as exc:
        if exc.reason == "KEY_VALUES_MISMATCH":
            raise TlsFileError(key, f"it is not the key of the certificate in {cert}") from exc
        if "BEGIN CERTIFICATE" not in cert.read_text(errors="replace"):
            raise TlsFileError(cert, "it holds no certificate in PEM form") from exc
        raise TlsFileError(key, "it holds no private key in PEM form without a password") from exc


def is_open_to_others(key: Path) -> bool:
    """Return whether other users than the owner have rights on a key file."""
    return bool(key.stat().st_mode & _OTHERS)


def _load_authorities(context: ssl.SSLContext, file: Path) -> None:
    _check_readable(file)
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as exc:
        raise TlsFileError(file, "it holds no certificates in PEM form") from exc


@attrs.frozen
class OwnCertificate:
    """The certificate of this end of a link, and its private key, in memory only.

    Attributes:
        der: The certificate in DER form.
        pem: Certificate and private key in PEM form.
    """

    der: bytes
    pem: bytes = attrs.field(repr=False)


class PinnedContext(ssl.SSLContext):
    """TLS 1.3 context that shows one certificate, and accepts exactly one certificate of the peer.

    Attributes:
        own: The certificate that this end shows.
        peer: The only certificate that is accepted; None: every handshake fails.
    """

    own: bytes
    peer: bytes | None

    @classmethod
    def of(cls, own: OwnCertificate, protocol: int, peer: bytes | None) -> Self:
        """Make a context.

        Args:
            own: The certificate that this end shows.
            protocol: `ssl.PROTOCOL_TLS_SERVER` or `ssl.PROTOCOL_TLS_CLIENT`.
            peer: The certificate that is accepted; None: none is, until `pin`.
        """
        context = cls(protocol)
        context.check_hostname = False  # certificates are compared by bytes, not by name
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if protocol == ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0  # a resumed session would show no certificate
        _load_from_memory(context, own.pem)
        context.own, context.peer = own.der, None
        if peer is not None:
            context.pin(peer)
        return context

    def pin(self, peer: bytes) -> None:
        """Accept this certificate of the peer from now on, if no other one is accepted already."""
        if self.peer is None:
            self.peer = peer
            # An unreadable certificate fails every handshake; empty bytes are a ValueError.
            with suppress(ssl.SSLError, ValueError):
                self.load_verify_locations(cadata=peer)


def _load_from_memory(context: ssl.SSLContext, pem: bytes) -> None:
    """Load certificate and private key into a TLS context without writing them to a disk."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


class PinnedTls:
    """TLS contexts of one end for links to one peer, whose certificate is known beforehand.

    The contexts are made when they are first used.

    Args:
        own: Returns the certificate that this end shows.

    Attributes:
        peer: The only certificate that is accepted; None: it is not known yet.
    """

    def __init__(self, own: Callable[[], OwnCertificate]) -> None:
        self._own = own
        self.peer: bytes | None = None
        self._contexts: dict[int, PinnedContext] = {}

    @property
    def listening(self) -> PinnedContext:
        """The TLS context for listeners to which the peer connects."""
        return self._context(ssl.PROTOCOL_TLS_SERVER)

    @property
    def dialling(self) -> PinnedContext:
        """The TLS context for dialling the peer."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, protocol: int) -> PinnedContext:
        context = self._contexts.get(protocol)
        if context is None:
            context = PinnedContext.of(self._own(), protocol, self.peer)
            self._contexts[protocol] = context
        return context

    def pin(self, peer: bytes) -> None:
        """Accept this certificate of the peer, and no other, ever."""
        self.peer = peer if self.peer is None else self.peer
        for context in self._contexts.values():
            context.pin(self.peer)


def _check_readable(file: Path) -> None:
    try:
        with file.open("rb"):
            pass
    except OSError as exc:
        raise TlsFileError(file, str(exc.strerror).lower()) from exc


def dial_error(address: str, error: BaseException) -> DialError:
    """Convert the error of a failed TLS handshake to an error of dialling, with the reason.

    Args:
        address: The dialled address.
        error: The error that Trio has raised.
    """
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return CertificateError(address, _reason_of(cause))
    return DialError(address, tls_reason(error) or "the server hung up during the TLS handshake")


def tls_reason(error: BaseException) -> str | None:
    """Return why a TLS handshake failed, from an error or its cause; None: not because of TLS."""
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _reason_of(cause)
    if cause is not None and cause.reason:
        return f"TLS failed: {cause.reason.replace('_', ' ').lower()}"
    return None


def _cause(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None and not isinstance(error, ssl.SSLError):
        # httpcore hides the cause of its errors; it stays their context.
        error = error.__cause__ or error.__context__
    return error


def _reason_of(error: ssl.SSLCertVerificationError) -> str:
    first, _, rest = error.verify_message.rstrip(".").partition(" ")
    # "IP address mismatch" begins with a name, other reasons with a word.
    return f"{NOT_ACCEPTED}: {first if first.isupper() else first.lower()} {rest}"


class TlsSocket:
    """The socket of a `TlsStream`: the methods of a Trio socket that a link uses, encrypted."""

    __slots__ = ("_incoming", "_outgoing", "_owed", "_pen", "_raw", "_tls", "_unsent")

    def __init__(
        self,
        stream: trio.SocketStream,
        context: ssl.SSLContext,
        host: str | None = None,
        *,
        is_dialled: bool = False,
    ) -> None:
        self._raw: Final = stream.socket
        self._incoming: Final = ssl.MemoryBIO()
        self._outgoing: Final = ssl.MemoryBIO()
        self._tls: Final = context.wrap_bio(
            self._incoming, self._outgoing, server_side=not is_dialled, server_hostname=host
        )
        self._unsent: Final = bytearray()
        self._owed = 0
        self._pen: Final = trio.Lock()

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return self._raw.fileno()

    @property
    def peer_certificate(self) -> bytes | None:
        """Certificate of the peer in DER form; None: it showed none, or has not yet."""
        try:
            return self._tls.getpeercert(binary_form=True)
        except ValueError:  # the handshake is not done
            return None

    async def shake_hands(self) -> None:
        """Complete the TLS handshake; a dialling end must do so before it writes.

        If cancelled, the connection cannot be used any more.

        Raises:
            OSError: The connection broke, or TLS failed; the peer is notified.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._feed()
            except ssl.SSLError:
                with suppress(OSError):
                    await self._flush()
                raise
            else:
                return await self._flush()

    def getpeername(self) -> tuple[str, int]:
        """Return host and port of the peer."""
        host, port, *_ = self._raw.getpeername()
        return str(host), int(port)

    async def send(self, data: bytes | bytearray | memoryview) -> int:
        """Write as many of the first bytes as fit into one TLS record; return their number.

        If cancelled, the bytes may have been encrypted already: the next call must begin with the
        same bytes.

        Raises:
            OSError: The connection broke, or TLS failed.
        """
        if not self._owed:
            with memoryview(data)[:_RECORD] as part:
                self._owed = self._tls.write(part)
        await self._flush()
        done, self._owed = self._owed, 0
        return done

    def send_now(self, data: bytes | bytearray) -> int:
        """Write the first bytes without waiting; return how many the system has accepted.

        If the result is 0, bytes may have been encrypted already, as after a cancelled `send`.

        Raises:
            OSError: The connection broke, or TLS failed.
        """
        if self._owed or self._pen.locked():
            return 0
        self._owed = self._tls.write(data[:_RECORD])
        self._unsent.extend(self._outgoing.read())
        with suppress(BlockingIOError):
            del self._unsent[: os.write(self.fileno(), self._unsent)]
        if self._unsent:
            return 0
        done, self._owed = self._owed, 0
        return done

    async def recv(self, size: int) -> bytes:
        """Read at most `size` decrypted bytes; an empty result: the peer has closed its side.

        If cancelled, nothing is lost.

        Raises:
            OSError: The connection broke, or TLS failed; the peer is notified.
        """
        if not (self._incoming.pending or self._incoming.eof or self._tls.pending()):
            await self._feed()  # a read would surely raise
        while True:
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                data = self._tls.read(size)
            except ssl.SSLWantReadError:
                await self._feed()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError:
                await self._send_alert()
                raise
            else:
                if not data:
                    self._incoming.write_eof()
                return data

    def recv_now(self) -> list[bytes]:
        """Read the available bytes, in pieces, without waiting; an empty last piece marks the end.

        Protocol messages of TLS are written as far as the system accepts them, the rest later.

        Raises:
            OSError: The connection broke, or TLS failed; the peer is notified if there is room.
        """
        with suppress(BlockingIOError):
            raw = os.read(self.fileno(), READ_BYTES)
            if raw:
                self._incoming.write(raw)
            else:
                self._incoming.write_eof()
        pieces: list[bytes] = []
        try:
            # All of it: a socket that has nothing more is not reported again.
            while not pieces or pieces[-1]:
                pieces.append(self._tls.read(READ_BYTES))
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pieces.append(b"")
        except ssl.SSLError:
            if not pieces:  # else it is raised again by the next call
                raise
        finally:
            if self._outgoing.pending and not self._pen.locked():
                self._unsent.extend(self._outgoing.read())
                with suppress(OSError):
                    del self._unsent[: os.write(self.fileno(), self._unsent)]
        if pieces and not pieces[-1]:
            self._incoming.write_eof()
        return pieces

    async def _send_alert(self) -> None:
        if not self._pen.locked():  # else a task waits for the peer to read
            with suppress(OSError):
                await self._flush()

    async def _feed(self) -> None:
        """Read encrypted bytes from the peer; before that, write pending TLS protocol messages."""
        if (self._outgoing.pending or self._unsent) and not self._pen.locked():
            await self._flush()
        raw = await receive(self._raw)
        if raw:
            self._incoming.write(raw)
        else:
            self._incoming.write_eof()

    async def end(self) -> None:
        """Notify the peer that nothing more is sent.

        Raises:
            OSError: The connection broke.
        """
        with suppress(ssl.SSLError):  # it waits for the notice of the peer, or nothing has begun
            self._tls.unwrap()
        await self._flush()

    async def _flush(self) -> None:
        try:
            self._pen.acquire_nowait()
        except trio.WouldBlock:
            await self._pen.acquire()
        try:
            self._unsent.extend(self._outgoing.read())
            while self._unsent:
                sent = await self._raw.send(self._unsent)
                del self._unsent[:sent]
        finally:
            self._pen.release()


class TlsStream(trio.abc.HalfCloseableStream):
    """Trio stream over a TLS connection; a dialling end first calls `socket.shake_hands`.

    Attributes:
        socket: The encrypted socket, which a link may read and write directly.
    """

    def __init__(
        self,
        stream: trio.SocketStream,
        context: ssl.SSLContext,
        host: str | None = None,
        *,
        is_dialled: bool = False,
    ) -> None:
        self._stream: Final = stream
        self.socket: Final = TlsSocket(stream, context, host, is_dialled=is_dialled)

    @override
    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[await self.socket.send(rest) :]
        except OSError as exc:
            raise trio.BrokenResourceError("TLS ended") from exc

    @override
    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    @override
    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            return await self.socket.recv(READ_BYTES if max_bytes is None else max_bytes)
        except OSError as exc:
            raise trio.BrokenResourceError("TLS ended") from exc

    @override
    async def send_eof(self) -> None:
        try:
            await self.socket.end()
        except OSError as exc:
            raise trio.BrokenResourceError("TLS ended") from exc
        await self._stream.send_eof()

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Set an option of the socket."""
        self._stream.setsockopt(level, option, value)

    def getsockopt(self, level: int, option: int, length: int) -> bytes:
        """Return an option of the socket."""
        return self._stream.getsockopt(level, option, length)


async def receive(connection: trio.socket.SocketType) -> bytes:
    """Read the available bytes, at most `READ_BYTES`; empty: the peer has closed its side.

    A connection is nearly always empty at this point, so this function waits first. `recv` of Trio
    tries to read first, which costs a system call and an exception.

    If cancelled, nothing is lost.

    Raises:
        OSError: The connection broke.
        trio.ClosedResourceError: This end was closed meanwhile.
    """
    while True:
        await trio.lowlevel.wait_readable(connection)
        with suppress(BlockingIOError):
            return os.read(connection.fileno(), READ_BYTES)


AcceptedStream: TypeAlias = trio.SocketStream | TlsStream
"""Type of connections below links: plain or with TLS."""


async def begin_tls(
    stream: trio.SocketStream, tls: ssl.SSLContext, address: str, host: str | None = None
) -> TlsStream:
    """Perform the TLS handshake on a dialled connection, and return the encrypted stream.

    Args:
        stream: The connection; it is closed if TLS fails.
        tls: The context of this end.
        address: The dialled address, for the error.
        host: Name that the certificate of the other end must be for; None: the context does not
            ask for one.

    If cancelled, the connection is closed.

    Raises:
        DialError: The other end does not prove that it is the expected one.
    """
    encrypted = TlsStream(stream, tls, host, is_dialled=True)
    try:
        await encrypted.socket.shake_hands()
    except BaseException as exc:
        await trio.aclose_forcefully(stream)
        if isinstance(exc, OSError):
            raise dial_error(address, exc) from exc
        raise
    return encrypted
