"""A network in the memory of one process, with faults on demand, for tests and simulations."""

import itertools
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, TypeAlias

import attrs
import trio
from typing_extensions import override

from specs.limits.protocol import DIAL_TIMEOUT, LINK_BACKLOG, READ_BYTES
from transports import link as links
from transports.errors import CloseReason, DialError, LinkBrokenError, LinkClosedError, ListenError
from transports.tls import PinnedContext
from transports.urls import join_host_port, read_host_port, read_target, read_websocket_url
from transports.webrtc.memory import MemoryChannels

FRAMES_IN_FLIGHT: Final = 16
"""Frames that one end may send before the other reads, as with the buffers of a socket."""

Pattern: TypeAlias = Callable[[int, bytes], Sequence[float]]
"""Type of functions that decide how the n-th frame (from 1) arrives: a delay in seconds for each
copy. `()` loses the frame, `(0.0,)` delivers it, `(0.0, 0.0)` doubles it. Delays keep the order.
"""

Sieve: TypeAlias = Callable[[bytes], bytes | None]
"""Type of functions that change a frame before it is sent; None as result: the frame is lost."""

_Frame: TypeAlias = tuple[float, bytes]

_HEAD: Final = 4
"""Bytes of the length of a frame in wrapped data."""


def deliver_once(_number: int, _frame: bytes) -> Sequence[float]:
    """Return the delays that deliver a frame once, at once: the pattern without faults."""
    return (0.0,)


def whole(frame: bytes) -> bytes:
    """Return a frame unchanged: the sieve of a link without faults."""
    return frame


