"""What programs take from the time of day: ids that are new, and when things expire."""

import time

import trio

from actors.kit.ids import IdSource

__all__ = ["clock_offset", "fresh_ids"]


def fresh_ids() -> IdSource:
    """Return ids of which none came before, not even before a restart of the program."""
    return IdSource(time.time_ns() // 1000)


def clock_offset() -> float:
    """Return the seconds from the Trio clock to the epoch; called while Trio runs."""
    return time.time_ns() / 1e9 - trio.current_time()
