"""A link inside one process: two bounded channels, with faults on purpose."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from specs.limits.protocol import READ_BYTES
from transports.errors import CloseReason, LinkBrokenError, LinkClosedError
from transports.link import Kind, Link, Upgrade
from transports.turn import Turn

__all__ = ["FRAMES_IN_FLIGHT", "MemoryLink", "Pattern", "Sieve", "Wire", "undisturbed", "whole"]

FRAMES_IN_FLIGHT: Final = 16
"""Frames that one end may send before the other reads: about what the buffers of a socket hold."""

Pattern: TypeAlias = Callable[[int, bytes], Sequence[float]]
"""What becomes of the n-th frame (from 1): a delay in seconds for each copy that arrives. `()`
loses the frame, `(0.0,)` is a link without faults, `(0.0, 0.0)` doubles it. Delays keep the order.
"""

Sieve: TypeAlias = Callable[[bytes], bytes | None]
"""What remains of a frame, before its pattern says when it arrives; None: it is lost."""

_Frame: TypeAlias = tuple[float, bytes]


def undisturbed(_number: int, _frame: bytes) -> Sequence[float]:
    """Deliver every frame once, at once: the pattern of a link without faults.

    Args:
        _number: Number of the frame, from 1.
        _frame: The frame.
    """
    return (0.0,)


def whole(frame: bytes) -> bytes:
    """Leave a frame as it is: the sieve of a link without faults."""
    return frame


def _cut_anew(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Cut bytes where nobody would: a stream does not keep what was sent together."""
    whole_of_it = b"".join(pieces)
    start, size = 0, 1
    while start < len(whole_of_it):
        yield whole_of_it[start : start + size]
        start, size = start + size, READ_BYTES


@final
@attrs.define(eq=False)
class _State:
    """What both ends of a wire must agree on."""

    is_cut: bool = False


@final
class MemoryLink(Link):
    """One end of a `Wire`.

    Attributes:
        pattern: When the frames that this end sends arrive, and how often; a fault to inject.
        sieve: What remains of them; a fault to inject.
        farewell: Reason with which this end closed; None: it is open.
    """

    __slots__ = (
        "_asleep",
        "_due",
        "_inward",
        "_outward",
        "_peer",
        "_receiving",
        "_sending",
        "_sent",
        "_state",
        "farewell",
        "pattern",
        "sieve",
    )

    def __init__(
        self,
        names: tuple[Kind, str, Upgrade],
        outward: "trio.MemorySendChannel[_Frame]",
        inward: "trio.MemoryReceiveChannel[_Frame]",
        state: _State,
    ) -> None:
        super().__init__(*names)
        self._outward: Final = outward
        self._inward: Final = inward
        self._state: Final = state
        self._peer: MemoryLink | None = None
        self._due: _Frame | None = None
        self._sent = 0
        self._asleep = trio.CancelScope()
        self._sending: Final = Turn("sending")
        self._receiving: Final = Turn("receiving")
        self.pattern: Pattern = undisturbed
        self.sieve: Sieve = whole
        self.farewell: CloseReason | None = None

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            for frame in _cut_anew(frames) if self.kind is Kind.STREAM else frames:
                await self._put(frame)

    async def _put(self, frame: bytes) -> None:
        self._sent += 1
        now = trio.current_time()
        left = self.sieve(frame)
        copies = [] if left is None else [(at, left) for at in self.pattern(self._sent, left)]
        if not copies:
            await trio.lowlevel.checkpoint()
        try:
            for delay, copy in copies:
                await self._outward.send((now + delay, copy))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise self._gone() from exc

    @override
    def ping(self) -> None:
        """The other end of a socket answers without the actor above it; so does this one's."""
        peer = self._peer
        if peer is not None and peer.farewell is None and self.passes(b"") and peer.passes(b""):
            self.heard_at = trio.current_time()

    def passes(self, probe: bytes) -> bool:
        """Say whether something sent now would arrive."""
        left = None if self._state.is_cut else self.sieve(probe)
        return left is not None and bool(self.pattern(self._sent + 1, left))

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            self.heard_at = trio.current_time()
            if self._due is None:
                try:
                    self._due = await self._inward.receive()
                except (trio.EndOfChannel, trio.ClosedResourceError) as exc:
                    raise self._gone() from exc
            due, frame = self._due
            if due > trio.current_time():
                with trio.CancelScope() as self._asleep:
                    await trio.sleep_until(due)
            if self._state.is_cut or self.farewell is not None:
                raise self._gone()
            self._due = None
            self.heard_at = trio.current_time()
            return frame

    def _gone(self) -> LinkBrokenError | LinkClosedError:
        if self.farewell is not None:
            return LinkClosedError(self.name)
        if self._state.is_cut:
            return LinkBrokenError(self.name, "the wire was cut")
        farewell = None if self._peer is None else self._peer.farewell
        if farewell is not None and self.kind is Kind.STREAM:
            farewell = CloseReason.DONE
        return LinkBrokenError(self.name, "the other end has left", farewell)

    @override
    async def aclose(self, farewell: CloseReason = CloseReason.DONE) -> None:
        if self.farewell is not None:
            await trio.lowlevel.checkpoint()
            return
        self.farewell = farewell
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            self._state.is_cut = True
            raise
        finally:
            self.drop()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def drop(self) -> None:
        """Let go of both channels; what is in flight towards the peer stays there.

        Who waits here for a frame that is on its way waits no longer.
        """
        self._asleep.cancel()
        self._outward.close()
        self._inward.close()


@final
class Wire:
    """Both ends of a link in memory, seen from outside.

    Attributes:
        kind: What it stands for.
        address: What was dialled.
        dialler: The end that dialled.
        acceptor: The end that was dialled.
    """

    __slots__ = ("_state", "acceptor", "address", "dialler", "kind")

    def __init__(self, kind: Kind, address: str, number: int, upgrade: Upgrade) -> None:
        out, out_end = trio.open_memory_channel[_Frame](FRAMES_IN_FLIGHT)
        back, back_end = trio.open_memory_channel[_Frame](FRAMES_IN_FLIGHT)
        state = _State()
        dialler = MemoryLink((kind, f"{kind}-{number}-out", upgrade), out, back_end, state)
        acceptor = MemoryLink((kind, f"{kind}-{number}-in", upgrade), back, out_end, state)
        dialler._peer, acceptor._peer = acceptor, dialler  # noqa: SLF001 - built as a pair
        self._state: Final = state
        self.kind: Final = kind
        self.address: Final = address
        self.dialler: Final = dialler
        self.acceptor: Final = acceptor

    @property
    def is_open(self) -> bool:
        """Whether neither end has left and nobody cut it."""
        ends_left = self.dialler.farewell or self.acceptor.farewell
        return not self._state.is_cut and ends_left is None

    def cut(self) -> None:
        """Break it abruptly: both ends see `LinkBrokenError`, frames in flight are lost."""
        self._state.is_cut = True
        self.dialler.drop()
        self.acceptor.drop()
