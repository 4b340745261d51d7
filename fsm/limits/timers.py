"""Deadlines of many keys: finds the keys that are due without a check of all of them."""

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

    A key whose time is moved to a later one keeps its earlier time. It is then due too early once,
    and the caller sets it again.
    """

    __slots__ = ("_heap", "_when")

    def __init__(self) -> None:
        self._heap: list[tuple[float, K]] = []
        self._when: dict[K, float] = {}

    def set(self, key: K, when: float) -> None:
        """Schedule a key; an earlier time stays.

        Args:
            key: The key.
            when: Seconds on the host's clock; infinity: the key is never due.
        """
        if when == math.inf:
            self._when.pop(key, None)
            if not self._when:
                self._heap.clear()  # its entries are outdated
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
        """Take out the keys that are due, earliest first; the caller sets them again."""
        keys: list[K] = []
        while self.deadline() <= now:
            keys.append(self.pop())
        return keys

    def pop(self) -> K:
        """Take out the key with the earliest time; `deadline` tells whether there is one."""
        _, key = heapq.heappop(self._heap)
        del self._when[key]
        return key


# The liveness of a sandbox process: when it is asked for a sign of life, and when it is ended.


@attrs.frozen
class ProcessorTime:
    """The processor time of a process since its start.

    Attributes:
        ran: Seconds in which it ran.
        waited: Seconds in which it was ready while other processes ran.
    """

    ran: float
    waited: float


IDLE = ProcessorTime(0.0, 0.0)
"""The processor time of a sandbox that is no process, or is not measured."""


class Sign(Enum):
    """The action that is due at the time `SignsOfLife.due`."""

    ASK = auto()
    END = auto()
    WAIT = auto()


class SignsOfLife:
    """The signs of life of one sandbox, after it is ready.

    Attributes:
        due: Time of the next call of `timed_out`; `math.inf` before it is ready.
        is_owed: True if it was asked for a sign of life and has not given one.
    """

    __slots__ = ("_asked", "_then", "due", "is_owed")

    def __init__(self) -> None:
        self.due = math.inf
        self.is_owed = False
        self._asked = 0.0
        self._then = IDLE

    def alive(self, now: float) -> None:
        """Note a sign of life."""
        self.is_owed = False
        self.due = now + SANDBOX_BEAT

    def silence(self, now: float) -> float:
        """Return the seconds for which a sign of life has been owed."""
        return now - self._asked

    def timed_out(self, now: float, used: ProcessorTime) -> Sign:
        """Return the action for the host.

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
            # This call is late: the sign of life may be unread in the pipe.
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
