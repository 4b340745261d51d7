"""A fair queue: when each of several submitters may submit again (R11).

A submitter that is alone is never delayed. While another submitter has submitted within
`CONTENTION`, each submitter has a share of the router's time: a burst, and then a rate.
Time in which the router itself was delayed is not made up for. Otherwise all delayed
submitters would come at once, just when the others have waited, too.
"""

import math
from collections import Counter
from heapq import heappop, heappush
from typing import Final, final

from fsm.limits.token_bucket import Rate, TokenBuckets
from specs.limits.bus import CONTENTION, SUBMIT_BURST, SUBMIT_RATE

__all__ = ["TurnsCore"]

_APART: Final = 1 / SUBMIT_RATE
"""Seconds between two turns of one that takes all it can."""


@final
class TurnsCore:
    """The fair queue of one router."""

    def __init__(self) -> None:
        self._meter: TokenBuckets[str] = TokenBuckets(Rate(SUBMIT_RATE, SUBMIT_BURST))
        self._last = ""
        self._last_at = -math.inf
        self._other_at = -math.inf
        self._held: Counter[str] = Counter()
        self._due: list[tuple[float, str]] = []

    def taken(self, by: str, now: float) -> bool:
        """Count a message of a submitter; return whether its next message may come at once.

        If not, `due` names the submitter once for this message.

        Args:
            by: Name of the submitter.
            now: Seconds on the host's clock.
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
        """Return the time of the next call of `due`; infinity: no submitter is delayed."""
        return self._due[0][0] if self._due else math.inf

    def due(self, now: float) -> list[str]:
        """Return the submitters that may submit one more message, each once, however late."""
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
