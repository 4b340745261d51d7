"""No test sleeps on the real clock: how far the others come meanwhile is up to the machine."""

import linecache
import sys
from functools import wraps
from pathlib import Path

import trio
from trio.testing import MockClock

_TESTS = f"{Path(__file__).parents[1]}/"
_EXCUSES = "# real time: ", "ASYNC110"
"""A reason why it is right here, or a loop that looks again what has become of it."""


def guard_sleep() -> None:
    """Let `trio.sleep` fail where a test calls it on the real clock without a reason."""
    sleep = trio.sleep

    @wraps(sleep)
    def guarded(seconds: float):
        clock = trio.lowlevel.current_clock()
        if seconds and not (isinstance(clock, MockClock) and clock.rate == 0):
            code, number = sys._getframe(1).f_code, sys._getframe(1).f_lineno
            lines = "".join(linecache.getline(code.co_filename, number + n) for n in (-1, 0))
            if code.co_filename.startswith(_TESTS) and not any(one in lines for one in _EXCUSES):
                raise AssertionError(
                    f"{code.co_filename}:{number} sleeps on the real clock: wait for an event, use"
                    f" `autojump_clock`, or give the reason in a comment: {_EXCUSES[0]}..."
                )
        return sleep(seconds)

    trio.sleep = guarded
