"""A message on its way from a router to one listener."""

from enum import Enum, auto
from typing import final

import attrs

from fsm.p2p.control import Behind
from specs.message import Message

__all__ = ["Delivery", "Purpose"]


@final
class Purpose(Enum):
    """What the stub of a link does with a message."""

    SEND = auto()
    """Send it."""

    TURN_BACK = auto()
    """Give it back to the bus when all before it is acknowledged (C-20)."""

    ANNOUNCE = auto()
    """Send only what is announced of its pair; the message stands for the pair."""


@final
@attrs.frozen
class Delivery:
    """One message for one listener.

    Attributes:
        message: The message; its `to` is what its sender wrote.
        route: The address the listener was found under: the message's `to`, or
            the URL of the stub or link that leads there.
        is_foreign: Whether it came into this runtime by a stub: whoever said it is
            none of its components.
        behind: What a link announces before the message; None: nothing.
        purpose: What the stub of a link does with it.
    """

    message: Message
    route: str
    is_foreign: bool = False
    behind: Behind | None = None
    purpose: Purpose = Purpose.SEND
