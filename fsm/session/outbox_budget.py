"""Bounds of outboxes: what all of a node may hold, and what one peer has not read yet.

When all outboxes together are full, the largest gives way first (RELIABILITY L2).

In a send window (CON-06) messages are numbered from 1. Asking for what comes after a number
acknowledges all up to it; other messages can be asked for again. So an answer that is cut on
its way costs nothing and doubles nothing.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from fsm.session.node_session_io import OutboundMessage
from specs.errors import ProtoflyError

K = TypeVar("K")

_KEPT: Final = 7 / 8
"""Part of the budget that is left in use when it was exceeded."""


_TIGHT: Final = 1 / 2
"""Part of the budget from which on links make smaller frames: each is a copy."""

_COPIES: Final = 2
"""Copies of the text of a waiting message: as a line, and as it was read."""

_OBJECTS: Final = 1024
"""Bytes of the objects that a message is made of, its text left out."""

PLACE: Final = 32
"""Bytes that a message takes in each queue it waits in, however many share it."""


def weight(messages: int, size: int) -> int:
    """Return the memory that messages take, about, in bytes.

    Args:
        messages: Number of messages.
        size: Bytes of their lines.
    """
    return _COPIES * size + _OBJECTS * messages


def _weight_of(entry: OutboundMessage) -> int:
    """Return how much memory an entry takes, in all spellings made of it so far."""
    spelt = entry.spelt
    more = sum(map(len, spelt.values())) if spelt else 0
    return _COPIES * len(entry.line) + _OBJECTS + more


class OutboxBudget:
    """The memory that what waits in a node takes, in bytes.

    A message that waits in many queues is there once, and counts once: from the first
    queue that takes it in until the last one has let it go. Each queue adds its place, and
    each link the frames that it is writing, which are copies of its own.

    Counting is a few additions. Only when there is too much are the largest holders searched
    how much; then an eighth of the budget is freed, so that the next look comes no
    sooner than after so many more bytes.

    Attributes:
        used: Bytes that what waits now takes.
    """

    __slots__ = ("_ample", "_enough", "_limit", "used")

    def __init__(self, limit: float) -> None:
        """Begin with nothing; `limit`: in bytes, may be infinite."""
        self._limit: Final = limit
        self._enough: Final = limit * _KEPT
        self._ample: Final = limit * _TIGHT
        self.used = 0

    @property
    def is_exceeded(self) -> bool:
        """True if the budget is exceeded."""
        return self.used > self._limit

    @property
    def is_tight(self) -> bool:
        """True if frames should be small, so that no link has to give way for them."""
        return self.used > self._ample

    def count(self, size: int) -> None:
        """Note that so many bytes more are held which are no entries; less if negative."""
        self.used += size

    def hold(self, entry: OutboundMessage) -> None:
        """Note that one more queue has an entry."""
        if not entry.holders:
            entry.weight = _weight_of(entry)
            self.used += entry.weight
        entry.holders += 1
        self.used += PLACE

    def release(self, entry: OutboundMessage) -> None:
        """Note that one of the queues has an entry no longer."""
        entry.holders -= 1
        self.used -= PLACE
        if not entry.holders:
            self.used -= entry.weight

    def reweigh(self, entry: OutboundMessage) -> None:
        """Note that an entry which is held may have been spelt in one more dialect."""
        grown = _weight_of(entry) - entry.weight
        entry.weight += grown
        self.used += grown

    @staticmethod
    def share(entries: Iterable[OutboundMessage]) -> float:
        """Return how much memory one queue answers for: of what it shares, its part."""
        return sum(entry.weight / entry.holders + PLACE for entry in entries)

    def largest_first(self, holders: Iterable[tuple[float, K]]) -> Iterator[K]:
        """Name the links that have to give way, the largest holder first, until enough is free.

        Args:
            holders: How many bytes each holds; what they hold is given up, and counted,
                before the next one is asked for. Of equals the first goes first.
        """
        heap = [(-size, number, key) for number, (size, key) in enumerate(holders) if size]
        heapq.heapify(heap)
        while heap and self.used > self._enough:
            yield heapq.heappop(heap)[2]


# ---- what one peer has not read


class CursorError(ProtoflyError):
    """The peer asks for what is not there: it was acknowledged, or never sent.

    Attributes:
        after: What it asked for.
    """

    def __init__(self, after: int, first: int, last: int) -> None:
        super().__init__(f"nothing is kept after {after}; ask after {first} to {last}")
        self.after = after


class SendWindow:
    """The messages of one link that are not acknowledged yet.

    Attributes:
        acknowledged: Up to which number the peer has read.
    """

    __slots__ = ("_lines", "acknowledged")

    def __init__(self) -> None:
        self.acknowledged = 0
        self._lines: list[bytes] = []

    def __len__(self) -> int:
        """The number of messages without an acknowledgement."""
        return len(self._lines)

    @property
    def last(self) -> int:
        """The number of the last message sent."""
        return self.acknowledged + len(self._lines)

    def put(self, lines: Iterable[bytes]) -> None:
        """Send messages; the caller sees to it that they are not too many."""
        self._lines += lines

    def acknowledge(self, after: int) -> None:
        """Forget what the peer has read; repeated is fine.

        Raises:
            CursorError: It cannot have read that, or has asked for later ones before.
        """
        if not self.acknowledged <= after <= self.last:
            raise CursorError(after, self.acknowledged, self.last)
        del self._lines[: after - self.acknowledged]
        self.acknowledged = after

    def take(self) -> bytes:
        """Take out the oldest message; it has no number, the next one has its place."""
        return self._lines.pop(0)

    def after(self, number: int) -> Sequence[bytes]:
        """Return the messages behind a number that are not acknowledged, in order."""
        return self._lines[max(0, number - self.acknowledged) :]