def _cut_anew(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a stream in other pieces than those sent, as real sockets may do."""
    joined = b"".join(pieces)
    start, size = 0, 1
    while start < len(joined):
        yield joined[start : start + size]
        start, size = start + size, READ_BYTES


class MemoryLink(links.Link):
    """One end of a `Wire`.

    Attributes:
        pattern: When and how often the frames of this end arrive; a fault to inject.
        sieve: Changes the frames of this end; a fault to inject.
        close_reason: Reason with which this end has closed; None: it is open.
        certificate: Certificate of the other end, where both ends are pinned; None: no TLS.
    """

    __slots__ = (
        "_asleep",
        "_due",
        "_inward",
        "_is_closed",
        "_outward",
        "_peer",
        "_receiving",
        "_sending",
        "_sent",
        "_unsent",
        "certificate",
        "close_reason",
        "is_cut",
        "pattern",
        "sieve",
    )

    def __init__(
        self,
        names: tuple[links.Kind, str, links.Upgrade],
        outward: "trio.MemorySendChannel[_Frame]",
        inward: "trio.MemoryReceiveChannel[_Frame]",
    ) -> None:
        super().__init__(*names)
        self._outward: Final = outward
        self._inward: Final = inward
        self.is_cut = False
        self._peer: MemoryLink | None = None
        self._due: _Frame | None = None
        self._sent = 0
        self._unsent: Final[deque[_Frame]] = deque()
        self._asleep = trio.CancelScope()
        self._sending: Final = links.Turn("sending")
        self._receiving: Final = links.Turn("receiving")
        self.pattern: Pattern = deliver_once
        self.sieve: Sieve = whole
        self.close_reason: CloseReason | None = None
        self._is_closed = False
        self.certificate: bytes | None = None

    @property
    @override
    def peer_certificate(self) -> bytes | None:
        return self.certificate

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            await self._flush()
            for frame in _cut_anew(frames) if self.kind is links.Kind.STREAM else frames:
                self._put(frame)
                await self._flush()

    def _put(self, frame: bytes) -> None:
        self._sent += 1
        now, left = trio.current_time(), self.sieve(frame)
        if left is not None:
            self._unsent.extend((now + delay, left) for delay in self.pattern(self._sent, left))

    async def _flush(self) -> None:
        if not self._unsent:
            await trio.lowlevel.checkpoint()
        try:
            while self._unsent:
                await self._outward.send(self._unsent[0])
                self._unsent.popleft()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise self._end_error() from exc

    @property
    @override
    def is_clear(self) -> bool:
        return not (self._unsent or self._sending.is_taken or self.kind is links.Kind.STREAM)

    @override
    def wrapped(self, frames: Sequence[bytes]) -> bytes:
        self._check_sizes(frames)
        return b"".join(len(frame).to_bytes(_HEAD, "big") + frame for frame in frames)

    @override
    def write_wrapped(self, data: bytes) -> bool:
        while data:
            end = _HEAD + int.from_bytes(data[:_HEAD], "big")
            self._put(data[_HEAD:end])
            data = data[end:]
        with suppress(trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            while self._unsent:
                self._outward.send_nowait(self._unsent[0])
                self._unsent.popleft()
        return not self._unsent

    @override
    def ping(self) -> None:
        """Set `heard_at` at once, if the peer could answer a ping."""
        peer = self._peer
        if peer is not None and peer.close_reason is None and self.passes(b"") and peer.passes(b""):
            self.heard_at = trio.current_time()

    def passes(self, probe: bytes) -> bool:
        """Return whether a frame sent now would arrive."""
        left = None if self.is_cut else self.sieve(probe)
        return left is not None and bool(self.pattern(self._sent + 1, left))

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            self.heard_at = trio.current_time()
            if self._due is None:
                try:
                    self._due = await self._inward.receive()
                except (trio.EndOfChannel, trio.ClosedResourceError) as exc:
                    raise self._end_error() from exc
            due, frame = self._due
            if due > trio.current_time():
                with trio.CancelScope() as self._asleep:
                    await trio.sleep_until(due)
            if self.is_cut or self._is_closed:
                raise self._end_error()
            self._due = None
            self.heard_at = trio.current_time()
            return frame

    def _end_error(self) -> LinkBrokenError | LinkClosedError:
        if self._is_closed:
            return LinkClosedError(self.name)
        if self.is_cut:
            return LinkBrokenError(self.name, "the wire was cut")
        close_reason = None if self._peer is None else self._peer.close_reason
        if close_reason is not None and self.kind is links.Kind.STREAM:
            close_reason = CloseReason.DONE
        return LinkBrokenError(self.name, "the other end has left", close_reason)

    @override
    async def say_goodbye(self, close_reason: CloseReason) -> bool:
        if self._is_closed or self.is_cut:
            raise self._end_error()
        self.close_reason = self.close_reason or close_reason
        self._outward.close()
        await trio.lowlevel.checkpoint()
        return True

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        self.close_reason = self.close_reason or close_reason
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            self.cut()
            raise
        finally:
            self.drop()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def cut(self) -> None:
        """Break the link at both ends; frames in transit are lost."""
        self.is_cut = True
        if self._peer is not None:
            self._peer.is_cut = True

    def drop(self) -> None:
        """Close both channels of this end; the peer still gets the frames in transit.

        A task that waits at this end for a frame stops waiting.
        """
        self._asleep.cancel()
        self._outward.close()
        self._inward.close()


class Wire:
    """A link in memory with both its ends, for tests to inspect and to cut."""

    __slots__ = ("acceptor", "address", "dialler", "kind")

    def __init__(self, kind: links.Kind, address: str, number: int, upgrade: links.Upgrade) -> None:
        out, out_end = trio.open_memory_channel[_Frame](FRAMES_IN_FLIGHT)
        back, back_end = trio.open_memory_channel[_Frame](FRAMES_IN_FLIGHT)
        dialler = MemoryLink((kind, f"{kind}-{number}-out", upgrade), out, back_end)
        acceptor = MemoryLink((kind, f"{kind}-{number}-in", upgrade), back, out_end)
        dialler._peer, acceptor._peer = acceptor, dialler  # noqa: SLF001 - built as a pair
        self.kind: Final = kind
        self.address: Final = address
        self.dialler: Final = dialler
        self.acceptor: Final = acceptor

    @property
    def is_open(self) -> bool:
        """True if neither end has closed the link, and the link was not cut."""
        ends_left = self.dialler.close_reason or self.acceptor.close_reason
        return not self.dialler.is_cut and ends_left is None

    def cut(self) -> None:
        """Break the link abruptly: both ends get `LinkBrokenError`, frames in flight are lost."""
        self.dialler.cut()
        self.dialler.drop()
        self.acceptor.drop()


_FIRST_PORT: Final = 40_000
"""First port that is assigned for port 0."""


class _MemoryListener(links.Listener):
    """Listener in memory: a bounded queue of dialled links that wait to be accepted."""

    __slots__ = ("_arrivals", "arrive", "paths", "tls")

    def __init__(self, address: str, paths: links.ServedPaths, tls: ssl.SSLContext | None) -> None:
        super().__init__(address)
        self.paths: Final = paths
        self.tls: Final = tls
        self.arrive, self._arrivals = trio.open_memory_channel[MemoryLink](LINK_BACKLOG)

    @override
    async def accept(self) -> links.Link:
        try:
            return await self._arrivals.receive()
        except (trio.ClosedResourceError, trio.EndOfChannel) as exc:
            raise LinkClosedError(self.address) from exc

    def close(self) -> None:
        """Refuse new links, and close those that were not accepted yet."""
        self.arrive.close()
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                self._arrivals.receive_nowait().drop()
        self._arrivals.close()


class MemoryNetwork(links.Network):
    """A network in memory that behaves like one of real sockets, with faults on demand.

    Attributes:
        wires: All dialled links, in order, to inspect and to cut.
    """

    def __init__(self) -> None:
        self.wires: Final[list[Wire]] = []
        self._listeners: Final[dict[tuple[links.Kind, str], _MemoryListener]] = {}
        self._refused: Final[set[str]] = set()
        self._patterns: Final[dict[str, tuple[Pattern, Pattern]]] = {}
        self._ports: Final = itertools.count(_FIRST_PORT)
        self._numbers: Final = itertools.count(1)
        self._channels: Final = MemoryChannels(self._open_wire)

    # -- faults ---------------------------------------------------------------

    def refuse(self, address: str) -> None:
        """Refuse new links to a listener's address from now on."""
        self._refused.add(address)

    def allow(self, address: str) -> None:
        """End the effect of `refuse`."""
        self._refused.discard(address)

    def disturb(self, address: str, outward: Pattern, back: Pattern) -> None:
        """Set the patterns by which future links to an address lose, double or delay frames."""
        self._patterns[address] = outward, back

    def cut(self, link: links.Link) -> None:
        """Break a link abruptly, given either end: see `Wire.cut`."""
        for wire in self.wires:
            if link in {wire.dialler, wire.acceptor}:
                wire.cut()

    def open_wires(self, kind: links.Kind) -> list[Wire]:
        """Return the links of a kind that are open now, oldest first."""
        return [wire for wire in self.wires if wire.kind is kind and wire.is_open]

    # -- the contract ---------------------------------------------------------

    @override
    async def dial(
        self,
        kind: links.Kind,
        address: str,
        subprotocol: str | None = links.PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> MemoryLink:
        await trio.lowlevel.checkpoint()
        listener, upgrade = self._find(kind, address, subprotocol)
        wire = Wire(kind, address, next(self._numbers), upgrade)
        _shake_hands(wire, tls, listener.tls)
        patterns = self._patterns.get(listener.address)
        if patterns is not None:
            wire.dialler.pattern, wire.acceptor.pattern = patterns
        with trio.move_on_after(DIAL_TIMEOUT) as patience:
            try:
                await listener.arrive.send(wire.acceptor)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
                raise DialError(address, "connection refused") from exc
        if patience.cancelled_caught:
            raise DialError(address, f"no answer within {DIAL_TIMEOUT:g} s")
        self.wires.append(wire)
        return wire.dialler

    def _find(
        self, kind: links.Kind, address: str, subprotocol: str | None
    ) -> tuple[_MemoryListener, links.Upgrade]:
        place, upgrade = address, links.Upgrade()
        if kind is links.Kind.WEBSOCKET:
            try:
                url = read_websocket_url(address)
                place, upgrade = url.server, read_target(url.target, subprotocol)
            except ValueError as exc:
                raise DialError(address, str(exc)) from exc
        listener = self._listeners.get((kind, place))
        if listener is None or place in self._refused:
            raise DialError(address, "connection refused")
        if kind is links.Kind.WEBSOCKET:
            upgrade = _admit(address, upgrade, listener.paths)
        return listener, upgrade

    @override
    def negotiate(self, terms: links.ChannelTerms) -> AbstractAsyncContextManager[links.ChannelEnd]:
        return self._channels.negotiate(terms)

    def _open_wire(self) -> tuple[links.Link, links.Link]:
        wire = Wire(links.Kind.WEBRTC, links.Kind.WEBRTC, next(self._numbers), links.Upgrade())
        self.wires.append(wire)
        return wire.dialler, wire.acceptor

    @override
    @asynccontextmanager
    async def listen(
        self,
        kind: links.Kind,
        where: str,
        paths: links.ServedPaths = links.DEFAULT_PATHS,
        gate: links.Gate = links.EVERYBODY,
    ) -> AsyncIterator[links.Listener]:
        address = where if kind is links.Kind.UNIX else self._place(where)
        if kind is links.Kind.WEBSOCKET:
            address = f"ws://{address}" if gate.tls is None else f"wss://{address}"
        if (kind, address) in self._listeners:
            raise ListenError(where, "it is taken")
        listener = _MemoryListener(address, paths, gate.tls)
        self._listeners[kind, address] = listener
        try:
            await trio.lowlevel.checkpoint()
            yield listener
        finally:
            del self._listeners[kind, address]
            listener.close()

    def _place(self, where: str) -> str:
        try:
            host, port = read_host_port(where)
        except ValueError as exc:
            raise ListenError(where, str(exc)) from exc
        return join_host_port(host, port or next(self._ports))


def _shake_hands(wire: Wire, dialler: ssl.SSLContext | None, tls: ssl.SSLContext | None) -> None:
    """Simulate a TLS handshake with pinned certificates; permit TLS contexts of other kinds.

    Raises:
        DialError: Only one end has TLS, or an end has another certificate than expected.
    """
    ours = dialler if isinstance(dialler, PinnedContext) else None
    theirs = tls if isinstance(tls, PinnedContext) else None
    if ours is None and theirs is None:
        return
    if ours is None or theirs is None or ours.peer != theirs.own or theirs.peer != ours.own:
        raise DialError(wire.address, "TLS failed")
    wire.dialler.certificate, wire.acceptor.certificate = theirs.own, ours.own


def _admit(address: str, upgrade: links.Upgrade, paths: links.ServedPaths) -> links.Upgrade:
    if upgrade.path not in paths:
        raise DialError(address, "refused with HTTP 404")
    wanted = paths[upgrade.path]
    if wanted is not None and upgrade.subprotocol != wanted:
        raise DialError(address, "refused with HTTP 400")
    return attrs.evolve(upgrade, subprotocol=wanted)
