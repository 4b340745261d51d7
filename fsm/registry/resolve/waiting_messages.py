"""Messages that wait for a direct link that is being set up (RES-09, I-R9).

Only the question for a way waits here; the messages wait with who asked it, in order, so
that none is lost or doubled whatever the answer is.
"""

import math
from collections.abc import Callable
from typing import final

import attrs

from fsm.intent import Intent
from specs.limits.protocol import P2P_TIMEOUT

__all__ = ["LinkWaiters", "WaitingAsk"]


@final
@attrs.frozen(slots=True)
class WaitingAsk:
    """A question for a way that waits for a link to an entity."""

    to: str
    intent: Intent
    entity: str


@final
class LinkWaiters:
    """Who waits for which link, and until when."""

    def __init__(self) -> None:
        self._asks: dict[tuple[str, Intent], WaitingAsk] = {}
        self._until: dict[str, float] = {}

    def wait(self, ask: WaitingAsk, now: float) -> bool:
        """Let a question wait; False: the link has been waited for long enough."""
        if now >= self._until.setdefault(ask.entity, now + P2P_TIMEOUT):
            return False
        self._asks[ask.to, ask.intent] = ask
        return True

    def deadline(self) -> float:
        """Return when the first has waited long enough."""
        waiting = {ask.entity for ask in self._asks.values()}
        return min((self._until[entity] for entity in waiting), default=math.inf)

    def done(self, is_settled: Callable[[str], bool], now: float) -> list[WaitingAsk]:
        """Take out who need not wait any more: it is known whether there is a link, or too late."""
        settled = {entity for entity in self._until if is_settled(entity)}
        for entity in settled:
            # The next set-up of a link to it may be waited for anew.
            del self._until[entity]
        over = [ask for ask in self._asks.values() if self._until.get(ask.entity, 0.0) <= now]
        for ask in over:
            del self._asks[ask.to, ask.intent]
        return over
