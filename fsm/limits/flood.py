"""Who says too much for too long: paced first, then given up (R11, S17)."""

import math
from typing import final

from fsm.limits.pace import Pace

__all__ = ["FloodCore"]


@final
class FloodCore:
    """A pace, and how long somebody was held back by it.

    Who floods always has more to say when a pause is over; who keeps to the rate is waited
    for. So what counts is the time somebody was made to pause, less the time he was waited
    for: neither a pause that took too long, nor an empty budget, says anything of him.

    Args:
        rate: Units a second.
        burst: Units that may be spent at once after a rest.
        patience: Seconds somebody is held back, more than he is waited for, until it is a
            flood. It begins anew when the budget is whole again.
    """

    def __init__(self, rate: float, burst: int, patience: float) -> None:
        self._pace = Pace(rate, burst)
        self._patience = patience
        self._pause = 0.0
        self._spent_at = 0.0
        self._waited = 0.0
        self._held = 0.0

    def spend(self, now: float, waited: float) -> float:
        """Spend one unit; return the seconds to pause first: 0.0 for none, infinity: it floods.

        Args:
            now: When; what was said to pause before is over.
            waited: Seconds that he was waited for, in all, until now.
        """
        news = waited - self._waited
        if self._pause:
            self._held += now - self._spent_at - news
        self._held = max(self._held - news, 0.0)
        self._pause = self._pace.spend(now)
        if self._pace.is_rested:
            self._held = 0.0
        self._spent_at, self._waited = now, waited
        return self._pause if self._held < self._patience else math.inf
