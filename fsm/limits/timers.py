"""One deadline for many keys: which keys are due, without a look at all of them."""

import heapq
import math
from enum import Enum, auto
from typing import Generic, TypeVar

import attrs

from specs.limits.foreign_code import SANDBOX_STARVED, SANDBOX_TURN
from specs.limits.protocol import LATE, SANDBOX_BEAT, SANDBOX_SILENCE

K = TypeVar("K", str, int, tuple[str, str])


class Alarms(Generic[K]):
    """The next due time of each key.

    A key whose time moves further away keeps its earlier time. The key is then due too early
    once, and the caller sets it anew.
    """

    __slots__ = ("_heap", "_when")

    def __init__(self) -> None:
        self._heap: list[tuple[float, K]] = []
        self._when: dict[K, float] = {}

    def set(self, key: K, when: float) -> None:
        """Have a key due, at the latest at a time.

        Args:
            key: The key; an earlier time that it already has stays.
            when: Seconds on the host's clock; infinity: the key is never due.
        """
        if when == math.inf:
            self._when.pop(key, None)
            if not self._when:
                self._heap.clear()  # of times that count no more
        elif when < self._when.get(key, math.inf):
            self._when[key] = when
            heapq.heappush(self._heap, (when, key))

    def deadline(self) -> float:
        """Return when the first key is due; infinity if none ever is."""
        heap = self._heap
        while heap and self._when.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def due(self, now: float) -> list[K]:
        """Take out the keys that are due, earliest first; set them anew."""
        keys: list[K] = []
        while self.deadline() <= now:
            keys.append(self.pop())
        return keys

    def pop(self) -> K:
        """Take out the key whose time is first, after `deadline` said that there is one."""
        _, key = heapq.heappop(self._heap)
        del self._when[key]
        return key


# When a sandbox process is asked for a sign of life, and when it is ended for its silence.


@attrs.frozen
class ProcessorTime:
    """What a process had of the processors since it was started.

    Attributes:
        ran: Seconds it ran.
        waited: Seconds it could have run, and other processes ran.
    """

    ran: float
    waited: float


IDLE = ProcessorTime(0.0, 0.0)
"""The processor time of what is no process, or of one that is not measured."""


class Sign(Enum):
    """What is done when the time of `SignsOfLife.due` has come."""

    ASK = auto()
    END = auto()
    WAIT = auto()


class SignsOfLife:
    """The signs of life of one sandbox, from when it is ready.

    Attributes:
        due: When to call `timed_out`; `math.inf` before it is ready.
        is_owed: True if it was asked for a sign and has not given it.
    """

    __slots__ = ("_asked", "_then", "due", "is_owed")

    def __init__(self) -> None:
        self.due = math.inf
        self.is_owed = False
        self._asked = 0.0
        self._then = IDLE

    def alive(self, now: float) -> None:
        """Take a sign of life."""
        self.is_owed = False
        self.due = now + SANDBOX_BEAT

    def silence(self, now: float) -> float:
        """Return the seconds for which a sign of life is owed."""
        return now - self._asked

    def timed_out(self, now: float, used: ProcessorTime) -> Sign:
        """Return what its host has to do.

        Args:
            now: The time.
            used: The processor time of the sandbox.
        """
        if not self.is_owed:
            self.is_owed = True
            self._asked, self._then = now, used
            self.due = now + SANDBOX_SILENCE
            return Sign.ASK
        if now - self.due > LATE:
            # Late itself: the sign of life may wait in the pipe, unread.
            self._asked, self._then = now, used
            self.due = now + SANDBOX_SILENCE
            return Sign.WAIT
        is_starved = (
            used.ran - self._then.ran < SANDBOX_TURN
            and used.waited - self._then.waited > SANDBOX_SILENCE / 2
        )
        if not is_starved or self.silence(now) >= SANDBOX_STARVED:
            return Sign.END
        self.due = min(now + SANDBOX_BEAT, self._asked + SANDBOX_STARVED)
        return Sign.WAIT
