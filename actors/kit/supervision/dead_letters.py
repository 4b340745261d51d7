"""Messages that remain unhandled because their actor has ended."""

from abc import ABC, abstractmethod
from typing import Final, final

import attrs
import structlog
from typing_extensions import override

from actors.kit.counting.counters import Counters
from actors.kit.supervision.delivery import Delivery
from actors.kit.trace import Tracer, drop_fact
from specs.message import Message
from specs.reply_code import DropReason

__all__ = ["LOGGED", "DeadLetters", "TracedDeadLetters"]

_log = structlog.get_logger("actors.kit")


class DeadLetters(ABC):
    """Takes the messages that an actor left in its mailbox when it ended for good."""

    @abstractmethod
    def lost(self, actor: str, message: object) -> None:
        """Take an unhandled message; must not wait or raise.

        Args:
            actor: Name of the ended actor.
            message: The message.
        """


@final
class _Logged(DeadLetters):
    @override
    def lost(self, actor: str, message: object) -> None:
        _log.warning("dead letter", actor=actor, message=type(message).__name__)


LOGGED: Final[DeadLetters] = _Logged()
"""Writes dead letters to the log only."""


@final
@attrs.frozen
class TracedDeadLetters(DeadLetters):
    """Counts dead letters, and records messages of the protocol as drops (OBS-06)."""

    tracer: Tracer
    counters: Counters

    @override
    def lost(self, actor: str, message: object) -> None:
        self.counters.dead_letter(actor)
        match message:
            case Delivery(message=Message() as inner) | (Message() as inner):
                self.counters.drop(DropReason.NO_TARGET, inner, actor)
                self.tracer.record(actor, drop_fact(inner, DropReason.NO_TARGET))
            case _:
                _log.info("dead letter", actor=actor, message=type(message).__name__)
