"""The way down of a node in order; part of the bus's task."""

import math
from collections.abc import Callable, Mapping
from typing import Final

from actors.node.links.connection import Connection
from actors.node.session.session import Session
from specs.limits.group import GROUP_HANDOVER, GROUP_LINGER
from specs.limits.node import READ_OUT


class Departure:
    """Closes all links in order, and then all sessions.

    What peers have sent before they read the goodbye is handled between the two. Where other nodes
    can have the sessions, what comes for these meanwhile waits, and follows them.

    Attributes:
        has_begun: Whether the node is going down.
        is_last: Whether no session can move any more: one whose link is gone is over, too.
        is_over: Whether all sessions have ended.

    Args:
        sessions: The sessions of this node, by runtime.
        ports: The links, by number, until nothing can come over them.
        end: Ends the sessions that are left.
    """

    def __init__(
        self,
        sessions: Mapping[str, Session],
        ports: Mapping[int, Connection],
        end: Callable[[], None],
    ) -> None:
        self._sessions: Final = sessions
        self._ports: Final = ports
        self._end: Final = end
        self._moving: list[str] = []
        self.is_last = False
        self._until = math.inf
        self.has_begun = False
        self.is_over = False

    def begin(self, now: float, *, is_possible: bool) -> None:
        """Close all links in order.

        Args:
            now: Seconds on the host's clock.
            is_possible: Whether another node can have the sessions.
        """
        if is_possible:
            self._moving += [
                runtime
                for runtime, session in self._sessions.items()
                if session.port is not None and session.core.kept is not None
            ]
        self.has_begun, self.is_last = True, not self._moving
        self._until = now + (READ_OUT if self.is_last else GROUP_HANDOVER)
        for port in self._ports.values():
            port.go_away()

    def settle(self, now: float) -> None:
        """End the sessions that are left when time is over, or when nothing is waited for.

        Args:
            now: Seconds on the host's clock.
        """
        if self.is_last and not self._ports:
            self._until = now
        while self._moving and self._moving[-1] not in self._sessions:
            self._moving.pop()
            if not self._moving:
                # Other nodes may have sent more before they heard where the last one is.
                self._until = min(self._until, now + GROUP_LINGER)
        if not self.is_over and now >= self._until:
            self.is_over = True
            for port in self._ports.values():
                port.read_no_more()
            self._end()

    def deadline(self) -> float:
        """Return when `settle` is due."""
        return math.inf if self.is_over else self._until
