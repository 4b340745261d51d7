"""How long a process that serves lives: from ready until it is told to go."""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar, final

import trio

from actors.commands.exit_code import ExitCode
from specs.limits import DRAIN_TIMEOUT

__all__ = ["serve"]

T = TypeVar("T")

_STOP: Final = (signal.SIGINT, signal.SIGTERM)

_EXIT_SHARE: Final = 0.8
"""Part of the drain that is the service's; the rest is for the interpreter's exit (ours)."""


@final
class _Life:
    """Whether the service is ready, and whether it has been told to go."""

    def __init__(self) -> None:
        self.is_ready = False
        self.told = trio.Event()

    async def heed(self, signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
        """Let the first signal drain, in bounded time, and the second end at once."""
        async for _ in signals:
            if self.told.is_set() or not self.is_ready:
                scope.cancel()
            self.told.set()
            scope.deadline = min(scope.deadline, trio.current_time() + DRAIN_TIMEOUT * _EXIT_SHARE)


async def serve(
    service: Callable[[], AbstractAsyncContextManager[T]], ready: Callable[[T], None]
) -> ExitCode:
    """Open a service, say that it is ready, and close it when a signal comes.

    SIGTERM or SIGINT drains; a second one, or one before the service is ready, ends
    at once.
    """
    life = _Life()
    with trio.open_signal_receiver(*_STOP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(life.heed, signals, nursery.cancel_scope)
            async with service() as running:
                ready(running)
                life.is_ready = True
                await life.told.wait()
            nursery.cancel_scope.cancel()
    return ExitCode.OK if life.is_ready else ExitCode.INTERRUPTED
