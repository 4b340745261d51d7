"""Sockets, and links over them: length-prefixed frames, and plain byte streams.

Unix and TCP sockets carry each frame behind its length. A link that is a plain byte stream serves
foreign protocols. Errors of the operating system are mapped here.
"""

import errno
import os
import socket
import stat
import sys
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

import trio
from typing_extensions import override

from specs.limits.protocol import (
    ACCEPT_PAUSE,
    GOODBYE_TIMEOUT,
    MAX_FRAME_BYTES,
    OUTBOX_BYTES,
    READ_BYTES,
)
from transports.errors import (
    CloseReason,
    DialError,
    FrameTooLargeError,
    FrameTooSlowError,
    LinkBrokenError,
    LinkClosedError,
    LinkError,
    ListenError,
)
from transports.link import Kind, Link, Turn, Upgrade
from transports.tls import AcceptedStream, TlsStream
from transports.urls import join_host_port, read_host_port

__all__ = [
    "RawLink",
    "SocketLink",
    "StreamLink",
    "bind_tcp",
    "bind_unix",
    "dial_tcp",
    "dial_unix",
    "next_stream",
    "next_streams",
]


class SocketLink(Link):
    """A link over a `trio.SocketStream`, or the same with TLS; subclasses convert frames and bytes.

    It has no task of its own: the receiving task also writes the answers that the protocol
    requires. What is to be written waits in one buffer: so frames that are sent together make one
    write, and a cancelled write is continued, to the byte, by the next one. The buffer holds at
    most what one call has put there: the next caller first waits until it is empty.
    """

    __slots__ = (
        "_drained",
        "_end",
        "_inbox",
        "_is_closed",
        "_is_over_limit",
        "_is_too_slow",
        "_is_write_ended",
        "_outbox",
        "_pen",
        "_receiving",
        "_sending",
        "_stream",
    )

    def __init__(self, names: tuple[Kind, str, Upgrade], stream: AcceptedStream) -> None:
        super().__init__(*names)
        self._stream: Final = stream
        self._inbox: deque[bytes] | None = None  # an empty one takes 760 bytes
        self._outbox: Final = bytearray()
        self._pen: trio.Lock | None = None  # made when there is something to write
        self._sending: Final = Turn("sending")
        self._receiving: Final = Turn("receiving")
        self._drained: trio.Event | None = None
        self._end: tuple[str, CloseReason | None] | None = None
        self._is_closed = False
        self._is_over_limit = False
        self._is_too_slow = False
        self._is_write_ended = False

    # -- what subclasses say --------------------------------------------------

    @abstractmethod
    def _wrapped(self, frames: Sequence[bytes]) -> bytes:
        """Return the bytes that carry these frames."""

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Take what was read, `b""` at the end: `_deliver` frames, add answers to `_outbox`.

        Calls `_finish` or `_refuse_size` when nothing more can come.
        """

    @abstractmethod
    def _goodbye(self, close_reason: CloseReason) -> bytes:
        """Return the bytes that report the close reason to the peer."""

    def _frame_due(self) -> float | None:
        """Return the Trio time by which a frame that has begun must end; None: none has begun."""
        return None

    def _ping(self) -> bytes:
        """Return the bytes that ask the other end for a sign of life."""
        return b""

    def _deliver(self, frame: bytes) -> None:
        """Make a frame available to `receive`."""
        if self._inbox is None:
            self._inbox = deque()
        self._inbox.append(frame)

    def _finish(self, reason: str, close_reason: CloseReason | None = None) -> None:
        """Note that the other end is gone, and close the writing side."""
        if self._end is None:
            self._end = (reason, close_reason)
        self._is_write_ended = True

    def _refuse_size(self) -> None:
        """Note that nothing more can be read: a frame is over the limit."""
        self._is_over_limit = True

    @property
    @override
    def peer_certificate(self) -> bytes | None:
        stream = self._stream
        return stream.socket.peer_certificate if isinstance(stream, TlsStream) else None

    # -- sending --------------------------------------------------------------

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            self._check_open()
            if self._outbox:
                await self._flush()
                self._check_open()
            if self._end is not None:
                raise LinkBrokenError(self.name, *self._end)
            self._outbox.extend(self._wrapped(frames))
            del frames  # a slow reader does not keep them twice
            await self._flush()

    def _check_open(self) -> None:
        if self._is_closed:
            raise LinkClosedError(self.name)

    async def _flush(self) -> None:
        """Return when all of the outbox is written.

        If cancelled, the rest goes out with the next flush.
        """
        pen = self._pen = self._pen or trio.Lock()
        try:
            pen.acquire_nowait()
        except trio.WouldBlock:
            await pen.acquire()
        try:
            while self._outbox:
                written = await self._stream.socket.send(self._outbox)
                del self._outbox[:written]
            if self._is_write_ended:
                await self._stream.send_eof()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            self._outbox.clear()
            self._check_open()
            end = self._end or ("the connection broke", None)
            raise LinkBrokenError(self.name, *end) from exc
        finally:
            pen.release()

    # -- receiving ------------------------------------------------------------

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            while not self._inbox:
                self._check_readable()
                await self._read()
                if self._is_closed:
                    await self._drain()
                    self._inbox = None
            frame = self._inbox.popleft()
            self._inbox = self._inbox or None
            return frame

    @override
    def arrived(self) -> bytes | None:
        return self._inbox.popleft() if self._inbox else None

    def _check_readable(self) -> None:
        self._check_open()
        if self._is_over_limit:
            raise FrameTooLargeError(self.name)
        if self._is_too_slow:
            raise FrameTooSlowError(self.name)
        if self._end is not None:
            raise LinkBrokenError(self.name, *self._end)

    async def _read(self) -> None:
        self.heard_at = trio.current_time()
        try:
            data = await self._next_bytes()
        except trio.ClosedResourceError as exc:
            raise LinkClosedError(self.name) from exc
        except OSError as exc:
            if self._is_closed:
                raise LinkClosedError(self.name) from exc
            self._finish("the connection was reset")
        else:
            self.heard_at = trio.current_time()
            self._take(data)
        if self._outbox or self._is_write_ended:
            await self._answer()

    async def _next_bytes(self) -> bytes:
        due = self._frame_due()
        if due is None:
            return await self._stream.socket.recv(READ_BYTES)
        with trio.move_on_at(due):
            return await self._stream.socket.recv(READ_BYTES)
        self._is_too_slow = True
        raise FrameTooSlowError(self.name)

    @override
    async def rest(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            with self._receiving:
                while self._end is None and sum(map(len, self._inbox or ())) < READ_BYTES:
                    self._check_readable()
                    await self._read()
            await trio.sleep_forever()

    @override
    def ping(self) -> None:
        if self._is_closed or self._end is not None:
            return
        self._outbox.extend(self._ping())
        if not self._is_writing:  # the writing task sends it, too
            with suppress(OSError):  # no room, or no peer: then no answer comes
                written = _written_now(self._stream, self._outbox)
                del self._outbox[:written]

    @property
    def _is_writing(self) -> bool:
        return self._pen is not None and self._pen.locked()

    async def _answer(self) -> None:
        """Write the answers that the protocol requires.

        A sender that is writing writes them, too. Waiting for that sender could make two peers,
        each waiting to be read, wait forever; so it is done only when answers pile up.
        """
        if self._is_writing and len(self._outbox) < OUTBOX_BYTES:
            return
        with suppress(LinkError):  # the next read reports it better
            await self._flush()

    # -- leaving --------------------------------------------------------------

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        self._inbox = None
        try:
            with trio.move_on_after(GOODBYE_TIMEOUT), suppress(LinkError):
                await self._leave(close_reason)
        finally:
            await trio.aclose_forcefully(self._stream)

    async def _leave(self, close_reason: CloseReason) -> None:
        """Say goodbye, close the writing side, and wait until the peer does the same.

        Closing a socket with unread bytes would reset the connection, and the peer might never
        read what was sent last.
        """
        if self._end is None:
            self._outbox.extend(self._goodbye(close_reason))
        self._is_write_ended = True
        if self._outbox:
            self._widen()
        await self._flush()
        if self._receiving.is_taken:
            self._drained = trio.Event()
            await self._drained.wait()
        else:
            await self._drain()

    def _widen(self) -> None:
        """Give the remaining bytes to the operating system, even if the peer does not read now.

        The system delivers them after this process has closed the socket, so even a late reader
        learns why this end left. While a link is open the reverse holds: Trio gives the
        system little more than it can send at once.
        """
        left = len(self._outbox)
        with suppress(OSError):  # no TCP
            unsent = trio.socket.TCP_NOTSENT_LOWAT
            self._stream.setsockopt(socket.IPPROTO_TCP, unsent, left + OUTBOX_BYTES)
        with suppress(OSError):
            room = int.from_bytes(
                self._stream.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4), sys.byteorder
            )
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room + 2 * left)

    async def _drain(self) -> None:
        """Read and drop what still comes, until the peer closes."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self._stream.receive_some(READ_BYTES):
                pass
        if self._drained is not None:
            self._drained.set()


