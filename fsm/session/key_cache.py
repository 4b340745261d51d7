"""When the keys that verify logins are to be got anew, and how long old ones are good.

Keys are got when somebody comes who needs it: nobody has them yet, they are no longer
fresh, or a token names one that is not among them. After an attempt there is a pause,
whatever tokens name: who guesses makes nobody work. Keys whose source fails are used
until they are stale.
"""

import math
from typing import final

from specs.limits.login import KEYS_STALE

__all__ = ["KeyCacheCore"]


@final
class KeyCacheCore:
    """Decides for one source of keys.

    Args:
        fresh: Seconds for which keys need not be looked at again.
        pause: Seconds between two attempts.
    """

    __slots__ = ("_fresh", "_got", "_pause", "_tried")

    def __init__(self, fresh: float, pause: float) -> None:
        self._fresh = fresh
        self._pause = pause
        self._got = -math.inf
        self._tried = -math.inf

    def is_due(self, now: float) -> bool:
        """Say whether the keys at hand are to be got anew."""
        return now - self._got >= self._fresh and self.may_be_tried(now)

    def may_be_tried(self, now: float) -> bool:
        """Say whether they may be got anew, for a token that names a key not at hand."""
        return now - self._tried >= self._pause

    def tried(self, now: float) -> None:
        """Note that an attempt begins."""
        self._tried = now

    def got(self, now: float) -> None:
        """Note that it brought keys."""
        self._got = now

    def are_usable(self, now: float) -> bool:
        """Say whether the keys at hand may still be used."""
        return now - self._got < KEYS_STALE
