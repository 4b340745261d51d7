"""Who may come in at all: asked before the handshake of a connection begins."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, final

import trio
from typing_extensions import override

from specs.limits.protocol import HANDSHAKE_TIMEOUT
from specs.link_end import TurnedAway

__all__ = ["EVERYBODY", "Gate", "Guest"]


class Guest:
    """A connection of which nobody knows yet whose it is.

    Whoever accepts its link calls `settle` as soon as that is known; until then its
    deadline holds, and it may have to make room for others.

    Attributes:
        until: Trio time by which it must be known.
    """

    __slots__ = ("_is_expelled", "_leave", "until")

    def __init__(self) -> None:
        self.until: Final = trio.current_time() + HANDSHAKE_TIMEOUT
        self._is_expelled = False
        self._leave: Callable[[], None] | None = None

    def staying(self) -> trio.CancelScope:
        """Return the scope to serve it in: cancelled when it has to make room."""
        scope = trio.CancelScope()
        self.watch(scope.cancel)
        return scope

    @final
    def watch(self, leave: Callable[[], None]) -> None:
        """Have `leave` called when it has to make room, at once if it has to already.

        It takes the place of who watched before: at any time one part of us serves it.
        """
        self._leave = leave
        if self._is_expelled:
            leave()

    @property
    def is_expelled(self) -> bool:
        """Whether it has to make room."""
        return self._is_expelled

    @final
    def expel(self) -> None:
        """Let it make room."""
        self._is_expelled = True
        if self._leave is not None:
            self._leave()

    def settle(self) -> None:
        """Note that it is known now, or gone; idempotent."""


class Gate(ABC):
    """Watches one listener's door.

    Attributes:
        origins: Web origins whose pages may connect; None: nobody looks.
    """

    origins: frozenset[str] | None = None

    @abstractmethod
    def knock(self, host: str) -> Guest | None:
        """Let a connection in, or turn it away: its host comes too often.

        Args:
            host: Where it comes from, as the system says; no header is believed.
        """

    @abstractmethod
    def turned_away(self, why: TurnedAway) -> None:
        """Count somebody who did not come in."""


@final
class _Everybody(Gate):
    @override
    def knock(self, host: str) -> Guest | None:
        return Guest()

    @override
    def turned_away(self, why: TurnedAway) -> None:
        """Nobody counts here."""


EVERYBODY: Final[Gate] = _Everybody()
"""Lets everybody in: for listeners whose diallers prove themselves otherwise."""
