"""Timers: the next due keys among many (`Alarms`), and liveness checks of sandbox processes."""

import heapq
import math
from enum import Enum, auto
from typing import Generic, TypeVar

import attrs

from specs.limits.foreign_code import SANDBOX_STARVED, SANDBOX_TURN
from specs.limits.protocol import LATE, SANDBOX_BEAT, SANDBOX_SILENCE

K = TypeVar("K", str, int, tuple[str, str])


class Alarms(Generic[K]):
    """Alarm clock for many keys: finds the keys that are due without checking all of them.

    If a key is set to a later time, the earlier time stays. The key is then reported once too
    early, and the caller must set it again.
    """

    __slots__ = ("_heap", "_when")

    def __init__(self) -> None:
        self._heap: list[tuple[float, K]] = []
        self._when: dict[K, float] = {}

    def set(self, key: K, when: float) -> None:
        """Schedule a key, unless it is already scheduled for an earlier time.

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
        """Return the time at which the first key is due; infinity: no key is scheduled."""
        heap = self._heap
        while heap and self._when.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def due(self, now: float) -> list[K]:
        """Remove and return the keys that are due, earliest first."""
        keys: list[K] = []
        while self.deadline() <= now:
            keys.append(self.pop())
        return keys

    def pop(self) -> K:
        """Remove and return the key with the earliest time; call `deadline` before."""
        _, key = heapq.heappop(self._heap)
        del self._when[key]
        return key


# Liveness of a sandbox process: when to ask for a sign of life, and when to end the process.


@attrs.frozen
class ProcessorTime:
    """The processor time that a process has used, and waited for, since its start.

    Attributes:
        ran: Seconds in which it ran.
        waited: Seconds in which it was ready while other processes ran.
    """

    ran: float
    waited: float


IDLE = ProcessorTime(0.0, 0.0)
"""The processor time of a sandbox that is no process, or is not measured."""


class Sign(Enum):
    """The action that `SignsOfLife` demands for a sandbox."""

    ASK = auto()
    """Ask the sandbox for a sign of life."""

    END = auto()
    """End the sandbox, since it does not respond."""

    WAIT = auto()
    """Do nothing yet."""


class SignsOfLife:
    """Detects that a sandbox process no longer responds.

    Attributes:
        due: Time of the next call of `timed_out`; `math.inf` before the sandbox is ready.
        is_owed: True if the sandbox was asked for a sign of life and has not given one.
    """

    __slots__ = ("_asked", "_then", "due", "is_owed")

    def __init__(self) -> None:
        self.due = math.inf
        self.is_owed = False
        self._asked = 0.0
        self._then = IDLE

    def alive(self, now: float) -> None:
        """Note that the sandbox gave a sign of life."""
        self.is_owed = False
        self.due = now + SANDBOX_BEAT

    def silence(self, now: float) -> float:
        """Return the seconds since the sandbox was asked for a sign of life."""
        return now - self._asked

    def timed_out(self, now: float, used: ProcessorTime) -> Sign:
        """Return the action that is needed now: ask, end the sandbox, or wait.

        A sandbox that got hardly any processor time is given more time to respond.

        Args:
            now: The current time.
            used: The processor time that the sandbox has used.
        """
        if not self.is_owed:
            self.is_owed = True
            self._asked, self._then = now, used
            self.due = now + SANDBOX_SILENCE
            return Sign.ASK
        if now - self.due > LATE:
            # The host called too late: the sign of life may be unread in the pipe.
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
