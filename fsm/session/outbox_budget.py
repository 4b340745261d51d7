"""Limits of outboxes: the memory of all in a node, and the unread messages of one peer.

When all outboxes together are full, the largest gives way first (RELIABILITY L2).

In a send window (CON-06) messages are numbered from 1. A request for the messages after a number
acknowledges all up to that number; the others can be requested again. So an answer that is cut on
its way loses and doubles no message.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from fsm.session.node_session_io import OutboundMessage
from specs.errors import ProtoflyError

K = TypeVar("K")

_KEPT: Final = 7 / 8
"""Fraction of the budget that stays in use after it was exceeded."""


_TIGHT: Final = 1 / 2
"""Fraction of the budget from which on links write smaller frames, since each is a copy."""

_COPIES: Final = 2
"""Number of copies of the text of a waiting message: its line, and the parsed values."""

_OBJECTS: Final = 1024
"""Number of bytes of the objects of a message, without its text."""

PLACE: Final = 32
"""Number of bytes that a message takes in each queue, however many queues share it."""


def weight(messages: int, size: int) -> int:
    """Return the approximate memory that messages take, in bytes.

    Args:
        messages: Number of messages.
        size: Number of bytes of their lines.
    """
    return _COPIES * size + _OBJECTS * messages


def _weight_of(entry: OutboundMessage) -> int:
    """Return the memory of an entry, with the lines in all dialects made so far."""
    spelt = entry.spelt
    more = sum(map(len, spelt.values())) if spelt else 0
    return _COPIES * len(entry.line) + _OBJECTS + more


class OutboxBudget:
    """The memory of all waiting messages in a node, in bytes.

    A message that waits in many queues exists once, and counts once: from the first queue that
    takes it in until the last one has released it. Each queue counts its own entry, and each link
    counts the frames that it is writing, which are copies of its own.

    Counting is a few additions. Only when the budget is exceeded are the largest holders searched;
    then an eighth of the budget is freed, so that the next search comes no sooner than after as
    many more bytes.

    Attributes:
        used: Number of bytes in use now.
    """

    __slots__ = ("_ample", "_enough", "_limit", "used")

    def __init__(self, limit: float) -> None:
        """Begin with nothing in use; `limit` is in bytes and may be infinite."""
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
        """True if frames should be small, so that no link must give way for them."""
        return self.used > self._ample

    def count(self, size: int) -> None:
        """Note a change, in bytes, of memory that is held by other objects than entries."""
        self.used += size

    def hold(self, entry: OutboundMessage) -> None:
        """Note that one more queue has an entry."""
        if not entry.holders:
            entry.weight = _weight_of(entry)
            self.used += entry.weight
        entry.holders += 1
        self.used += PLACE

    def release(self, entry: OutboundMessage) -> None:
        """Note that one of the queues has released an entry."""
        entry.holders -= 1
        self.used -= PLACE
        if not entry.holders:
            self.used -= entry.weight

    def reweigh(self, entry: OutboundMessage) -> None:
        """Count an entry again that may have been written in one more dialect."""
        grown = _weight_of(entry) - entry.weight
        entry.weight += grown
        self.used += grown

    @staticmethod
    def share(entries: Iterable[OutboundMessage]) -> float:
        """Return the memory that one queue accounts for: of shared entries, its share."""
        return sum(entry.weight / entry.holders + PLACE for entry in entries)

    def largest_first(self, holders: Iterable[tuple[float, K]]) -> Iterator[K]:
        """Yield the links that must give way, the largest holder first, until enough is free.

        Args:
            holders: The bytes that each link holds; they must be given up, and counted, before the
                next link is requested. Of equal holders the first goes first.
        """
        heap = [(-size, number, key) for number, (size, key) in enumerate(holders) if size]
        heapq.heapify(heap)
        while heap and self.used > self._enough:
            yield heapq.heappop(heap)[2]


# ---- messages that one peer has not read


class CursorError(ProtoflyError):
    """The peer requests messages that were acknowledged already, or never sent.

    Attributes:
        after: The number in its request.
    """

    def __init__(self, after: int, first: int, last: int) -> None:
        super().__init__(f"nothing is kept after {after}; ask after {first} to {last}")
        self.after = after


class SendWindow:
    """The messages of one link that are not acknowledged yet.

    Attributes:
        acknowledged: Number of the last message that the peer has read.
    """

    __slots__ = ("_lines", "acknowledged")

    def __init__(self) -> None:
        self.acknowledged = 0
        self._lines: list[bytes] = []

    def __len__(self) -> int:
        """Return the number of messages without an acknowledgement."""
        return len(self._lines)

    @property
    def last(self) -> int:
        """The number of the last message sent."""
        return self.acknowledged + len(self._lines)

    def put(self, lines: Iterable[bytes]) -> None:
        """Send messages; the caller must limit their number."""
        self._lines += lines

    def acknowledge(self, after: int) -> None:
        """Forget the messages that the peer has read. Idempotent.

        Raises:
            CursorError: It cannot have read that, or has asked for later ones before.
        """
        if not self.acknowledged <= after <= self.last:
            raise CursorError(after, self.acknowledged, self.last)
        del self._lines[: after - self.acknowledged]
        self.acknowledged = after

    def take(self) -> bytes:
        """Take out the oldest message without its number, which the next message gets."""
        return self._lines.pop(0)

    def after(self, number: int) -> Sequence[bytes]:
        """Return the messages behind a number that are not acknowledged, in order."""
        return self._lines[max(0, number - self.acknowledged) :]
