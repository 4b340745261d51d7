"""How many malformed messages of one link are borne (RELIABILITY L4).

How often something has crashed lately, and whether that is too often (R11).
"""

import math
from collections import deque
from typing import Final, final

from specs.limits.protocol import ROOM_RESTARTS, ROOM_SECONDS, SOFT_ERROR_PERIOD

__all__ = ["CrashCount", "SoftErrors"]


@final
class CrashCount:
    """Crashes within `ROOM_SECONDS`; more than `ROOM_RESTARTS` are too many."""

    def __init__(self) -> None:
        self._crashes: deque[float] = deque()

    def crashed(self, now: float) -> bool:
        """Count a crash; say whether that was one too many, and then begin anew."""
        while self._crashes and self._crashes[0] <= now - ROOM_SECONDS:
            self._crashes.popleft()
        self._crashes.append(now)
        if len(self._crashes) <= ROOM_RESTARTS:
            return False
        self._crashes.clear()
        return True

    def is_calm(self, now: float) -> bool:
        """Say whether no crash counts any more."""
        return not self._crashes or self._crashes[-1] <= now - ROOM_SECONDS


@final
class SoftErrors:
    """The latest malformed messages of one link.

    Args:
        borne: How many there may be within `SOFT_ERROR_PERIOD`.
    """

    __slots__ = ("_borne", "_times")

    def __init__(self, borne: float) -> None:
        self._borne: Final = borne
        self._times: Final[deque[float]] = deque()

    def add(self, count: int, now: float) -> bool:
        """Note malformed messages; tell whether they are still borne."""
        if self._borne == math.inf:
            return True
        times = self._times
        while times and times[0] <= now - SOFT_ERROR_PERIOD:
            times.popleft()
        times.extend([now] * count)
        while len(times) > self._borne + 1:
            times.popleft()
        return len(times) <= self._borne
