"""The drop ledger: messages that were not delivered, each with its one reason (OBS-06)."""

import time
from collections import Counter, deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import final

import attrs

from specs.limits.bus import DROPS_KEPT
from specs.message import Message, MessageType
from specs.reply_code import DropReason

__all__ = ["Drop", "DropLedger", "Drops"]


@final
@attrs.frozen(slots=True)
class Drop:
    """A message that was not delivered; what it said is not kept.

    Attributes:
        wall_ns: When: nanoseconds since 1970, as in a trace.
        where: The part of the process that ended it.
    """

    wall_ns: int
    where: str
    reason: DropReason
    id: int
    type: MessageType
    from_: str
    to: str


@final
@attrs.frozen
class DropLedger:
    """What was not delivered until now.

    Attributes:
        counts: How many messages for each reason, since the start.
        last: The last of them, the oldest first; what could not be read as a message
            is counted only.
    """

    counts: Mapping[DropReason, int]
    last: tuple[Drop, ...]

    @property
    def total(self) -> int:
        """How many messages were not delivered."""
        return sum(self.counts.values())


@final
class Drops:
    """Counts drops, and remembers the last of them.

    Attributes:
        counts: How many there were for each reason.
    """

    def __init__(self) -> None:
        self._counts: Counter[DropReason] = Counter()
        self._last: deque[Drop] = deque(maxlen=DROPS_KEPT)
        self.counts = MappingProxyType(self._counts)

    def add(self, reason: DropReason, message: Message | None, where: str) -> None:
        """Record that a message ends here; None: it could not be read as one."""
        self._counts[reason] += 1
        if message is not None:
            ends = (message.id, message.type, message.from_, message.to)
            self._last.append(Drop(time.time_ns(), where, reason, *ends))

    def count(self, reason: DropReason, count: int) -> None:
        """Record that so many messages ended for a reason, of which nothing else is known."""
        self._counts[reason] += count

    def ledger(self) -> DropLedger:
        """Return all of it as it is now."""
        return DropLedger(MappingProxyType(dict(self._counts)), tuple(self._last))
