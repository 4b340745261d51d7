"""Where messages go whose actor is gone."""

from abc import ABC, abstractmethod
from typing import Final, final

import structlog
from typing_extensions import override

__all__ = ["LOGGED", "DeadLetters"]

_log = structlog.get_logger("actors.kit")


class DeadLetters(ABC):
    """Who hears of the messages an actor left in its mailbox when it went for good.

    A composition root makes one that counts and traces them as drops.
    """

    @abstractmethod
    def lost(self, actor: str, message: object) -> None:
        """Take note that nobody will ever handle this message; must not wait or raise."""


@final
class _Logged(DeadLetters):
    @override
    def lost(self, actor: str, message: object) -> None:
        _log.warning("dead letter", actor=actor, message=type(message).__name__)


LOGGED: Final[DeadLetters] = _Logged()
"""Only tells the log."""
