"""How a node that has forgotten an object's address and paths gets to know them again (C-44).

A node that is busy, full or silent is asked again, after longer and longer pauses: without its
paths the object cannot be found. The objects of a runtime take turns: a request of the last of
many that waited in a line at the node would be given up before its answer comes.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, final

import structlog
import trio

from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import RENEWED_AT_ONCE, REPEAT_LAST
from specs.message import Message, reason_in
from specs.reply_code import LAST_SUCCESS, Code

__all__ = ["Renewals"]

_log = structlog.get_logger("actors.runtime")

_LOST: Final = frozenset({Code.FORBIDDEN, Code.CONFLICT})
"""Answers that say: the address is another's now."""

Ask: TypeAlias = Callable[[str], Awaitable[Message]]
"""Claims an object at the node, and sets its paths; returns what was answered last."""


@final
class _Renewal:
    """One object's; `again` is set when the node has forgotten it once more."""

    def __init__(self) -> None:
        self.again = trio.Event()

    async def rest(self, pause: float) -> float:
        """Wait, but not once the node has forgotten it again; return the next pause."""
        with trio.move_on_after(pause):
            await self.again.wait()
        return READ_PAUSE if self.again.is_set() else min(2 * pause, REPEAT_LAST)


@final
class Renewals:
    """The renewals of one runtime's objects: one of each at a time.

    Attributes:
        may_ask: Whether an object may be claimed now; while it is being handed over, only
            the node knows whose it is.
    """

    def __init__(self, ask: Ask) -> None:
        self.may_ask: Callable[[str], bool] = lambda _: True
        self._ask = ask
        self._turns = trio.CapacityLimiter(RENEWED_AT_ONCE)
        self._running: dict[str, _Renewal] = {}

    async def renew(self, url: str) -> bool:
        """Ask the node as often as it takes; return whether it has all of the object now.

        If not, the address is another's, or the object is reported here no more, or this is
        being done already: then it is done once more.
        """
        if url in self._running:
            self._running[url].again.set()
            return False
        renewal, pause = _Renewal(), READ_PAUSE
        self._running[url] = renewal
        while self._running.get(url) is renewal:
            answer = await self._turn(url, renewal)
            if answer is not None and _is_over(answer, renewal):
                del self._running[url]
                return _is_done(url, answer)
            pause = await renewal.rest(pause)
        return False

    def forget(self, url: str) -> None:
        """Ask no more: the object is not reported here any more."""
        renewal = self._running.pop(url, None)
        if renewal is not None:
            renewal.again.set()

    async def _turn(self, url: str, renewal: _Renewal) -> Message | None:
        """Ask once; None: it may not be asked, or what was answered is of no use any more."""
        async with self._turns:
            if self._running.get(url) is not renewal or not self.may_ask(url):
                return None
            renewal.again = trio.Event()
            answer = await self._ask(url)
        return answer if self._running.get(url) is renewal else None


def _is_over(answer: Message, renewal: _Renewal) -> bool:
    is_decided = answer.code <= LAST_SUCCESS or answer.code in _LOST
    return is_decided and not renewal.again.is_set()


def _is_done(url: str, answer: Message) -> bool:
    if answer.code in _LOST:
        _log.error("object has lost its address", url=url, why=reason_in(answer))
    return answer.code <= LAST_SUCCESS
