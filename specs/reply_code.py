"""Closed vocabularies of refusal: reply codes, drop reasons, ends of links, refused connections."""

from enum import IntEnum, StrEnum
from typing import Final


class Code(IntEnum):
    """The reply codes in use (HTTP semantics, MSG-17)."""

    TRYING = 100
    PROGRESS = 183
    OK = 200
    ACCEPTED = 202
    MALFORMED = 400
    UNAUTHENTICATED = 401
    FORBIDDEN = 403
    NOT_FOUND = 404
    TIMEOUT = 408
    CONFLICT = 409
    GONE = 410
    TOO_LARGE = 413
    INTERNAL = 500
    BAD_BACKEND = 502
    UNAVAILABLE = 503
    BACKEND_TIMEOUT = 504


FIRST_CODE: Final = 100
LAST_CODE: Final = 599
"""Range of reply codes, as in HTTP (MSG-17)."""

FIRST_FINAL: Final = 200
"""A code below this is provisional; the first at or above it is final (MSG-05)."""

LAST_SUCCESS: Final = 299
"""The first code above those of success, which begin at FIRST_FINAL."""


FIRST_REFUSAL: Final = 400
"""The first code of refusals (MSG-17)."""


TURNED_AWAY: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN})
"""Codes of a node's lasting refusals of an open: another attempt is useless."""

TAKEN_OVER: Final = "taken over by another login"
"""A node's refusal (409) to re-open a session that another login of its user has got: for good."""

NOT_NOW: Final = frozenset({Code.NOT_FOUND, Code.UNAVAILABLE})
"""Codes of answers after which a durable message is delivered again, later."""

PASSING: Final = frozenset(
    {
        Code.TIMEOUT,
        Code.TOO_LARGE,
        Code.INTERNAL,
        Code.BAD_BACKEND,
        Code.UNAVAILABLE,
        Code.BACKEND_TIMEOUT,
    }
)
"""Codes of refusals of a read after which the next one may succeed."""


class DropReason(StrEnum):
    """Reasons to drop a message: every drop has exactly one (OBS-06)."""

    UNMATCHED = "unmatched"
    LATE_RESPONSE = "late-response"
    LOOP = "loop"
    FORGED_STATUS = "forged-status"
    NO_TARGET = "no-target"
    OVERFLOW = "overflow"
    UNSUBSCRIBED = "unsubscribed"
    SESSION_GONE = "session-gone"
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"
    OVERTAKEN = "overtaken"
    DENIED = "denied"
    UNKNOWN_SOURCE = "unknown-source"
    CRASHED = "crashed"


class LinkEnd(StrEnum):
    """Reasons of the end of a node's link; each has exactly one."""

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


class TurnedAway(StrEnum):
    """Reasons to refuse a connection."""

    TOO_FAST = "too-fast"
    MADE_ROOM = "made-room"
    TOO_LATE = "too-late"
    ORIGIN = "origin"
    BAD_REQUEST = "bad-request"


class Ground(StrEnum):
    """Grounds on which a node refuses a message: each refusal has exactly one."""

    FORM = "form"
    SESSION = "session"
    OWNERSHIP = "ownership"
    LOOP = "loop"
    POLICY = "policy"
    LIMIT = "limit"
    ROUTE = "route"
    SERVICE = "service"
