"""The life of a process that serves: from ready until a signal stops it.

The end of a process that does not end by itself: after this time, hanging threads are abandoned.

How often a process that serves looks for garbage that refers to itself.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

import trio

from actors.cli.group import ExitCode
from actors.kit.log import get_logger, prepare_log
from specs.jsonvalue import one_line
from specs.limits.protocol import DRAIN_TIMEOUT

_YOUNG: Final = 2000
"""New objects after which the newest are looked at: a few milliseconds (Python: 700)."""

_MIDDLE: Final = 10
"""Of these looks, after which what they left is looked at too (Python's own)."""

_OLD: Final = 1000
"""Of these, after which everything is (Python: 10).

A look at everything stops the process: 0.25 s with a thousand sessions, more than a
second with ten thousand, and some times that if others want its core: most of the time for which
the lease of a node lasts. What comes and goes with traffic and connections leaves no such
garbage, and is freed at once; so it is enough to look after twenty million objects that stayed,
which are 50,000 sessions that came.
"""


def _end_process(code: ExitCode, why: str) -> None:
    # Past all buffers and locks: their holder may be what hangs.
    os.write(2, f"protofly: {one_line(why)}\n".encode())
    os._exit(code)


T = TypeVar("T")

_STOP: Final = (signal.SIGINT, signal.SIGTERM)

_log = get_logger("actors.commands")

_EXIT_SHARE: Final = 0.8
"""Part of the drain that is the service's; the rest is for the interpreter's exit (ours)."""

_LAST_SHARE: Final = 0.96
"""Part of the drain after which the process is ended, also if a part hangs (ours)."""

_READ: Final = 64
"""Bytes read from stdin at once; nothing is expected (ours)."""

_AT_ONCE: Final = 0.3
"""Seconds that a process has to end by itself after a second signal (ours)."""


class _Life:
    """State of a service: ready, stopping, or ended at once.

    A timer ends the process when its time is over. Cancelling does not free a task that waits for
    a thread, and a shield outlasts it; a disk that hangs must not keep a process that must end.
    The timer is a thread of its own, so that not even a loop that is stuck keeps it.
    """

    def __init__(self) -> None:
        self.is_ready = False
        self.stop_requested = trio.Event()
        self._is_hurried = False
        self._timer: threading.Timer | None = None

    @property
    def code(self) -> ExitCode:
        """Exit status of the process."""
        return ExitCode.OK if self.is_ready and not self._is_hurried else ExitCode.INTERRUPTED

    async def obey(self, signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
        """Let the first signal drain, in bounded time, and the second end at once."""
        async for number in signals:
            name = signal.Signals(number).name
            if self.stop_requested.is_set() or not self.is_ready:
                _log.warning("ended at once", signal=name)
                self._is_hurried = True
                why = "ended at once by a second signal"
                self._start_timer(_AT_ONCE, ExitCode.INTERRUPTED, why)
                scope.cancel()
            else:
                _log.info("drain begun", signal=name, seconds=DRAIN_TIMEOUT)
                why = f"the drain took longer than {DRAIN_TIMEOUT:g} s; what was still open is lost"
                self._start_timer(DRAIN_TIMEOUT * _LAST_SHARE, ExitCode.FAILED, why)
            self.stop_requested.set()
            scope.deadline = min(scope.deadline, trio.current_time() + DRAIN_TIMEOUT * _EXIT_SHARE)

    def _start_timer(self, seconds: float, code: ExitCode, why: str) -> None:
        self.stop_timer()
        self._timer = threading.Timer(seconds, _end_process, (code, why))
        self._timer.daemon = True
        self._timer.start()

    def stop_timer(self) -> None:
        """Let the process live: it ends by itself."""
        if self._timer is not None:
            self._timer.cancel()


async def serve(
    service: Callable[[], AbstractAsyncContextManager[T]], ready: Callable[[T], None]
) -> ExitCode:
    """Open a service, say that it is ready, and close it when a signal comes.

    SIGTERM or SIGINT drains; a second one, or one before the service is ready, ends
    at once, as an interruption. A drain that hangs is ended in the end, as a failure.

    Args:
        service: Makes the service's context.
        ready: Is called with the opened service.
    """
    life = _Life()
    try:
        with trio.open_signal_receiver(*_STOP) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(life.obey, signals, nursery.cancel_scope)
                gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
                prepare_log()
                async with service() as running:
                    gc.freeze()  # what is there when it is ready stays, and is not looked at again
                    ready(running)
                    _log.info("ready")
                    life.is_ready = True
                    await life.stop_requested.wait()
                    begun = trio.current_time()
                _log.info("drain done", seconds=round(trio.current_time() - begun, 3))
                nursery.cancel_scope.cancel()
    finally:
        life.stop_timer()
    return life.code


async def until_parent_ends(work: Callable[[], Awaitable[ExitCode]]) -> ExitCode:
    """Do some work; the end of stdin is a SIGTERM to this process.

    The other end of stdin is a pipe that the parent holds: when the parent is gone,
    killed or not, the pipe has come to its end.

    If cancelled, only the work ends.

    Args:
        work: The work of the process.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch_parent)
        code = await work()
        nursery.cancel_scope.cancel()
    return code


async def _watch_parent() -> None:
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        while await stream.receive_some(_READ):
            pass
    signal.raise_signal(signal.SIGTERM)
