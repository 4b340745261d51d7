"""Does at a back end what is owed there, one after the other, until it is done: host of debts."""

from collections.abc import Awaitable, Callable
from typing import final

import structlog
import trio

from actors.kit.http_client import HttpError
from actors.node.connectors.service import BackEndError
from fsm.registry.relay import RetryQueue
from specs.limits.back_ends import BACKEND_TIMEOUT
from specs.limits.protocol import GOODBYE_TIMEOUT

__all__ = ["Collector"]

_log = structlog.get_logger("actors.node")


@final
class Collector:
    """Owes things to one back end.

    Args:
        what: What is owed, for the log.
        pay: Does one of them by its name; raises `HttpError` or `BackEndError` if it cannot.
    """

    def __init__(self, what: str, pay: Callable[[str], Awaitable[None]]) -> None:
        self._what = what
        self._pay = pay
        self._debts = RetryQueue()
        self._stirred = trio.Event()
        self._is_idle = trio.Event()

    def __len__(self) -> int:
        return len(self._debts)

    def owe(self, name: str) -> None:
        """Have something done as soon as possible."""
        self._debts.owe(name, trio.current_time())
        self._stirred.set()

    def forgive(self, name: str) -> None:
        """Do not do it any more; nothing if it is not owed."""
        self._debts.paid(name)

    async def run(self) -> None:
        """Pay for as long as this runs."""
        while True:
            self._stirred = trio.Event()
            for name in self._debts.due(trio.current_time()):
                if name in self._debts:
                    await self._try(name)
            if not self._debts:
                self._is_idle.set()
            with trio.move_on_at(self._debts.deadline()):
                await self._stirred.wait()

    async def settle(self) -> None:
        """Wait until nothing is owed, but not for long; `run` has to run."""
        with trio.move_on_after(GOODBYE_TIMEOUT / 2):
            await trio.lowlevel.checkpoint()
            while self._debts:
                self._is_idle = trio.Event()
                await self._is_idle.wait()
        if self._debts:
            _log.warning("left undone at the back end", what=self._what, count=len(self._debts))

    async def _try(self, name: str) -> None:
        try:
            with trio.move_on_after(BACKEND_TIMEOUT) as patience:
                await self._pay(name)
            if not patience.cancelled_caught:
                self._debts.paid(name)
                return
        except (HttpError, BackEndError) as exc:
            _log.debug("not done yet", what=self._what, why=exc.reason)
        if self._debts.failed(name, trio.current_time()):
            _log.error("given up at the back end", what=self._what, name=name)
