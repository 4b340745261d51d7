"""What is under way on a node stub's link (`fsm.session.stub_client`)."""

from enum import Enum, unique
from typing import Final, final

__all__ = ["TALKING", "Phase"]


@final
@unique
class Phase(Enum):
    """What is under way on the link; what counts for others is the machine's state.

    It cannot be read off the table: a link is dialled and a session opened both on the way
    from `in-progress` and from `disconnected`, and `live` is open, pinged or taking leave.
    The table has the states that the protocol shows; nothing here is told to anybody.
    """

    IDLE = "idle"
    DIALLING = "dialling"
    OPENING = "opening"
    OPEN = "open"
    PINGING = "pinging"
    PAUSED = "paused"
    CLOSING = "closing"
    ENDED = "ended"


TALKING: Final = frozenset({Phase.OPEN, Phase.PINGING})
"""Phases in which messages go at once."""
