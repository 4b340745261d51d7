"""When a sandbox process is asked for a sign of life, and when it is ended for its silence.

A sandbox process has a small share of a busy processor. Its silence says nothing as long as it
has waited for a processor instead of running, nor if its host was held up, too (R11, S17).
"""

import math
from enum import Enum, auto
from typing import final

import attrs

from specs.limits.foreign_code import SANDBOX_STARVED, SANDBOX_TURN
from specs.limits.protocol import LATE, SANDBOX_BEAT, SANDBOX_SILENCE


@final
@attrs.frozen
class ProcessorTime:
    """What a process had of the processors since it was started.

    Attributes:
        ran: Seconds it ran.
        waited: Seconds it could have run, and other processes ran.
    """

    ran: float
    waited: float


IDLE = ProcessorTime(0.0, 0.0)
"""The processor time of what is no process, or of one that is not measured."""


@final
class Sign(Enum):
    """What is done when the time of `SignsOfLife.due` has come."""

    ASK = auto()
    END = auto()
    WAIT = auto()


@final
class SignsOfLife:
    """The signs of life of one sandbox, from when it is ready.

    Attributes:
        due: When to call `timed_out`; `math.inf` before it is ready.
        is_owed: True if it was asked for a sign and has not given it.
    """

    __slots__ = ("_asked", "_then", "due", "is_owed")

    def __init__(self) -> None:
        self.due = math.inf
        self.is_owed = False
        self._asked = 0.0
        self._then = IDLE

    def alive(self, now: float) -> None:
        """Take a sign of life."""
        self.is_owed = False
        self.due = now + SANDBOX_BEAT

    def silence(self, now: float) -> float:
        """Return the seconds for which a sign of life is owed."""
        return now - self._asked

    def timed_out(self, now: float, used: ProcessorTime) -> Sign:
        """Return what its host has to do.

        Args:
            now: The time.
            used: The processor time of the sandbox.
        """
        if not self.is_owed:
            self.is_owed = True
            self._asked, self._then = now, used
            self.due = now + SANDBOX_SILENCE
            return Sign.ASK
        if now - self.due > LATE:
            # Late itself: the sign of life may wait in the pipe, unread.
            self._asked, self._then = now, used
            self.due = now + SANDBOX_SILENCE
            return Sign.WAIT
        is_starved = (
            used.ran - self._then.ran < SANDBOX_TURN
            and used.waited - self._then.waited > SANDBOX_SILENCE / 2
        )
        if not is_starved or self.silence(now) >= SANDBOX_STARVED:
            return Sign.END
        self.due = min(now + SANDBOX_BEAT, self._asked + SANDBOX_STARVED)
        return Sign.WAIT
