"""Message ids, strictly increasing per sender (MSG-03), and the wall clock of a program."""

import time
from typing import final

import trio


@final
class IdSource:
    """The message ids of a process.

    Args:
        start: All ids are greater. A process passes its wall clock, so that no id repeats after
            a restart.
    """

    __slots__ = ("_last", "_start")

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self._last: dict[str, int] = {}

    def next(self, from_: str) -> int:
        """Return the next id of this sender."""
        following = self._last.get(from_, self._start) + 1
        self._last[from_] = following
        return following

    def last(self, from_: str) -> int:
        """Return the last id of this sender."""
        return self._last.get(from_, self._start)

    def go_on(self, from_: str, last: int) -> None:
        """Continue above the last id that a sender had elsewhere.

        Args:
            from_: Address of the sender.
            last: Highest id of the sender elsewhere.
        """
        self._last[from_] = max(last, self.last(from_))

    def forget(self, *senders: str) -> None:
        """Forget a sender that has left; an unknown one is accepted."""
        for sender in senders:
            self._last.pop(sender, None)

    def __len__(self) -> int:
        """Number of senders whose last id is known."""
        return len(self._last)


def fresh_ids() -> IdSource:
    """Return a source of ids that were never used, also not before a restart of the program."""
    return IdSource(time.time_ns() // 1000)


def wall_clock() -> float:
    """Return the seconds since the epoch."""
    return time.time_ns() / 1e9


def clock_offset() -> float:
    """Return the seconds from the Trio clock to the epoch; called while Trio runs."""
    return wall_clock() - trio.current_time()
