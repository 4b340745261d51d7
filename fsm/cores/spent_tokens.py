"""Which login tokens have been used, for as long as they could be used again (S4, S5).

A token is remembered until it is over. What is forgotten, because it is over or because
there is no room, leaves its end behind: a token that ends no later than any forgotten one
counts as used. So nothing comes back when a clock is set back, and the memory is bounded.
"""

import heapq
import math
from typing import final

from specs.limits_login import SPENT_TOKENS

__all__ = ["SpentTokens"]


@final
class SpentTokens:
    """The tokens used so far.

    Args:
        room: How many are remembered at most.
    """

    __slots__ = ("_floor", "_heap", "_known", "_room")

    def __init__(self, room: int = SPENT_TOKENS) -> None:
        self._room = room
        self._known: set[tuple[str, str]] = set()
        self._heap: list[tuple[float, tuple[str, str]]] = []
        self._floor = -math.inf

    def __len__(self) -> int:
        return len(self._known)

    def spend(self, issuer: str, name: str, end: float, now: float) -> bool:
        """Use a token up; False: it has been used, or may have been.

        Args:
            issuer: Who issued it.
            name: What the issuer calls it; its own for each token.
            end: When it is over.
            now: By the same clock as `end`.
        """
        while self._heap and self._heap[0][0] <= now:
            self._forget_first()
        key = issuer, name
        if end <= self._floor or key in self._known:
            return False
        if len(self._heap) >= self._room:
            self._forget_first()
        self._known.add(key)
        heapq.heappush(self._heap, (end, key))
        return True

    def _forget_first(self) -> None:
        end, key = heapq.heappop(self._heap)
        self._known.discard(key)
        self._floor = max(self._floor, end)
