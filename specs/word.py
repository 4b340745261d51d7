"""The closed vocabularies of bodies: words with a meaning of their own on the wire."""

from enum import StrEnum


class StatusValue(StrEnum):
    """States a stub or P2P link tells of (C-12)."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    FAILED = "failed"


class RecordStatus(StrEnum):
    """States of a registration (C-57)."""

    CREATED = "created"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    DEAD = "dead"


class SessionMethod(StrEnum):
    """What a stub asks of a node's session manager (M-14..M-17)."""

    OPEN = "open"
    REOPEN = "re-open"
    CLOSE = "close"
    PING = "ping"


class DescriptionType(StrEnum):
    """Which end of a P2P link describes itself (P2P-07); not yet: nothing."""

    UNSET = ""
    OFFER = "offer"
    ANSWER = "answer"


class CandidateKind(StrEnum):
    """Ways to open a P2P link."""

    WEBSOCKET = "websocket"
    TCP = "tcp"
    UNIX = "unix"
    WEBRTC = "webrtc"


class Operation(StrEnum):
    """What a change does to an array (C-35)."""

    ADD = "add"
    REMOVE = "remove"
