"""Closed vocabularies: reply codes, and the reasons of drops, refusals and ends of links."""

from enum import IntEnum, StrEnum
from typing import Final


class Code(IntEnum):
    """The reply codes of answers, with the meanings of HTTP status codes (MSG-17)."""

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
"""Lowest code of a final answer; answers with lower codes are provisional (MSG-05)."""

LAST_SUCCESS: Final = 299
"""Highest code of a successful answer; the lowest is `FIRST_FINAL`."""


FIRST_REFUSAL: Final = 400
"""Lowest code with which a request is refused (MSG-17)."""


TURNED_AWAY: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN})
"""Codes with which a node refuses for good to open a session: another attempt is useless."""

TAKEN_OVER: Final = "taken over by another login"
"""Reason of a final refusal (409) to re-open a session, which another login of the user uses."""

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
"""Codes of temporary failures of a read: the same read may succeed later."""


class DropReason(StrEnum):
    """Reasons for which a message is dropped; every dropped message has exactly one (OBS-06)."""

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
    """Reasons for which the link of a node to a runtime ended; every link ends with exactly one."""

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
    """Reasons for which a node refuses a connection before the link is open."""

    TOO_FAST = "too-fast"
    MADE_ROOM = "made-room"
    TOO_LATE = "too-late"
    ORIGIN = "origin"
    BAD_REQUEST = "bad-request"


class Ground(StrEnum):
    """Stages of a node that may refuse a message; every refusal names exactly one."""

    FORM = "form"
    SESSION = "session"
    OWNERSHIP = "ownership"
    LOOP = "loop"
    POLICY = "policy"
    LIMIT = "limit"
    ROUTE = "route"
    SERVICE = "service"
