"""A host: real cores of one place, with what is around them there, for the composition check.

A host does for its cores what an actor does: it feeds them what arrives, and puts what they
decide on channels. It has no I/O and no clock of its own: `now` is advanced to a deadline
when that is over. It shares nothing with other hosts, so that what becomes of it is a
function of what it is and of what happens, which the explorer computes once and remembers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import ClassVar, TypeAlias, final

import attrs

from fsm.engine import Step
from specs.errors import ProtoflyError

__all__ = ["Host", "Sent", "UnsafeError"]


@final
class UnsafeError(ProtoflyError):
    """A core decided what it must not decide; the text is the property that is broken."""


@final
@attrs.frozen(slots=True)
class Sent:
    """A message that was put on a channel."""

    channel: str
    message: Hashable


Output: TypeAlias = Sent | Step


class Host(ABC):
    """The cores of one place.

    Attributes:
        now: Seconds of the place's own clock.
        out: What the last input led to, in order.
        counters: Names of what only counts up, in the host or its cores, and is not looked at
            to know a host again: the host must show by other means what depends on it.
        durations: Names of seconds that are no time of the clock.
    """

    counters: ClassVar[frozenset[str]] = frozenset()
    durations: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.now = 0.0
        self.out: list[Output] = []

    @abstractmethod
    def take(self, happened: Hashable) -> None:
        """Take a message, or a local event.

        Raises:
            UndeclaredTransitionError: A core's table has no row for it.
            UnsafeError: A property of this place is broken.
        """

    def deadline(self) -> float:
        """The time at which `time_over` is due; infinity: never."""
        return math.inf

    def time_over(self) -> None:
        """Take it that the deadline is over: `now` is at it.

        Raises:
            NotImplementedError: The subclass has a deadline and no reaction to it.
        """
        raise NotImplementedError

    @final
    def pass_time(self) -> None:
        """Let the deadline be over."""
        self.now = max(self.now, self.deadline())
        self.time_over()

    @final
    def send(self, channel: str, message: Hashable) -> None:
        """Put a message on a channel.

        Args:
            channel: Name of the channel.
            message: The message.
        """
        self.out.append(Sent(channel, message))

    @final
    def moved(self, steps: Iterable[object]) -> None:
        """Note the steps among the effects of a core."""
        self.out += [each for each in steps if isinstance(each, Step)]
