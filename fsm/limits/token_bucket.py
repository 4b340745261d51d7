"""How much each of many may do in how long: token buckets, one number each (RELIABILITY L5)."""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar, final

import attrs

__all__ = ["Meter", "Rate"]

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
