"""The queues at each end of a pipe: what waits to be written, and frames in parts.

`Outlet` is bounded, keeps the order, and is written by one task. `Window` bounds the frames of a
link that are under way; `FrameParts` assembles frames and archives.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

import trio

from actors.pipe.plan import MORE, PipeError, PipeMessage, Word, parts_of, write_message
from specs.limits import protocol
from specs.limits.foreign_code import SANDBOX_UNREAD, SANDBOX_UNREAD_BYTES
from transports.errors import DialError, LinkBrokenError, LinkError
from transports.link import PROTOFLY_V1, Link, Network
from transports.urls import Endpoint, read_endpoint


class Window:
    """Frames sent and not yet taken at the other end of a pipe."""

    def __init__(self) -> None:
        self._open = protocol.SANDBOX_WINDOW
        self._is_closed = False
        self._moved = trio.Event()

    async def enter(self) -> bool:
        """Wait until one more frame may be sent; False: none may any more.

        Not a checkpoint while one may. If cancelled, none is counted.
        """
        while not self._open and not self._is_closed:
            self._moved = trio.Event()
            await self._moved.wait()
        if self._is_closed:
            return False
        self._open -= 1
        return True

    def acknowledge(self) -> None:
        """Note that the other end took a frame."""
        self._open = min(self._open + 1, protocol.SANDBOX_WINDOW)
        self._moved.set()

    def close(self) -> None:
        """End all waits."""
        self._is_closed = True
        self._moved.set()


class FrameParts:
    """The parts of the frame that is coming.

    Args:
        most: Bytes it may have.
    """

    def __init__(self, most: int = protocol.MAX_FRAME_BYTES) -> None:
        self._most = most
        self._parts = bytearray()

    def add(self, item: PipeMessage) -> bytes | None:
        """Take a part; return the frame if it was the last.

        Raises:
            PipeError: The frame is larger than any may be.
        """
        if len(self._parts) + len(item.rest) > self._most:
            raise PipeError(f"a frame of more than {self._most} bytes")
        self._parts += item.rest
        if item.text == MORE:
            return None
        frame = bytes(self._parts)
        self._parts.clear()
        return frame


class Outlet:
    """The outbound queue of one end of a pipe.

    Attributes:
        is_overrun: Whether that is because the other end left too much unread.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: deque[PipeMessage] = deque()
        self._bytes = 0
        self.is_closed = False
        self.is_overrun = False
        self._is_writing = False
        self._writing = trio.CancelScope()
        self._wake = trio.Event()
        self._room = trio.Event()
        self._line = trio.StrictFIFOLock()

    @property
    def is_full(self) -> bool:
        """True if senders have to wait."""
        return (
            len(self._waiting) >= protocol.OUTBOX_MESSAGES or self._bytes >= protocol.OUTBOX_BYTES
        )

    @property
    def is_crowded(self) -> bool:
        """Whether half of what may wait at most is waiting: `put` would soon end the pipe."""
        return len(self._waiting) >= SANDBOX_UNREAD // 2 or self._bytes >= SANDBOX_UNREAD_BYTES // 2

    def offer(self, item: PipeMessage) -> bool:
        """Have it written, if there is room; return whether there was."""
        if self.is_closed or self.is_full:
            return False
        self.put(item)
        return True

    def put(self, item: PipeMessage) -> None:
        """Have it written, room or not: for rare messages, and for tasks that have waited.

        If by that more than `SANDBOX_UNREAD` waits, or its bytes, nothing is written any more.
        """
        if self.is_closed:
            return
        self._waiting.append(item)
        self._bytes += len(item)
        self._wake.set()
        if len(self._waiting) > SANDBOX_UNREAD or self._bytes > SANDBOX_UNREAD_BYTES:
            self.is_overrun = True
            self._close()
            self._writing.cancel()

    async def send(self, item: PipeMessage) -> None:
        """Have it written; wait while there is no room.

        Not a checkpoint while there is. If cancelled, it will not be written.
        """
        if not self.is_full and not self._line.locked():
            self.put(item)
            return
        # One at a time: of two that are woken at once either may run first.
        async with self._line:
            while self.is_full and not self.is_closed:
                self._room = trio.Event()
                await self._room.wait()
            self.put(item)

    async def wait_flushed(self) -> None:
        """Wait until all that was put has been written, or nothing is any more."""
        while (self._waiting or self._is_writing) and not self.is_closed:
            self._room = trio.Event()
            await self._room.wait()

    async def run(self) -> None:
        """Write until the link breaks, too much waits or this is cancelled; then nothing waits."""
        try:
            with self._writing:
                while True:
                    await self._write()
        except LinkError:
            # The reader of the same link reports its end.
            pass
        finally:
            self._close()

    def _close(self) -> None:
        self.is_closed = True
        self._waiting.clear()
        self._room.set()

    async def _write(self) -> None:
        if not self._waiting:
            self._wake = trio.Event()
            await self._wake.wait()
        taken = [
            self._waiting.popleft() for _ in range(min(protocol.FRAME_MESSAGES, len(self._waiting)))
        ]
        self._bytes -= sum(map(len, taken))
        self._is_writing = True
        self._room.set()
        await self._link.send_many([write_message(each) for each in taken])
        self._is_writing = False
        self._room.set()


