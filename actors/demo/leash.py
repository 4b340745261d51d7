"""Children that end when whoever started them is gone, however that happened."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from actors.cli.command_error import ExitCode

__all__ = ["leashed", "until_told"]

_READ: Final = 64
"""Bytes read from stdin at once; nothing is expected (ours)."""


async def leashed(work: Callable[[], Awaitable[ExitCode]]) -> ExitCode:
    """Do some work; the end of stdin is a SIGTERM to this process.

    The other end of stdin is a pipe that the parent holds: when the parent is gone,
    killed or not, the pipe has come to its end.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch_parent)
        code = await work()
        nursery.cancel_scope.cancel()
    return code


async def until_told(work: Callable[[], Awaitable[None]]) -> ExitCode:
    """Do some work to its end, or until SIGTERM cancels it."""
    is_told = False
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def heed() -> None:
                nonlocal is_told
                async for _ in signals:
                    is_told = True
                    nursery.cancel_scope.cancel()

            nursery.start_soon(heed)
            await work()
            nursery.cancel_scope.cancel()
    return ExitCode.INTERRUPTED if is_told else ExitCode.OK


async def _watch_parent() -> None:
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        while await stream.receive_some(_READ):
            pass
    signal.raise_signal(signal.SIGTERM)
