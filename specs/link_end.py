"""Why a node's link ended, and why somebody was not let in: closed vocabularies for counts."""

from enum import StrEnum, unique
from typing import final

__all__ = ["LinkEnd", "TurnedAway"]


@final
@unique
class LinkEnd(StrEnum):
    """Why a link of a node is no more; each has exactly one reason."""

    LEFT = "left"
    BROKEN = "broken"
    CLOSED = "closed"
    GOING_AWAY = "going-away"
    NO_SESSION = "no-session"
    MADE_ROOM = "made-room"
    REFUSED = "refused"
    TAKEN_OVER = "taken-over"
    SLOW_CONSUMER = "slow-consumer"
    SHED = "shed"
    SILENT = "silent"
    SLOW_FRAME = "slow-frame"
    TOO_LARGE = "too-large"
    MALFORMED = "malformed"


@final
@unique
class TurnedAway(StrEnum):
    """Why a connection was not let in."""

    TOO_FAST = "too-fast"
    MADE_ROOM = "made-room"
    TOO_LATE = "too-late"
    ORIGIN = "origin"
    BAD_REQUEST = "bad-request"
