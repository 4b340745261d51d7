"""How long to pause between attempts."""

from typing import final

from specs.limits.protocol import RECONNECT_BASE, RECONNECT_TRIES

__all__ = ["Backoff"]


@final
class Backoff:
    """Counts attempts at one thing: the first is at once, then pauses double.

    Attributes:
        tries: Attempts since the last success.
    """

    def __init__(self) -> None:
        self.tries = 0
        self._relapses = 0

    @property
    def is_over(self) -> bool:
        """Whether all attempts that were worth waiting for have been made."""
        return self.tries >= RECONNECT_TRIES

    def attempt(self) -> None:
        """Count an attempt."""
        self.tries += 1

    def succeed(self) -> None:
        """Begin anew."""
        self.tries = 0

    def lost(self, lasted: float) -> None:
        """Note that what was had is lost again.

        Once that is the weather; but what never lasts longer than a first pause is no
        success, and without this it would be tried again and again at once.

        Args:
            lasted: Seconds it was had.
        """
        if lasted >= RECONNECT_BASE:
            self._relapses = 0
            return
        self.tries = self._relapses
        self._relapses += 1

    def pause(self, jitter: float) -> float:
        """Return the seconds before the next attempt.

        Args:
            jitter: Between 0 and 1: the pause is half to whole, so that many who
                lost the same peer do not come back together.
        """
        if self.tries == 0:
            return 0.0
        doublings = min(self.tries, RECONNECT_TRIES) - 1
        return RECONNECT_BASE * 2.0**doublings * (0.5 + jitter / 2)
