"""Order of one sender's messages where a link leaves the way all others take (I-B7, P2P-25).

What is said to many goes by the node, and by a link to those who are reached by it. When
such a link takes over, what went by the node a moment ago may still be on its way: so what
the link is given waits until it has arrived, at most `SWITCH_TIMEOUT` since it went. What
goes by the node after a link has been given up waits as long (`pair_path`).
"""

import math
from collections import deque
from enum import Enum, auto
from typing import final

from specs.limits_sync import BRANCH_HELD
from specs.message import Message

__all__ = ["BranchCore", "Taken"]


@final
class Taken(Enum):
    """What became of a message for a branch."""

    GOES = auto()
    """It is to be sent now."""

    WAITS = auto()
    """It is sent later, by `due`."""

    FULL = auto()
    """There is no room for it: it is lost."""


@final
class BranchCore:
    """What waits before one branch.

    Args:
        until: When what went the other way has arrived.

    Attributes:
        last: Id of the youngest message that was taken, and when; None: there was none.
    """

    def __init__(self, until: float) -> None:
        self.last: tuple[int, float] | None = None
        self._until = until
        self._held: deque[Message] = deque()

    def take(self, message: Message, now: float) -> Taken:
        """Take a message, in order."""
        if len(self._held) >= BRANCH_HELD:
            return Taken.FULL
        self.last = message.id, now
        if now >= self._until and not self._held:
            return Taken.GOES
        self._held.append(message)
        return Taken.WAITS

    def deadline(self) -> float:
        """Return when to ask for what is `due`."""
        return self._until if self._held else math.inf

    def due(self, now: float) -> tuple[Message, ...]:
        """Return what waits no longer, in order."""
        if now < self._until:
            return ()
        held, self._held = tuple(self._held), deque()
        return held
