"""Tasks that serve a block of code and end with it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_background() -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks are cancelled when the block is left.

    One error, of the block or of a task, is raised as itself; several are raised as a group.

    If cancelled, the tasks are cancelled, too, and have ended when this returns.

    Raises:
        Exception: The only error of the block and the tasks.
        ExceptionGroup: Several errors.
    """
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        error = group.exceptions[0]
        raise error from error.__cause__