# The links of a sandbox, held by its host: dials, reads and writes for it (T16).

_SUBPROTOCOLS: Final = (None, PROTOFLY_V1)
"""Subprotocols that a link may ask for: an endpoint names none of its own."""


class _Relay:
    """One link of a sandbox, from the dial to the farewell."""

    def __init__(self, number: int, outlet: Outlet) -> None:
        self._number = number
        self._outlet = outlet
        self._parts = FrameParts()
        self._window = Window()
        self._scope = trio.CancelScope()
        self._put, self._frames = trio.open_memory_channel[bytes](protocol.SANDBOX_WINDOW)

    async def run(self, network: Network, endpoint: Endpoint, subprotocol: str | None) -> None:
        """Dial, then carry frames both ways until the link breaks or `hang`."""
        end = LinkBrokenError("", "hung up")
        with self._scope:
            try:
                link = await network.dial(endpoint.kind, endpoint.address, subprotocol)
                end = await self._live(link)
            except DialError as exc:
                end = LinkBrokenError("", exc.reason)
        code = "" if end.close_reason is None else str(end.close_reason.value)
        self._outlet.put(PipeMessage(Word.GONE, self._number, end.reason, {"farewell": code}))

    async def _live(self, link: Link) -> LinkBrokenError:
        fields = {"subprotocol": link.upgrade.subprotocol}
        self._outlet.put(PipeMessage(Word.OPEN, self._number, link.name, {**fields}))
        end = LinkBrokenError(link.name, "hung up")
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, link, nursery.cancel_scope)
                end = await self._read(link)
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await link.aclose()
        return end

    async def _read(self, link: Link) -> LinkBrokenError:
        try:
            while True:
                frame = await link.receive()
                await self._window.enter()
                for part in parts_of(self._number, frame):
                    await self._outlet.send(part)
        except LinkBrokenError as exc:
            return exc
        except LinkError as exc:
            return LinkBrokenError(link.name, str(exc))

    async def _write(self, link: Link, scope: trio.CancelScope) -> None:
        try:
            async for frame in self._frames:
                await link.send(frame)
                self._outlet.put(PipeMessage(Word.TOOK, self._number))
        except LinkError:
            # The reader of the link reports its end.
            return
        scope.cancel()

    def data(self, item: PipeMessage) -> None:
        """Take (a part of) a frame.

        Raises:
            PipeError: It is too large, or too many are unacknowledged.
        """
        frame = self._parts.add(item)
        try:
            if frame is not None:
                self._put.send_nowait(frame)
        except trio.WouldBlock:
            raise PipeError(
                f"more than {protocol.SANDBOX_WINDOW} frames of a link at once"
            ) from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # It was in transit when the link broke.
            return

    def took(self) -> None:
        """Note that the sandbox has taken a frame."""
        self._window.acknowledge()

    def hang(self) -> None:
        """Write what is left, briefly, then say goodbye."""
        self._scope.deadline = trio.current_time() + protocol.GOODBYE_TIMEOUT
        self._put.close()


class Relays:
    """All links of one sandbox.

    Args:
        endpoints: The only places it dials, as the plan of the sandbox names them.
    """

    def __init__(self, network: Network, endpoints: Iterable[str], outlet: Outlet) -> None:
        """Take what is there.

        Raises:
            ValueError: One of the endpoints is none.
        """
        self._network = network
        self._endpoints = frozenset(map(read_endpoint, endpoints))
        self._outlet = outlet
        self._open: dict[int, _Relay] = {}

    def dial(self, item: PipeMessage) -> Callable[[], Awaitable[None]] | None:
        """Return what carries a link that the sandbox asks for; None: it may not have it."""
        asked = (item.get("kind"), item.text)
        endpoint = next(
            (each for each in self._endpoints if (each.kind, each.address) == asked), None
        )
        most = protocol.SANDBOX_LINKS * len(self._endpoints)
        if endpoint is None:
            self._refuse(item, "the sandbox may not dial this")
            return None
        if (item.get("subprotocol") or None) not in _SUBPROTOCOLS:
            self._refuse(item, "the sandbox may not ask for this subprotocol")
            return None
        if item.number in self._open or len(self._open) >= most:
            self._refuse(item, "the sandbox has too many links")
            return None
        relay = self._open[item.number] = _Relay(item.number, self._outlet)
        return partial(self._carry, item, endpoint, relay)

    def _refuse(self, item: PipeMessage, why: str) -> None:
        self._outlet.put(PipeMessage(Word.GONE, item.number, why))

    async def _carry(self, item: PipeMessage, endpoint: Endpoint, relay: _Relay) -> None:
        subprotocol = item.get("subprotocol") or None
        try:
            await relay.run(self._network, endpoint, subprotocol)
        finally:
            del self._open[item.number]

    def receive(self, item: PipeMessage) -> None:
        """Take what the sandbox says of a link; of one that is gone nothing counts.

        Raises:
            PipeError: It sends more than may be unacknowledged.
        """
        relay = self._open.get(item.number)
        if relay is None:
            return
        match item.word:
            case Word.DATA:
                relay.data(item)
            case Word.TOOK:
                relay.took()
            case _:
                relay.hang()
