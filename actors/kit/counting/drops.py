"""The drop ledger: messages that were not delivered, each with one reason (OBS-06)."""

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
    """A message that was not delivered, without its body.

    Attributes:
        wall_ns: Time of the drop, in nanoseconds since 1970 UTC, as in a trace.
        where: Part of the process that dropped it.
        reason: Why it was dropped.
        id: Id of the message.
        type: Verb of the message.
        from_: Address of its sender.
        to: Address of its receiver.
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
    """The messages that were not delivered so far.

    Attributes:
        counts: Number of messages since the start, by reason.
        last: The last `DROPS_KEPT` of them, the oldest first; what could not be read as a message
            is only counted.
    """

    counts: Mapping[DropReason, int]
    last: tuple[Drop, ...]

    @property
    def total(self) -> int:
        """Number of messages that were not delivered."""
        return sum(self.counts.values())


@final
class Drops:
    """Counts drops, and keeps the last of them.

    Attributes:
        counts: Number of drops, by reason.
    """

    def __init__(self) -> None:
        self._counts: Counter[DropReason] = Counter()
        self._last: deque[Drop] = deque(maxlen=DROPS_KEPT)
        self.counts = MappingProxyType(self._counts)

    def add(self, reason: DropReason, message: Message | None, where: str) -> None:
        """Record one drop.

        Args:
            reason: Why the message was dropped.
            message: The message; None: it could not be read as one.
            where: Part of the process that dropped it.
        """
        self._counts[reason] += 1
        if message is not None:
            ends = (message.id, message.type, message.from_, message.to)
            self._last.append(Drop(time.time_ns(), where, reason, *ends))

    def count(self, reason: DropReason, count: int) -> None:
        """Record drops of which only the number is known.

        Args:
            reason: Why the messages were dropped.
            count: Number of messages.
        """
        self._counts[reason] += count

    def ledger(self) -> DropLedger:
        """Return all counts and drops as they are now."""
        return DropLedger(MappingProxyType(dict(self._counts)), tuple(self._last))
