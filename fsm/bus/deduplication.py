"""The deduplication window: messages that two paths, or a retry, bring twice (I-P22, MSG-07)."""

from collections import OrderedDict
from typing import Final, TypeAlias, final

from specs.limits.protocol import DEDUP_SECONDS, DEDUP_WINDOW
from specs.message import Message

__all__ = ["DeduplicationWindow"]

_SENDERS: Final = 16_384
"""Senders whose instances are remembered; the one silent for longest goes first."""

_Instance: TypeAlias = tuple[str, int, int, str, int]
"""To, id; of answers code, source and, of provisional ones, which it is."""


def _instance(message: Message) -> _Instance:
    if not message.is_response:
        return message.to, message.id, 0, "", 0
    # Several may answer from one address (C-81), and one may say more than once that it will.
    source, nth = message.body.get("source"), message.body.get("sequence")
    by = source if isinstance(source, str) else ""
    sequence = nth if isinstance(nth, int) and not message.is_final else 0
    return message.to, message.id, message.code, by, sequence


@final
class DeduplicationWindow:
    """The last message instances of each sender (I-P22).

    Remembers `DEDUP_WINDOW` instances per sender, for `DEDUP_SECONDS`, of at
    most `_SENDERS` senders.
    """

    def __init__(self) -> None:
        self._senders: OrderedDict[str, OrderedDict[_Instance, float]] = OrderedDict()

    def is_new(self, message: Message, now: float) -> bool:
        """Return whether this message instance is new, and remember it.

        Args:
            message: The message as it came.
            now: Seconds on the host's clock.
        """
        instance = _instance(message)
        window = self._senders.get(message.from_)
        if window is None:
            self._forget_silent(now)
            if len(self._senders) >= _SENDERS:
                self._senders.popitem(last=False)
            window = self._senders[message.from_] = OrderedDict()
        else:
            self._senders.move_to_end(message.from_)
        at = window.get(instance)
        if at is not None and now - at <= DEDUP_SECONDS:
            return False
        window[instance] = now
        if len(window) > DEDUP_WINDOW:
            window.popitem(last=False)
        return True

    def _forget_silent(self, now: float) -> None:
        while self._senders:
            window = next(iter(self._senders.values()))
            if now - next(reversed(window.values())) <= DEDUP_SECONDS:
                return
            self._senders.popitem(last=False)
