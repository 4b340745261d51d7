"""A message from a router to one listener, and the messages whose actor is gone."""

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import Final, final

import attrs
from typing_extensions import override

from actors.kit.log import get_logger
from fsm.p2p.transfer import Behind
from specs.message import Message


@final
class Purpose(Enum):
    """Use of a message by the stub of a link."""

    SEND = auto()
    """Send it."""

    TURN_BACK = auto()
    """Give it back to the bus when all messages before it are acknowledged (C-20)."""

    ANNOUNCE = auto()
    """Send only what is announced of its pair; the message stands for the pair."""


@final
@attrs.define
class Delivery:
    """One message for one listener.

    Attributes:
        message: The message; its `to` is what its sender wrote.
        route: Address under which the listener was found: the `to` of the message, or the URL of
            the stub or link that leads there.
        is_foreign: Whether a stub brought it into this runtime, so that none of the components of
            the runtime has sent it.
        behind: What a link announces before the message; None: nothing.
        purpose: What the stub of a link does with it.
    """

    message: Message
    route: str
    is_foreign: bool = False
    behind: Behind | None = None
    purpose: Purpose = Purpose.SEND


_log = get_logger("actors.kit")


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
        kind = getattr(message, "__qualname__", type(message).__qualname__)
        _log.warning("dead letter", actor=actor, message=kind)


LOGGED: Final[DeadLetters] = _Logged()
"""Writes dead letters to the log only."""
