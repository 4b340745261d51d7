"""When to ask a silent peer whether it is there, and when to take it for gone (RELIABILITY R8)."""

from enum import Enum, auto, unique
from typing import final

from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT

__all__ = ["Beat", "Heartbeat"]


@final
@unique
class Beat(Enum):
    """What is to be done with a peer."""

    WAIT = auto()
    PING = auto()
    GIVE_UP = auto()


@final
class Heartbeat:
    """One peer, looked at when its deadline has passed."""

    __slots__ = ("_pinged_at",)

    def __init__(self) -> None:
        self._pinged_at: float | None = None

    def deadline(self, heard_at: float) -> float:
        """Return when to look at the peer; `heard_at`: when it last gave a sign of life."""
        if self._pinged_at is None or heard_at >= self._pinged_at:
            return heard_at + PING_PERIOD
        return self._pinged_at + PONG_TIMEOUT

    def look(self, heard_at: float, now: float) -> Beat:
        """Decide whether to ping or to give up.

        Args:
            heard_at: Time of the last frame of the peer.
            now: Seconds on the host's clock.
        """
        if now < self.deadline(heard_at):
            return Beat.WAIT
        if self._pinged_at is None or heard_at >= self._pinged_at:
            self._pinged_at = now
            return Beat.PING
        return Beat.GIVE_UP
