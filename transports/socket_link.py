"""Links over sockets: length-prefixed frames, and plain byte streams.

Unix and TCP sockets carry each frame behind its length. A link that is a plain byte stream serves
foreign protocols.
"""

import os
import socket
import sys
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Final

import trio
from typing_extensions import override

from specs.limits import protocol
from transports import errors
from transports.link import Kind, Link, Turn, Upgrade
from transports.tls import AcceptedStream, TlsStream, receive


class SocketLink(Link):
    """A link over a `trio.SocketStream`, or the same with TLS; subclasses convert frames and bytes.

    A link has no task of its own: the receiving task also writes the answers that the protocol
    requires. Outgoing bytes wait in one buffer, so that frames sent together make one write, and
    the next write continues a cancelled one, to the byte. The buffer contains the bytes of one
    call at most: the next caller first waits until it is empty.
    """

    __slots__ = (
        "_drained",
        "_end",
        "_has_left",
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
        self._end: tuple[str, errors.CloseReason | None] | None = None
        self._has_left = False
        self._is_closed = False
        self._is_over_limit = False
        self._is_too_slow = False
        self._is_write_ended = False

    # -- methods of subclasses --------------------------------------------------

    @abstractmethod
    def _wrap(self, frames: Sequence[bytes]) -> bytes:
        """Encode frames as bytes; the result must not depend on the state of the link."""

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Process bytes from the peer; `b""` means that the peer has closed its side.

        Subclasses call `_deliver` for frames, and add the protocol's answers to `_outbox`. They
        call `_finish` or `_refuse_size` when nothing more can be received.
        """

    @abstractmethod
    def _goodbye(self, close_reason: errors.CloseReason) -> bytes:
        """Return the bytes that report the close reason to the peer."""

    def _ping(self) -> bytes:
        """Return the bytes of a ping."""
        return b""

    def _deliver(self, frame: bytes) -> None:
        """Make a frame available to `receive`."""
        if self._inbox is None:
            self._inbox = deque()
        self._inbox.append(frame)

    def _finish(self, reason: str, close_reason: errors.CloseReason | None = None) -> None:
        """Store the reason why the other end is gone, and close the writing side."""
        if self._end is None:
            self._end = (reason, close_reason)
        self._is_write_ended = True

    def _refuse_size(self) -> None:
        """Stop reading, because a frame is over the limit."""
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
                raise errors.LinkBrokenError(self.name, *self._end)
            self._outbox.extend(self._wrap(frames))
            del frames  # a slow reader does not keep them twice
            await self._flush()

    @property
    @override
    def is_clear(self) -> bool:
        # A task that writes leaves its last byte in the outbox until it has been written.
        return not self._outbox and not self._is_write_ended

    @override
    def wrapped(self, frames: Sequence[bytes]) -> bytes:
        self._check_sizes(frames)
        return self._wrap(frames)

    @override
    def write_wrapped(self, data: bytes) -> bool:
        try:
            written = _write_now(self._stream, data)
        except OSError:  # there is no room, or no peer: then the next flush meets the error, too
            written = 0
        if written == len(data):
            return True
        self._outbox.extend(memoryview(data)[written:])
        return False

    def _check_open(self) -> None:
        if self._is_closed:
            raise errors.LinkClosedError(self.name)

    async def _flush(self) -> None:
        """Write the whole outbox.

        If cancelled, the next flush writes the rest.
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
            raise errors.LinkBrokenError(self.name, *end) from exc
        finally:
            pen.release()

    # -- receiving ------------------------------------------------------------

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            while not self._inbox:
                self.check_readable()
                await self._read()
                if self._is_closed:
                    await self._drain()
                    self._inbox = None
            frame = self._inbox.popleft()
            self._inbox = self._inbox or None
            return frame

    @override
    def arrived(self) -> bytes | None:
        if not self._inbox:
            return None
        frame = self._inbox.popleft()
        self._inbox = self._inbox or None
        return frame

    @property
    @override
    def descriptor(self) -> int | None:
        return self._stream.socket.fileno()

    @override
    def fill(self) -> None:
        if self._inbox or self._is_unreadable:
            return
        try:
            pieces = _read_now(self._stream)
        except OSError:
            self._finish("the connection was reset")
        else:
            if pieces:
                self.heard_at = trio.current_time()
            for number, data in enumerate(pieces):
                if not (number and self._is_unreadable):
                    self._take(data)
        self._write_ahead()

    @property
    def _is_unreadable(self) -> bool:
        is_over = self._end is not None or self._is_over_limit
        return is_over or self._is_too_slow or self._is_closed

    @property
    @override
    def has_arrived(self) -> bool:
        return self._inbox is not None

    @property
    @override
    def unwritten(self) -> int:
        return len(self._outbox)

    @override
    def check_readable(self) -> None:
        if self._inbox:
            return
        self._check_open()
        if self._is_over_limit:
            raise errors.FrameTooLargeError(self.name)
        if self._is_too_slow:
            raise errors.FrameTooSlowError(self.name)
        if self._end is not None:
            raise errors.LinkBrokenError(self.name, *self._end)

    async def _read(self) -> None:
        self.heard_at = trio.current_time()
        try:
            due = self.frame_due
            if due is None:
                # Not by a function of its own: a link that waits would keep its frame.
                data = await _receive(self._stream)
            else:
                data = await self._read_by(due)
        except trio.ClosedResourceError as exc:
            raise errors.LinkClosedError(self.name) from exc
        except OSError as exc:
            if self._is_closed:
                raise errors.LinkClosedError(self.name) from exc
            self._finish("the connection was reset")
        else:
            self.heard_at = trio.current_time()
            self._take(data)
        if self._outbox or self._is_write_ended:
            await self._answer()

    async def _read_by(self, due: float) -> bytes:
        with trio.move_on_at(due):
            return await _receive(self._stream)
        self._is_too_slow = True
        raise errors.FrameTooSlowError(self.name)

    @override
    async def rest(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            with self._receiving:
                while sum(map(len, self._inbox or ())) < protocol.READ_BYTES:
                    self.check_readable()
                    if self._is_unreadable:
                        break  # the frames that wait come first
                    await self._read()
            await trio.sleep_forever()

    @override
    def ping(self) -> None:
        if self._is_closed or self._end is not None:
            return
        self._outbox.extend(self._ping())
        self._write_ahead()

    def _write_ahead(self) -> None:
        """Write as much of the outbox as the system accepts now, unless a task is writing."""
        if self._outbox and not self._is_writing:
            with suppress(OSError):  # no room, or no peer: then reading ends, or no answer comes
                written = _write_now(self._stream, self._outbox)
                del self._outbox[:written]

    @property
    def _is_writing(self) -> bool:
        return self._pen is not None and self._pen.locked()

    async def _answer(self) -> None:
        """Write the answers that the protocol requires.

        A task that is writing writes them, too. Waiting for that task could block two peers that
        wait for each other, so this method waits only when answers pile up.
        """
        if self._is_writing and len(self._outbox) < protocol.OUTBOX_BYTES:
            return
        with suppress(errors.LinkError):  # the next read reports it better
            await self._flush()

    # -- leaving --------------------------------------------------------------

    @override
    async def say_goodbye(self, close_reason: errors.CloseReason) -> bool:
        self._check_open()
        await self._leave(close_reason)
        return True

    @override
    async def aclose(self, close_reason: errors.CloseReason = errors.CloseReason.DONE) -> None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        self._inbox = None
        try:
            with trio.move_on_after(protocol.GOODBYE_TIMEOUT), suppress(errors.LinkError):
                await self._leave(close_reason)
                await self._let_leave()
        finally:
            await trio.aclose_forcefully(self._stream)

    async def _leave(self, close_reason: errors.CloseReason) -> None:
        """Send the close reason, and close the writing side."""
        if self._end is None and not self._has_left:
            self._has_left = True
            self._outbox.extend(self._goodbye(close_reason))
        self._is_write_ended = True
        if self._outbox:
            self._widen()
        await self._flush()

    async def _let_leave(self) -> None:
        """Wait until the peer has closed its writing side, too.

        Closing a socket with unread bytes would reset the connection, and the peer might lose the
        last frames.
        """
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
            self._stream.setsockopt(socket.IPPROTO_TCP, unsent, left + protocol.OUTBOX_BYTES)
        with suppress(OSError):
            room = int.from_bytes(
                self._stream.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4), sys.byteorder
            )
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room + 2 * left)

    async def _drain(self) -> None:
        """Read and drop all bytes until the peer closes."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self._stream.receive_some(protocol.READ_BYTES):
                pass
        if self._drained is not None:
            self._drained.set()


def _receive(stream: AcceptedStream) -> Awaitable[bytes]:
    if isinstance(stream, TlsStream):
        return stream.socket.recv(protocol.READ_BYTES)
    return receive(stream.socket)


def _read_now(stream: AcceptedStream) -> Sequence[bytes]:
    """Read the available bytes, in pieces; an empty last piece marks the end."""
    if isinstance(stream, TlsStream):
        return stream.socket.recv_now()
    try:
        return (os.read(stream.socket.fileno(), protocol.READ_BYTES),)
    except BlockingIOError:
        return ()


def _write_now(stream: AcceptedStream, data: bytes | bytearray) -> int:
    """Write as many bytes as the system takes at once; return their number."""
    if isinstance(stream, TlsStream):
        return stream.socket.send_now(data)
    return os.write(stream.socket.fileno(), data)


class RawLink(SocketLink):
    """Link over a plain byte stream, without frames; `receive` returns up to `READ_BYTES` bytes."""

    __slots__ = ()

    @property
    @override
    def host(self) -> str:
        with suppress(OSError):
            return str(self._stream.socket.getpeername()[0])
        return ""

    @override
    def _wrap(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(frames)

    @override
    def _goodbye(self, close_reason: errors.CloseReason) -> bytes:
        return b""

    @override
    def _take(self, data: bytes) -> None:
        if data:
            self._deliver(data)
        else:
            self._finish("the other end has hung up", errors.CloseReason.DONE)


_HEAD: Final = 4
"""Bytes of a frame's length, big-endian."""

_FAREWELL: Final = 0xFFFF_0000
"""Smallest length that stands for a close message instead of a frame; bits 0 to 15 are its code."""


class StreamLink(SocketLink):
    """Link with frames that follow their length; a close message precedes an orderly end."""

    __slots__ = ("_buffer",)

    def __init__(self, names: tuple[Kind, str, Upgrade], stream: AcceptedStream) -> None:
        super().__init__(names, stream)
        self._buffer: Final = bytearray()

    @override
    def _wrap(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(
            part for frame in frames for part in (len(frame).to_bytes(_HEAD, "big"), frame)
        )

    @override
    def _goodbye(self, close_reason: errors.CloseReason) -> bytes:
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
        """Process one frame or close message in the buffer; return whether more may follow."""
        size = int.from_bytes(self._buffer[:_HEAD], "big")
        if size >= _FAREWELL:
            self._finish("the other end has left", errors.CloseReason.read(size & 0xFFFF))
            return False
        if size > protocol.MAX_FRAME_BYTES:
            self._refuse_size()
            return False
        end = _HEAD + size
        if len(self._buffer) < end:
            return False
        self._deliver(bytes(self._buffer[_HEAD:end]))
        del self._buffer[:end]
        return True
