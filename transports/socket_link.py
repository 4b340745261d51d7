"""What all links over a plain socket share: reading, writing, leaving.

A link that is a byte stream and nothing else: for protocols that are not ours.
"""

import os
import socket
import sys
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, final

import trio
from typing_extensions import override

from specs.limits.protocol import GOODBYE_TIMEOUT, OUTBOX_BYTES, READ_BYTES
from transports.errors import (
    Farewell,
    FrameTooLargeError,
    FrameTooSlowError,
    LinkBrokenError,
    LinkClosedError,
    LinkError,
)
from transports.link import Kind, Link, Upgrade
from transports.turn import Turn

__all__ = ["RawLink", "SocketLink"]


class SocketLink(Link):
    """A link over a `trio.SocketStream`; subclasses say how frames look in bytes.

    No task of its own: the receiving task also answers what the protocol wants
    answered. What is to be written waits in one buffer, so that however many
    frames are sent at once make one write, and so that a cancelled write goes
    on, to the byte, with the next one. The buffer holds at most what one call
    put there: who comes next first waits until it is empty.
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

    def __init__(self, names: tuple[Kind, str, Upgrade], stream: trio.SocketStream) -> None:
        super().__init__(*names)
        self._stream: Final = stream
        self._inbox: deque[bytes] | None = None  # an empty one takes 760 bytes
        self._outbox: Final = bytearray()
        self._pen: trio.Lock | None = None  # made when there is something to write
        self._sending: Final = Turn("sending")
        self._receiving: Final = Turn("receiving")
        self._drained: trio.Event | None = None
        self._end: tuple[str, Farewell | None] | None = None
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
    def _goodbye(self, farewell: Farewell) -> bytes:
        """Return the bytes that say why this end leaves."""

    def _frame_due(self) -> float | None:
        """Return when the frame must end that has begun to come; None: none has."""
        return None

    def _ping(self) -> bytes:
        """Return the bytes that ask the other end for a sign of life."""
        return b""

    def _deliver(self, frame: bytes) -> None:
        """Let a frame be received."""
        if self._inbox is None:
            self._inbox = deque()
        self._inbox.append(frame)

    def _finish(self, reason: str, farewell: Farewell | None = None) -> None:
        """Note that the other end is gone, and hang up on it."""
        if self._end is None:
            self._end = (reason, farewell)
        self._is_write_ended = True

    def _refuse_size(self) -> None:
        """Note that nothing more can be read: a frame is over the limit."""
        self._is_over_limit = True

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
            del frames  # who reads slowly does not keep them twice
            await self._flush()

    def _check_open(self) -> None:
        if self._is_closed:
            raise LinkClosedError(self.name)

    async def _flush(self) -> None:
        """Return when all that was in the outbox is written.

        Cancelled: what is left goes out with the next flush.
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
        if not self._is_writing:  # who is writing takes it along
            with suppress(OSError):  # no room, or nobody there: then no answer will tell
                written = os.write(self._stream.socket.fileno(), self._outbox)
                del self._outbox[:written]

    @property
    def _is_writing(self) -> bool:
        return self._pen is not None and self._pen.locked()

    async def _answer(self) -> None:
        """Write what the protocol wants answered.

        A sender that is writing takes it along. Waiting for that sender would
        let two peers that both wait to be read wait for ever, so it is only
        done when answers pile up.
        """
        if self._is_writing and len(self._outbox) < OUTBOX_BYTES:
            return
        with suppress(LinkError):  # the next read tells it better
            await self._flush()

    # -- leaving --------------------------------------------------------------

    @override
    async def aclose(self, farewell: Farewell = Farewell.DONE) -> None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        self._inbox = None
        try:
            with trio.move_on_after(GOODBYE_TIMEOUT), suppress(LinkError):
                await self._leave(farewell)
        finally:
            await trio.aclose_forcefully(self._stream)

    async def _leave(self, farewell: Farewell) -> None:
        """Say goodbye, hang up, and wait until the peer does.

        Closing a socket with unread bytes would reset the connection, and the
        peer might never read what was sent last.
        """
        if self._end is None:
            self._outbox.extend(self._goodbye(farewell))
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
        """Have the system take over what is left, also if the peer does not read now.

        It goes on to deliver that after we are gone: so even who begins to read
        late learns why we left. While a link lives it is the other way round: Trio
        has the system take little more than it can send at once.
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
        """Read and forget what still comes, until the peer hangs up."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self._stream.receive_some(READ_BYTES):
                pass
        if self._drained is not None:
            self._drained.set()


@final
class RawLink(SocketLink):
    """Bytes as they come, at most `READ_BYTES` at once; hanging up is all the farewell there is."""

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
    def _goodbye(self, farewell: Farewell) -> bytes:
        return b""

    @override
    def _take(self, data: bytes) -> None:
        if data:
            self._deliver(data)
        else:
            self._finish("the other end has hung up", Farewell.DONE)
