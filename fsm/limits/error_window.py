"""How many malformed messages of one link are borne (RELIABILITY L4)."""

import math
from collections import deque
from typing import Final, final

from specs.limits.protocol import SOFT_ERROR_PERIOD

__all__ = ["SoftErrors"]


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