def _written_now(stream: AcceptedStream, data: bytearray) -> int:
    """Write what the system takes at once; return how many bytes."""
    if isinstance(stream, TlsStream):
        return stream.socket.send_now(data)
    return os.write(stream.socket.fileno(), data)


@final
class RawLink(SocketLink):
    """Bytes as they come, at most `READ_BYTES` at once; an orderly close has no reason."""

    __slots__ = ()

    @property
    @override
    def host(self) -> str:
        with suppress(OSError):
            return str(self._stream.socket.getpeername()[0])
        return ""

    @override
    def _wrapped(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(frames)

    @override
    def _goodbye(self, close_reason: CloseReason) -> bytes:
        return b""

    @override
    def _take(self, data: bytes) -> None:
        if data:
            self._deliver(data)
        else:
            self._finish("the other end has hung up", CloseReason.DONE)


_HEAD: Final = 4
"""Bytes of a frame's length, big-endian."""

_FAREWELL: Final = 0xFFFF_0000
"""A length from here up is none, but a farewell with its code in the low half."""


@final
class StreamLink(SocketLink):
    """Frames behind their length; a reason at the end, so that a break differs from a close."""

    __slots__ = ("_buffer",)

    def __init__(self, names: tuple[Kind, str, Upgrade], stream: AcceptedStream) -> None:
        super().__init__(names, stream)
        self._buffer: Final = bytearray()

    @override
    def _wrapped(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(
            part for frame in frames for part in (len(frame).to_bytes(_HEAD, "big"), frame)
        )

    @override
    def _goodbye(self, close_reason: CloseReason) -> bytes:
        return (_FAREWELL | close_reason.value).to_bytes(_HEAD, "big")

    @override
    def _take(self, data: bytes) -> None:
        if not data:
            self._finish("the connection ended without a farewell")
            return
        self._buffer.extend(data)
        while len(self._buffer) >= _HEAD and self._take_one():
            pass

    def _take_one(self) -> bool:
        """Take one frame or farewell from the buffer; return whether to look for another."""
        size = int.from_bytes(self._buffer[:_HEAD], "big")
        if size >= _FAREWELL:
            self._finish("the other end has left", CloseReason.read(size & 0xFFFF))
            return False
        if size > MAX_FRAME_BYTES:
            self._refuse_size()
            return False
        end = _HEAD + size
        if len(self._buffer) < end:
            return False
        self._deliver(bytes(self._buffer[_HEAD:end]))
        del self._buffer[:end]
        return True


_BACKLOG: Final = 4096
"""Connections that the kernel keeps until they are accepted: a mass reconnect fits (RELIABILITY
R3). Linux keeps at most `net.core.somaxconn`, which is as much by default.
"""

_OWNER_ONLY: Final = 0o600
"""Mode of a Unix socket: no other user of this machine may connect."""


async def dial_tcp(address: str) -> trio.SocketStream:
    """Connect to `host:port`.

    If cancelled, nothing is left open.

    Raises:
        DialError: `address` is no address, or no listener is there.
    """
    try:
        host, port = read_host_port(address)
        return await trio.open_tcp_stream(host, port)
    except ValueError as exc:
        raise DialError(address, str(exc)) from exc
    except OSError as exc:
        raise DialError(address, _os_reason(exc)) from exc


async def dial_unix(path: str) -> trio.SocketStream:
    """Connect to a Unix socket.

    If cancelled, nothing is left open.

    Raises:
        DialError: No listener is there.
    """
    try:
        return await trio.open_unix_socket(path)
    except OSError as exc:
        raise DialError(path, _os_reason(exc)) from exc


async def bind_tcp(where: str) -> tuple[trio.SocketListener, str]:
    """Listen on `host:port`, of a name on its first address; return the listener and its address.

    If cancelled while a name is resolved, nothing is bound.

    Raises:
        ListenError: The address is in use, not allowed, or no address.
    """
    try:
        host, port = read_host_port(where)
        first, *rest = await trio.open_tcp_listeners(port, host=host, backlog=_BACKLOG)
    except ValueError as exc:
        raise ListenError(where, str(exc)) from exc
    except OSError as exc:
        raise ListenError(where, _os_reason(exc)) from exc
    for other in rest:
        await other.aclose()
    name = first.socket.getsockname()
    return first, join_host_port(str(name[0]), int(name[1]))


@contextmanager
def bind_unix(path: str) -> Iterator[trio.SocketListener]:
    """Listen on a Unix socket that only its owner may use while the context is open.

    A socket that a dead process left there is replaced. When the context is left, the socket is
    removed.

    Raises:
        ListenError: Another process listens there, or no socket can be made there.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        os.fchmod(bound.fileno(), _OWNER_ONLY)  # Linux gives the file this mode from the start
        bound.bind(path)
        Path(path).chmod(_OWNER_ONLY)
        bound.listen(_BACKLOG)
        bound.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError as exc:
        bound.close()
        raise ListenError(path, _os_reason(exc)) from exc
    mark = _inode(path)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
    try:
        yield listener
    finally:
        listener.socket.close()
        if mark is not None and _inode(path) == mark:
            with suppress(OSError):
                Path(path).unlink()


def _remove_stale(path: str) -> None:
    """Remove a socket without a listener; any other file is left alone."""
    if not Path(path).exists() or not stat.S_ISSOCK(Path(path).stat().st_mode):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # noqa: FBT003 - the standard library's signature
        if probe.connect_ex(path) == errno.ECONNREFUSED:
            Path(path).unlink()


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


async def next_stream(listener: trio.SocketListener) -> trio.SocketStream:
    """Accept one connection; if the system is out of resources, wait and try again.

    If cancelled, no connection is lost.

    Raises:
        LinkClosedError: The listener was closed.
    """
    while True:
        try:
            return await listener.accept()
        except trio.ClosedResourceError as exc:
            raise LinkClosedError("listener") from exc
        except OSError:  # out of descriptors or memory, or the peer has left already
            await trio.sleep(ACCEPT_PAUSE)


async def next_streams(listener: trio.SocketListener, most: int) -> list[trio.SocketStream]:
    """Accept one connection, and others that are waiting, up to so many in all.

    One scheduler pass per connection would be too slow for a mass reconnect: the queue of the
    system would overflow in a busy process, and a peer that is lost there tries again only after
    a second.

    If cancelled, no connection is lost.

    Raises:
        LinkClosedError: The listener was closed.
    """
    return [await next_stream(listener), *_who_else(listener, most - 1)]


def _who_else(listener: trio.SocketListener, most: int) -> list[trio.SocketStream]:
    streams: list[trio.SocketStream] = []
    if listener.socket.fileno() < 0:
        return streams
    queue = socket.socket(fileno=listener.socket.fileno())  # lent while no task waits
    try:
        while len(streams) < most:
            accepted, _ = queue.accept()
            streams.append(trio.SocketStream(trio.socket.from_stdlib_socket(accepted)))
    except OSError:  # no further connection; a lack of descriptors is met by the next one
        return streams
    finally:
        queue.detach()
    return streams


def _os_reason(error: OSError) -> str:
    """Return the reason of an error as half a sentence, without the address."""
    cause = error.__cause__  # Trio's own error has the address; its cause stands here
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    found = cause if isinstance(cause, OSError) else error
    if found.errno is not None and found.errno > 0:
        return os.strerror(found.errno).lower()
    return (found.strerror or str(found)).lower()  # a name that cannot be looked up
