"""The first seconds after a start of a node, while runtimes of its earlier process come back.

A node that was killed has forgotten sessions, addresses and records that it has not stored. It
knows that it was started again once a runtime names a session that it does not have. What it
cannot find then may be found in a moment, so it says 503, and not 404.
"""

from specs.limits.node import RETURN_TIME

RESTARTED = "the node has been started again, and a runtime may be on its way back"


class ReturnTime:
    """Decides whether what a node does not know may still come back.

    Args:
        now: When the node has started, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._until = now + RETURN_TIME
        self._was_restarted = False

    def miss(self) -> None:
        """Note that the session of an earlier process was asked for, or is not attached yet."""
        self._was_restarted = True

    def is_on(self, now: float) -> bool:
        """Return whether runtimes may be on their way back."""
        return self._was_restarted and now < self._until
