"""The sessions of a node that goes down in order, until other nodes have them."""

import math
from typing import Final, final

from actors.node.session.exchange import Exchange
from specs.limits.group import GROUP_HANDOVER, GROUP_LINGER
from transports.errors import CloseReason

__all__ = ["Handover"]


@final
class Handover:
    """Lets runtimes go to other nodes, and what comes for them meanwhile wait and follow.

    Args:
        exchange: The sessions of this node.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self._awaited: list[str] = []
        self._until = math.inf
        self._is_over = False

    def begin(self, now: float, *, is_possible: bool) -> None:
        """Close all links in order; what has arrived over them by then is still handled.

        Args:
            now: Seconds on the host's clock.
            is_possible: Whether another node can have the sessions.
        """
        exchange = self._exchange
        if is_possible:
            for runtime, session in exchange.sessions.items():
                if session.port is not None and session.core.kept is not None:
                    self._awaited.append(runtime)
        self._until = now + (GROUP_HANDOVER if self._awaited else 0.0)
        for port in exchange.ports.values():
            port.finish(CloseReason.GOING_AWAY)

    def settle(self, now: float) -> bool:
        """End the sessions that are left when time is over; return whether it is.

        Args:
            now: Seconds on the host's clock.
        """
        awaited = self._awaited
        while awaited and awaited[-1] not in self._exchange.sessions:
            awaited.pop()
            if not awaited:
                # Other nodes may have sent more before they heard where the last one is.
                self._until = min(self._until, now + GROUP_LINGER)
        if not self._is_over and now >= self._until:
            self._is_over = True
            self._exchange.drain()
        return self._is_over

    def deadline(self) -> float:
        """Return when `settle` is due."""
        return math.inf if self._is_over else self._until
