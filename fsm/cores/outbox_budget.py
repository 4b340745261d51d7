"""What all outboxes of a node may hold together, and who gives way first (RELIABILITY L2)."""

import heapq
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar, final

__all__ = ["OutboxBudget", "weight"]

K = TypeVar("K")

_KEPT: Final = 7 / 8
"""Part of the budget that is left in use when it was exceeded."""


_COPIES: Final = 3
"""How often the text of a waiting message is there: as a line, as it was read, as a frame."""

_OBJECTS: Final = 1024
"""Bytes of the objects that a message is made of, its text left out."""


def weight(messages: int, size: int) -> int:
    """Return about how much memory so many messages take, whose lines have `size` bytes."""
    return _COPIES * size + _OBJECTS * messages


@final
class OutboxBudget:
    """The memory that what waits in a node takes, in bytes.

    Counting is one addition. Only when there is too much does anybody look who holds
    how much; then an eighth of the budget is freed, so that the next look comes no
    sooner than after so many more bytes.

    Attributes:
        used: Bytes that what waits now takes.
    """

    __slots__ = ("_enough", "_limit", "used")

    def __init__(self, limit: float) -> None:
        """Begin with nothing; `limit`: in bytes, may be infinite."""
        self._limit: Final = limit
        self._enough: Final = limit * _KEPT
        self.used = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether somebody has to give way."""
        return self.used > self._limit

    def count(self, size: int) -> None:
        """Note that so many bytes more wait; less if negative."""
        self.used += size

    def largest_first(self, holders: Iterable[tuple[int, K]]) -> Iterator[K]:
        """Name who has to give way, the one who holds most first, until enough is free.

        Args:
            holders: How many bytes each holds; what they hold is given up, and
                counted, before the next one is asked for.
        """
        heap = [(-size, number, key) for number, (size, key) in enumerate(holders) if size]
        heapq.heapify(heap)
        while heap and self.used > self._enough:
            yield heapq.heappop(heap)[2]
