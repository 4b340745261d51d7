"""When each of several submitters may submit again (R11).

Who submits alone is never held up. While another has submitted within `CONTENTION`, each
has a share that leaves the others their time: a burst, and then a rate. What a router that
was held up itself could not give in time is not made up for: those who wait for their turn
would all come at once, and just when the others have waited, too.
"""

import math
from collections import Counter
from heapq import heappop, heappush
from typing import Final, final

from fsm.limits.token_bucket import Meter, Rate
from specs.limits.bus import CONTENTION, SUBMIT_BURST, SUBMIT_RATE

__all__ = ["TurnsCore"]

_APART: Final = 1 / SUBMIT_RATE
"""Seconds between two turns of one that takes all it can."""


@final
class TurnsCore:
    """The turns at one router."""

    def __init__(self) -> None:
        self._meter: Meter[str] = Meter(Rate(SUBMIT_RATE, SUBMIT_BURST))
        self._last = ""
        self._last_at = -math.inf
        self._other_at = -math.inf
        self._held: Counter[str] = Counter()
        self._due: list[tuple[float, str]] = []

    def taken(self, by: str, now: float) -> bool:
        """Note that a message of `by` was taken; say whether another may come at once.

        Otherwise `due` names it once for this message.
        """
        if by != self._last:
            self._other_at, self._last = self._last_at, by
        self._last_at = now
        if self._other_at + CONTENTION < now:
            return True
        wait = self._meter.spend(by, 1, now)
        if not self._held[by]:
            if wait <= 0:
                return True
            heappush(self._due, (now + wait, by))
        self._held[by] += 1
        return False

    def deadline(self) -> float:
        """Return when `due` is to be asked; infinity: nobody is held up."""
        return self._due[0][0] if self._due else math.inf

    def due(self, now: float) -> list[str]:
        """Return who may submit one more, each once, however late it is."""
        free: list[str] = []
        while self._due and self._due[0][0] <= now:
            free.append(heappop(self._due)[1])
        for by in free:
            self._held[by] -= 1
            if self._held[by]:
                heappush(self._due, (now + _APART, by))
            else:
                del self._held[by]
        return free
