"""Bounded queues for the pipe of a sandbox, division of frames, and links dialled by the host."""

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
    """Flow control of a link: limits the frames that the other side has not acknowledged."""

    def __init__(self) -> None:
        self._open = protocol.SANDBOX_WINDOW
        self._is_closed = False
        self._moved = trio.Event()

    async def enter(self) -> bool:
        """Wait until one more frame may be sent; return False if the window was closed.

        No checkpoint while a frame may be sent. If cancelled, none is counted.
        """
        while not self._open and not self._is_closed:
            self._moved = trio.Event()
            await self._moved.wait()
        if self._is_closed:
            return False
        self._open -= 1
        return True

    def acknowledge(self) -> None:
        """Record that the other end has taken a frame."""
        self._open = min(self._open + 1, protocol.SANDBOX_WINDOW)
        self._moved.set()

    def close(self) -> None:
        """End all waits for permission to send."""
        self._is_closed = True
        self._moved.set()


class FrameParts:
    """Buffer that joins the parts of a divided frame.

    Args:
        most: Maximum number of bytes of a frame.
    """

    def __init__(self, most: int = protocol.MAX_FRAME_BYTES) -> None:
        self._most = most
        self._parts = bytearray()

    def add(self, item: PipeMessage) -> bytes | None:
        """Add a part; return the frame if the part was its last, else None.

        Raises:
            PipeError: The frame is too large.
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
    """Outbound queue on one side of a pipe.

    Attributes:
        is_closed: Whether nothing is written any more.
        is_overrun: Whether it was closed because too many messages were unread.
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
        """Whether the queue is half full; a full queue ends the pipe."""
        return len(self._waiting) >= SANDBOX_UNREAD // 2 or self._bytes >= SANDBOX_UNREAD_BYTES // 2

    def offer(self, item: PipeMessage) -> bool:
        """Queue a pipe message if there is room; return whether it was queued."""
        if self.is_closed or self.is_full:
            return False
        self.put(item)
        return True

    def put(self, item: PipeMessage) -> None:
        """Queue an item in any case: for rare items, and for tasks that have waited.

        With more than `SANDBOX_UNREAD` items or `SANDBOX_UNREAD_BYTES`, the outlet is closed.
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
        """Queue an item; wait while there is no room.

        No checkpoint while there is room. If cancelled, the item is not written.
        """
        if not self.is_full and not self._line.locked():
            self.put(item)
            return
        # Senders wait one at a time: of two woken tasks, either may run first.
        async with self._line:
            while self.is_full and not self.is_closed:
                self._room = trio.Event()
                await self._room.wait()
            self.put(item)

    async def wait_flushed(self) -> None:
        """Wait until all items are written, or the outlet is closed."""
        while (self._waiting or self._is_writing) and not self.is_closed:
            self._room = trio.Event()
            await self._room.wait()

    async def run(self) -> None:
        """Write items until the link breaks, the outlet is closed, or the call is cancelled."""
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


# The links of a sandbox: its host dials, reads and writes them (T16).

_SUBPROTOCOLS: Final = (None, PROTOFLY_V1)
"""Subprotocols that a link of a sandbox may request."""


class _Relay:
    """Link that the host dialled for a sandbox, until the link ends."""

    def __init__(self, number: int, outlet: Outlet) -> None:
        self._number = number
        self._outlet = outlet
        self._parts = FrameParts()
        self._window = Window()
        self._scope = trio.CancelScope()
        self._put, self._frames = trio.open_memory_channel[bytes](protocol.SANDBOX_WINDOW)

    async def run(self, network: Network, endpoint: Endpoint, subprotocol: str | None) -> None:
        """Dial, then carry frames in both directions until the link breaks or `hang` is called."""
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
        """Add a part of a frame from the sandbox, and send complete frames.

        Raises:
            PipeError: A frame is too large, or too many are unacknowledged.
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
            # The frame was in transit when the link broke.
            return

    def took(self) -> None:
        """Record that the sandbox has taken a frame."""
        self._window.acknowledge()

    def hang(self) -> None:
        """Write the remaining frames, for `GOODBYE_TIMEOUT` at most, and close the link."""
        self._scope.deadline = trio.current_time() + protocol.GOODBYE_TIMEOUT
        self._put.close()


class Relays:
    """All links that the host has dialled for one sandbox.

    Args:
        network: The network of the host.
        endpoints: The only permitted endpoints, from the plan of the sandbox.
        outlet: The outlet to the sandbox.
    """

    def __init__(self, network: Network, endpoints: Iterable[str], outlet: Outlet) -> None:
        """Construct it.

        Raises:
            ValueError: An endpoint is malformed.
        """
        self._network = network
        self._endpoints = frozenset(map(read_endpoint, endpoints))
        self._outlet = outlet
        self._open: dict[int, _Relay] = {}

    def dial(self, item: PipeMessage) -> Callable[[], Awaitable[None]] | None:
        """Return the task that carries a requested link; None: the request was refused."""
        wanted = (item.get("kind"), item.text)
        endpoint = next(
            (each for each in self._endpoints if (each.kind, each.address) == wanted), None
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
        """Handle a pipe message about a link; ignore one about a link that has ended.

        Raises:
            PipeError: A frame is too large, or too many are unacknowledged.
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
