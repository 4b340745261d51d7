"""A listener that closes before anything else of the node."""

from contextlib import AbstractAsyncContextManager
from typing import final

import trio

from transports.link import Listener


@final
class OpenListener:
    """A listener in a task of its own: it closes before anything else of the node."""

    def __init__(self, opened: AbstractAsyncContextManager[Listener]) -> None:
        self._opened = opened
        self._is_closing = trio.Event()
        self._is_closed = trio.Event()

    async def serve(
        self, *, task_status: "trio.TaskStatus[Listener]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Listen until `close` is called.

        If cancelled, the listener is closed; links that were accepted stay open.
        """
        try:
            async with self._opened as listener:
                task_status.started(listener)
                await self._is_closing.wait()
        finally:
            self._is_closed.set()

    async def close(self) -> None:
        """Accept no more links; the accepted ones stay open. Idempotent.

        If cancelled, the listener closes all the same.
        """
        self._is_closing.set()
        await self._is_closed.wait()
