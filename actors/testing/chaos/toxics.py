"""Faults between two ends, with the names that toxiproxy gives them.

A toxic is data: it describes the fate of a frame; links execute it. Times are Trio times. All but
`Corrupt` and `Duplicate` keep the contract of links: lost frames are the last ones that were
sent, and the order is kept. <https://github.com/Shopify/toxiproxy#toxics>
"""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from transports.link import ChannelEnd, Link

# Data channels whose links are exposed to faults; their set-up is not.


class ObservedEnd(ChannelEnd):
    """Another end of a data channel, whose observer gets its answer and its link first.

    Args:
        end: The end.
        opened: Returns the link that is used in place of its link.
        answered: Called with each answer.
    """

    def __init__(
        self,
        end: ChannelEnd,
        opened: Callable[[Link], Link],
        answered: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(end.candidates)
        self.sdp = end.sdp
        self._end = end
        self._opened = opened
        self._answered = answered

    @override
    async def answered(self, sdp: str) -> None:
        self._answered(sdp)
        await self._end.answered(sdp)

    @override
    async def hear(self, candidate: str) -> None:
        await self._end.hear(candidate)

    @override
    async def opened(self) -> Link:
        return self._opened(await self._end.opened())


@asynccontextmanager
async def expose(
    opening: AbstractAsyncContextManager[ChannelEnd], opened: Callable[[Link], Link]
) -> AsyncIterator[ChannelEnd]:
    """Open an end whose link is exposed.

    Args:
        opening: Opens the end.
        opened: Exposes its link.

    If cancelled, nothing is left open.
    """
    async with opening as end:
        yield ObservedEnd(end, opened)


_NEVER: Final = math.inf


@attrs.frozen(slots=True)
class Passing:
    """A frame in transit.

    Attributes:
        size: Its size in bytes.
        due: Trio time of its arrival.
        copies: How often the frame arrives; 0: it is lost, and its link breaks.
        spoilt_at: Index of the byte that becomes NUL; None: no byte changes.
    """

    size: int
    due: float
    copies: int = 1
    spoilt_at: int | None = None


@attrs.frozen(slots=True)
class Road:
    """One direction of a link at the time of a frame.

    Attributes:
        busy_until: Trio time at which the previous frame arrives.
        carried: Bytes of all previous frames.
    """

    busy_until: float
    carried: int
    random: Random


class Toxic:
    """One fault; the base class does nothing.

    Attributes:
        holds: Whether nothing passes.
    """

    holds: ClassVar[bool] = False

    def touch(self, passing: Passing, road: Road) -> Passing:
        """Return the fate of a frame."""
        del road
        return passing

    @property
    def patience(self) -> float:
        """Seconds after which the link is reset; infinity: never."""
        return _NEVER

    @property
    def linger(self) -> float:
        """Seconds by which the report that the other end has left is delayed."""
        return 0.0


@attrs.frozen
class Latency(Toxic):
    """Delays each frame by `seconds`, plus or minus at most `jitter` seconds, in order."""

    seconds: float
    jitter: float = 0.0

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        late = self.seconds + road.random.uniform(-self.jitter, self.jitter)
        return attrs.evolve(passing, due=passing.due + max(0.0, late))


@attrs.frozen
class Bandwidth(Toxic):
    """Limits the data rate, in bytes per second: a frame delays those behind it."""

    bytes_per_second: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        begins = max(passing.due, road.busy_until)
        return attrs.evolve(passing, due=begins + passing.size / self.bytes_per_second)


@attrs.frozen
class Slicer(Toxic):
    """Splits a frame into slices of `average_size` bytes, with `delay` seconds between two."""

    average_size: int
    delay: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        pauses = max(0, -(-passing.size // self.average_size) - 1)
        begins = max(passing.due, road.busy_until)
        return attrs.evolve(passing, due=begins + pauses * self.delay)


@attrs.frozen
class SlowClose(Toxic):
    """Delays the report that the other end has left by `seconds`."""

    seconds: float

    @property
    @override
    def linger(self) -> float:
        return self.seconds


@attrs.frozen
class Timeout(Toxic):
    """Drops everything without notice; after `seconds` the link is reset.

    Frames sent meanwhile are lost, so a link is also reset if the fault ends before.
    """

    holds = True
    seconds: float = _NEVER

    @property
    @override
    def patience(self) -> float:
        return self.seconds


@attrs.frozen
class ResetPeer(Toxic):
    """Resets a link `seconds` after it was opened, or after the fault began."""

    seconds: float = 0.0

    @property
    @override
    def patience(self) -> float:
        return self.seconds


@attrs.frozen
class LimitData(Toxic):
    """Resets a link at the frame that would exceed `limit_bytes` in one direction."""

    limit_bytes: int

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_over = road.carried + passing.size > self.limit_bytes
        return attrs.evolve(passing, copies=0) if is_over else passing


@attrs.frozen
class Loss(Toxic):
    """Loses a frame with probability `chance`, and resets the link, as all later ones are lost."""

    chance: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_lost = road.random.random() < self.chance
        return attrs.evolve(passing, copies=0) if is_lost else passing


@attrs.frozen
class Delay(Toxic):
    """Delays a frame, and those behind it, by `seconds`, with probability `chance`."""

    chance: float
    seconds: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_late = road.random.random() < self.chance
        return attrs.evolve(passing, due=passing.due + self.seconds) if is_late else passing


@attrs.frozen
class Duplicate(Toxic):
    """Delivers a frame twice with probability `chance`.

    Real links never do this; the fault is for protocols that claim to tolerate it.
    """

    chance: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_doubled = passing.copies and road.random.random() < self.chance
        return attrs.evolve(passing, copies=2) if is_doubled else passing


@attrs.frozen
class Corrupt(Toxic):
    """Makes one byte of a frame NUL with probability `chance`.

    Real links never do this; the fault is for protocols that claim to tolerate it.
    """

    chance: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        if not passing.size or road.random.random() >= self.chance:
            return passing
        return attrs.evolve(passing, spoilt_at=road.random.randrange(passing.size))


# The faults of one direction of a link at one time, and the parties of a link.


@attrs.frozen
class LinkFaults:
    """The faults of one direction of a link at one time.

    Attributes:
        toxics: Faults that change frames, in the order in which they began.
        reset_at: Trio time at which the link is reset; infinity: never.
        linger: Seconds by which the end of a link is delayed.
    """

    toxics: tuple[Toxic, ...] = ()
    is_held: bool = False
    reset_at: float = math.inf
    linger: float = 0.0


NO_FAULTS: Final = LinkFaults()
"""No faults."""


@attrs.frozen(eq=False)
class LinkParties:
    """The two parties of a link; one object for both its ends.

    Attributes:
        dialler: Party that dialled; None: one of another network.
        listener: Party that listened; None: one of another network.
        since: Trio time of the dial.
    """

    dialler: str | None
    listener: str | None
    since: float
