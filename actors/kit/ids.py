"""Message ids, strictly increasing per sender (MSG-03), and the wall clock of a program."""

import time
from typing import final

import trio


@final
class IdSource:
    """Generator of message ids, which increase for each sender.

    Args:
        start: All ids are greater. A process passes its wall clock, so that no id repeats after
            a restart.
    """

    __slots__ = ("_last", "_start")

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self._last: dict[str, int] = {}

    def next(self, from_: str) -> int:
        """Return the next message id of a sender."""
        following = self._last.get(from_, self._start) + 1
        self._last[from_] = following
        return following

    def last(self, from_: str) -> int:
        """Return the last message id of a sender."""
        return self._last.get(from_, self._start)

    def go_on(self, from_: str, last: int) -> None:
        """Let the next id of a sender be greater than its last id in another process.

        Args:
            from_: Address of the sender.
            last: Highest id of the sender elsewhere.
        """
        self._last[from_] = max(last, self.last(from_))

    def forget(self, *senders: str) -> None:
        """Remove the last ids of senders that have left; unknown senders are ignored."""
        for sender in senders:
            self._last.pop(sender, None)

    def __len__(self) -> int:
        """Number of senders whose last id is known."""
        return len(self._last)


def fresh_ids() -> IdSource:
    """Return a generator of message ids that were never used, even before a program restart."""
    return IdSource(time.time_ns() // 1000)


def wall_clock() -> float:
    """Return the seconds since the epoch."""
    return time.time_ns() / 1e9


def clock_offset() -> float:
    """Return the seconds from the Trio clock to the epoch; called while Trio runs."""
    return wall_clock() - trio.current_time()
