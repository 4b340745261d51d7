"""What a node still has to do at a back end on behalf of sessions that are over.

Each is tried again until it succeeds, with pauses that double up to `DEBT_PAUSE`, and is
given up after `DEBT_TRIES` attempts.
"""

from typing import Final, final

import attrs

from specs.limits.back_ends import DEBT_PAUSE, DEBT_TRIES
from specs.limits.protocol import RETRY_COOL_DOWN

__all__ = ["Debts"]

_GROWTH: Final = 2.0


@final
@attrs.define
class _Debt:
    due: float
    tries: int = 0


@final
class Debts:
    """Names of what is owed, oldest first."""

    def __init__(self) -> None:
        self._owed: dict[str, _Debt] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._owed

    def __len__(self) -> int:
        return len(self._owed)

    def owe(self, name: str, now: float) -> None:
        """Have something done, at once."""
        self._owed[name] = _Debt(now)

    def paid(self, name: str) -> None:
        """Note that it is done, or need not be any more."""
        self._owed.pop(name, None)

    def failed(self, name: str, now: float) -> bool:
        """Note that an attempt failed; say whether that was the last one."""
        debt = self._owed.get(name)
        if debt is None:
            return False
        debt.tries += 1
        if debt.tries >= DEBT_TRIES:
            del self._owed[name]
            return True
        debt.due = now + min(RETRY_COOL_DOWN * _GROWTH ** (debt.tries - 1), DEBT_PAUSE)
        return False

    def due(self, now: float) -> tuple[str, ...]:
        """Return what is to be tried now."""
        return tuple(name for name, debt in self._owed.items() if debt.due <= now)

    def deadline(self) -> float:
        """Return when something is to be tried."""
        return min((debt.due for debt in self._owed.values()), default=float("inf"))
