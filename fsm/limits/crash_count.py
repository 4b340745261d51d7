"""How often something has crashed lately, and whether that is too often (R11)."""

from collections import deque
from typing import final

from specs.limits.protocol import ROOM_RESTARTS, ROOM_SECONDS

__all__ = ["CrashCount"]


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
