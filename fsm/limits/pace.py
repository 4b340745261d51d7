"""How fast something may go on: a budget that fills again with time."""

from typing import final

__all__ = ["Pace"]


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
