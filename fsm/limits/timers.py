"""One deadline for many keys: which keys are due, without a look at all of them."""

import heapq
import math
from typing import Generic, TypeVar, final

K = TypeVar("K", str, int, tuple[str, str])


@final
class Alarms(Generic[K]):
    """The next due time of each key.

    A key whose time moves further away keeps its earlier time. The key is then due too early
    once, and the caller sets it anew.
    """

    __slots__ = ("_heap", "_when")

    def __init__(self) -> None:
        self._heap: list[tuple[float, K]] = []
        self._when: dict[K, float] = {}

    def set(self, key: K, when: float) -> None:
        """Have a key due, at the latest at a time.

        Args:
            key: The key; an earlier time that it already has stays.
            when: Seconds on the host's clock; infinity: the key is never due.
        """
        if when == math.inf:
            self._when.pop(key, None)
        elif when < self._when.get(key, math.inf):
            self._when[key] = when
            heapq.heappush(self._heap, (when, key))

    def deadline(self) -> float:
        """Return when the first key is due; infinity if none ever is."""
        heap = self._heap
        while heap and self._when.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def due(self, now: float) -> list[K]:
        """Take out the keys that are due, earliest first; set them anew."""
        keys: list[K] = []
        while self.deadline() <= now:
            keys.append(self.pop())
        return keys

    def pop(self) -> K:
        """Take out the key whose time is first, after `deadline` said that there is one."""
        _, key = heapq.heappop(self._heap)
        del self._when[key]
        return key
