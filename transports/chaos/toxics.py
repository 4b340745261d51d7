"""What can go wrong between two ends, by the names that toxiproxy gives it.

A toxic is data: it says what becomes of a frame, and links do it. Times are Trio times.
All of them keep the contract of links but `Duplicate`: what is lost is the end of what
was sent, order is kept. <https://github.com/Shopify/toxiproxy#toxics>
"""

import math
from random import Random
from typing import Final, final

import attrs
from typing_extensions import override

__all__ = [
    "Bandwidth",
    "Delay",
    "Duplicate",
    "Latency",
    "LimitData",
    "Loss",
    "Passing",
    "ResetPeer",
    "Road",
    "Slicer",
    "SlowClose",
    "Timeout",
    "Toxic",
]

_NEVER: Final = math.inf


@final
@attrs.frozen(slots=True)
class Passing:
    """A frame on its way.

    Attributes:
        size: Its bytes.
        due: When it arrives.
        copies: How often; 0: it is lost, and its link breaks.
    """

    size: int
    due: float
    copies: int = 1


@final
@attrs.frozen(slots=True)
class Road:
    """One direction of a link, as a frame finds it.

    Attributes:
        busy_until: When the frame before it arrives.
        carried: Bytes of all frames before it.
        random: What chance is.
    """

    busy_until: float
    carried: int
    random: Random


class Toxic:
    """One thing that is wrong; by itself, nothing."""

    def touch(self, passing: Passing, road: Road) -> Passing:
        """Return what becomes of a frame."""
        del road
        return passing

    @property
    def holds(self) -> bool:
        """Whether nothing passes."""
        return False

    @property
    def patience(self) -> float:
        """Seconds after which the link is reset."""
        return _NEVER

    @property
    def linger(self) -> float:
        """Seconds by which an end hears later that the other has left."""
        return 0.0


@final
@attrs.frozen
class Latency(Toxic):
    """Frames arrive later; how much, varies by at most `jitter`. Order is kept."""

    seconds: float
    jitter: float = 0.0

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        late = self.seconds + road.random.uniform(-self.jitter, self.jitter)
        return attrs.evolve(passing, due=passing.due + max(0.0, late))


@final
@attrs.frozen
class Bandwidth(Toxic):
    """A frame takes its time by its size, and those behind it wait."""

    bytes_per_second: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        begins = max(passing.due, road.busy_until)
        return attrs.evolve(passing, due=begins + passing.size / self.bytes_per_second)


@final
@attrs.frozen
class Slicer(Toxic):
    """A frame comes in slices of some bytes, with a pause between two."""

    average_size: int
    delay: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        pauses = max(0, -(-passing.size // self.average_size) - 1)
        begins = max(passing.due, road.busy_until)
        return attrs.evolve(passing, due=begins + pauses * self.delay)


@final
@attrs.frozen
class SlowClose(Toxic):
    """An end hears later that the other has left."""

    seconds: float

    @property
    @override
    def linger(self) -> float:
        return self.seconds


@final
@attrs.frozen
class Timeout(Toxic):
    """A black hole: nothing passes, nobody is told; after some time the link is reset.

    What was sent meanwhile is lost, so a link is reset also when this ends before.
    """

    seconds: float = _NEVER

    @property
    @override
    def holds(self) -> bool:
        return True

    @property
    @override
    def patience(self) -> float:
        return self.seconds


@final
@attrs.frozen
class ResetPeer(Toxic):
    """A link is reset some seconds after it was opened, or after this began."""

    seconds: float = 0.0

    @property
    @override
    def patience(self) -> float:
        return self.seconds


@final
@attrs.frozen
class LimitData(Toxic):
    """A link is reset by the frame with which it would have carried more, one way."""

    limit_bytes: int

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_over = road.carried + passing.size > self.limit_bytes
        return attrs.evolve(passing, copies=0) if is_over else passing


@final
@attrs.frozen
class Loss(Toxic):
    """A frame is lost by chance, and with it the link: all behind it would be lost, too."""

    chance: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_lost = road.random.random() < self.chance
        return attrs.evolve(passing, copies=0) if is_lost else passing


@final
@attrs.frozen
class Delay(Toxic):
    """A frame is held up by chance, and those behind it with it."""

    chance: float
    seconds: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_late = road.random.random() < self.chance
        return attrs.evolve(passing, due=passing.due + self.seconds) if is_late else passing


@final
@attrs.frozen
class Duplicate(Toxic):
    """A frame arrives twice by chance: no link does so; for protocols that claim to bear it."""

    chance: float

    @override
    def touch(self, passing: Passing, road: Road) -> Passing:
        is_doubled = passing.copies and road.random.random() < self.chance
        return attrs.evolve(passing, copies=2) if is_doubled else passing
