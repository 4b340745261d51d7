"""How much each of many may do in how long: token buckets, one number each (RELIABILITY L5).

How fast something may go on: a budget that fills again with time.

Who says too much for too long: paced first, then given up (R11, S17).
"""

import math
from collections.abc import Hashable
from typing import Final, Generic, TypeVar, final

import attrs

__all__ = ["FloodCore", "Meter", "Pace", "Rate"]


@final
class Pace:
    """A budget of `burst`, refilled by `rate` a second.

    Args:
        rate: Units a second.
        burst: Units that may be spent at once after a rest.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._left = float(burst)
        self._since = 0.0

    @property
    def is_rested(self) -> bool:
        """Whether, but for the unit just spent, all of the budget is there."""
        return self._left >= self._burst - 1

    def spend(self, now: float) -> float:
        """Spend one unit; return the seconds to pause before going on, 0.0 for none."""
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        self._left -= 1
        return 0.0 if self._left >= 0 else -self._left / self._rate


K = TypeVar("K", bound=Hashable)

_SMALL: Final = 64
"""Keys that are kept without a look at whether they are still needed."""


@final
@attrs.frozen
class Rate:
    """How often something may happen.

    Attributes:
        per_second: In the long run; infinity: there is no limit.
        burst: At once, after a rest.
    """

    per_second: float
    burst: int


@final
class Meter(Generic[K]):
    """A token bucket for each key.

    A bucket is known by the time at which it is full again. One that is full is like
    one that never was, so it is forgotten: only who was busy lately takes room.
    """

    __slots__ = ("_full_at", "_patience", "_sweep_at", "_token")

    def __init__(self, rate: Rate) -> None:
        self._token: Final = 1 / rate.per_second
        self._patience: Final = rate.burst / rate.per_second
        self._full_at: Final[dict[K, float]] = {}
        self._sweep_at = _SMALL

    def __len__(self) -> int:
        return len(self._full_at)

    def spend(self, key: K, count: int, now: float) -> float:
        """Take tokens whether they are there or not; return the seconds until none is owed."""
        full_at = max(self._full_at.get(key, now), now) + count * self._token
        self._note(key, full_at, now)
        return max(0.0, full_at - now - self._patience)

    def try_spend(self, key: K, now: float) -> bool:
        """Take one token if it is there; tell whether it was."""
        full_at = max(self._full_at.get(key, now), now) + self._token
        if full_at - now > self._patience:
            return False
        self._note(key, full_at, now)
        return True

    def _note(self, key: K, full_at: float, now: float) -> None:
        if full_at <= now:
            return
        self._full_at[key] = full_at
        if len(self._full_at) >= self._sweep_at:
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Forget full buckets; twice as many as are left may come until the next time."""
        for key in [one for one, full_at in self._full_at.items() if full_at <= now]:
            del self._full_at[key]
        self._sweep_at = max(_SMALL, 2 * len(self._full_at))


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
