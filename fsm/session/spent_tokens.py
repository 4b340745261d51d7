"""Which login tokens have been used, for as long as they could be used again (S4, S5).

A token is remembered until it is over. What is forgotten, because it is over or because
there is no room, leaves its end behind: a token that ends no later than any forgotten one
counts as used. So nothing comes back when a clock is set back, and the memory is bounded.
"""

import hashlib
import heapq
import math
from typing import final

import attrs

from specs.limits.login import SPENT_TOKENS

__all__ = ["SpentTokens", "Use"]


@final
@attrs.frozen(slots=True)
class Use:
    """One token that has been used.

    Attributes:
        digest: Of who issued it and what the issuer calls it (SHA-256).
        end: When it is over, seconds since the epoch.
    """

    digest: bytes
    end: float


@final
class SpentTokens:
    """The tokens used so far.

    Args:
        room: How many are remembered at most.
        floor: The greatest end of those that were forgotten in an earlier life.
    """

    __slots__ = ("_floor", "_heap", "_known", "_room")

    def __init__(self, room: int = SPENT_TOKENS, floor: float = -math.inf) -> None:
        self._room = room
        self._known: set[bytes] = set()
        self._heap: list[tuple[float, bytes]] = []
        self._floor = floor

    def __len__(self) -> int:
        return len(self._known)

    @property
    def floor(self) -> float:
        """The greatest end of those that are forgotten: none that ends by then is taken."""
        return self._floor

    def spend(self, issuer: str, name: str, end: float, now: float) -> Use | None:
        """Use a token up; None: it has been used, or may have been.

        Args:
            issuer: Who issued it.
            name: What the issuer calls it; its own for each token.
            end: When it is over.
            now: By the same clock as `end`.
        """
        while self._heap and self._heap[0][0] <= now:
            self._forget_first()
        use = Use(_digest(issuer, name), end)
        if end <= self._floor or use.digest in self._known:
            return None
        if len(self._heap) >= self._room:
            self._forget_first()
        self._known.add(use.digest)
        heapq.heappush(self._heap, (use.end, use.digest))
        return use

    def _forget_first(self) -> None:
        end, digest = heapq.heappop(self._heap)
        self._known.discard(digest)
        self._floor = max(self._floor, end)


def _digest(issuer: str, name: str) -> bytes:
    """Return what stands for a token; no two pairs of texts are written alike."""
    return hashlib.sha256(f"{len(issuer)} {issuer} {name}".encode()).digest()
