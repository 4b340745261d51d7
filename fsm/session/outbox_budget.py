"""Limits of a node's outgoing queues: memory of all queues, and unacknowledged messages of a peer.

An outbox is the queue of messages to one runtime. If all outboxes together exceed the memory limit,
the largest are emptied first (RELIABILITY L2).

In a `SendWindow` (CON-06), for peers that poll, messages are numbered from 1. A request for the
messages after a number acknowledges all messages up to that number; later messages can be requested
again. So no message is lost or doubled if an answer gets lost.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from fsm.session.node_session_io import OutboundMessage
from specs.errors import ProtoflyError

K = TypeVar("K")

_KEPT: Final = 7 / 8
"""Fraction of the budget that may stay in use after the largest outboxes were emptied."""


_TIGHT: Final = 1 / 2
"""Fraction of the budget above which links write smaller frames, since each frame is a copy."""

_COPIES: Final = 2
"""Number of copies of a waiting message's text in memory: the line, and the parsed values."""

_OBJECTS: Final = 1024
"""Number of bytes of the objects of a message, without its text."""

PLACE: Final = 32
"""Number of bytes that a message takes in each queue, in addition to the shared message."""


def weight(messages: int, size: int) -> int:
    """Return the approximate memory that waiting messages take, in bytes.

    Args:
        messages: Number of messages.
        size: Number of bytes of the encoded messages.
    """
    return _COPIES * size + _OBJECTS * messages


def _weight_of(entry: OutboundMessage) -> int:
    """Return the memory of a message, with its encodings in all dialects so far."""
    spelt = entry.spelt
    more = sum(map(len, spelt.values())) if spelt else 0
    return _COPIES * len(entry.line) + _OBJECTS + more


class OutboxBudget:
    """Counts the memory of all waiting messages in a node, and selects outboxes to empty.

    A message that waits in many queues exists once, and is counted once: from the first queue that
    adds the message until the last queue has removed it. Each queue adds a small amount, and each
    link adds the frames that it is writing, since these are copies.

    The largest outboxes are searched only when the budget is exceeded. Then an eighth of the budget
    is freed, so that searches are rare.

    Attributes:
        used: Number of bytes in use now.
    """

    __slots__ = ("_ample", "_enough", "_limit", "used")

    def __init__(self, limit: float) -> None:
        """Create an unused budget; `limit` is in bytes and may be infinite."""
        self._limit: Final = limit
        self._enough: Final = limit * _KEPT
        self._ample: Final = limit * _TIGHT
        self.used = 0

    @property
    def is_exceeded(self) -> bool:
        """True if the used memory is above the limit."""
        return self.used > self._limit

    @property
    def is_tight(self) -> bool:
        """True if memory is scarce, so that links should write small frames."""
        return self.used > self._ample

    def count(self, size: int) -> None:
        """Add a number of bytes, which may be negative, for other objects than messages."""
        self.used += size

    def hold(self, entry: OutboundMessage) -> None:
        """Count a message that was added to a queue."""
        if not entry.holders:
            entry.weight = _weight_of(entry)
            self.used += entry.weight
        entry.holders += 1
        self.used += PLACE

    def release(self, entry: OutboundMessage) -> None:
        """Uncount a message that was removed from a queue."""
        entry.holders -= 1
        self.used -= PLACE
        if not entry.holders:
            self.used -= entry.weight

    def reweigh(self, entry: OutboundMessage) -> None:
        """Update the counted memory of a message that may have been encoded in another dialect."""
        grown = _weight_of(entry) - entry.weight
        entry.weight += grown
        self.used += grown

    @staticmethod
    def share(entries: Iterable[OutboundMessage]) -> float:
        """Return the memory of a queue; shared messages count in equal parts for their queues."""
        return sum(entry.weight / entry.holders + PLACE for entry in entries)

    def largest_first(self, holders: Iterable[tuple[float, K]]) -> Iterator[K]:
        """Yield the links whose queues must be emptied, largest first, until memory suffices.

        The caller must empty each queue, and update this budget, before it takes the next.

        Args:
            holders: The number of bytes of each link's queue, and the link.
        """
        heap = [(-size, number, key) for number, (size, key) in enumerate(holders) if size]
        heapq.heapify(heap)
        while heap and self.used > self._enough:
            yield heapq.heappop(heap)[2]


# ---- messages that one peer has not acknowledged


class CursorError(ProtoflyError):
    """A peer requests messages that it has acknowledged already, or that were never sent.

    Attributes:
        after: The number in the request.
    """

    def __init__(self, after: int, first: int, last: int) -> None:
        super().__init__(f"nothing is kept after {after}; ask after {first} to {last}")
        self.after = after


class SendWindow:
    """The messages to one peer that it has not acknowledged yet, so that they can be repeated.

    Attributes:
        acknowledged: Number of the last message that the peer has acknowledged.
    """

    __slots__ = ("_lines", "acknowledged")

    def __init__(self) -> None:
        self.acknowledged = 0
        self._lines: list[bytes] = []

    def __len__(self) -> int:
        """Return the number of messages that the peer has not acknowledged yet."""
        return len(self._lines)

    @property
    def last(self) -> int:
        """The number of the last message that was added to the window."""
        return self.acknowledged + len(self._lines)

    def put(self, lines: Iterable[bytes]) -> None:
        """Add messages to the window; the caller must limit their number."""
        self._lines += lines

    def acknowledge(self, after: int) -> None:
        """Forget the messages up to number `after`, which the peer has received. Idempotent.

        Raises:
            CursorError: No message with this number was sent, or later ones were acknowledged.
        """
        if not self.acknowledged <= after <= self.last:
            raise CursorError(after, self.acknowledged, self.last)
        del self._lines[: after - self.acknowledged]
        self.acknowledged = after

    def take(self) -> bytes:
        """Remove and return the oldest message; its number passes on to the next message."""
        return self._lines.pop(0)

    def after(self, number: int) -> Sequence[bytes]:
        """Return the unacknowledged messages after a number, in order."""
        return self._lines[max(0, number - self.acknowledged) :]
