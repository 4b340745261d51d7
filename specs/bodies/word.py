"""The closed vocabularies of bodies: words with a fixed meaning on the wire."""

from enum import StrEnum


class StatusValue(StrEnum):
    """States that a stub reports (C-12)."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    FAILED = "failed"


class LinkValue(StrEnum):
    """States that an end of a P2P link reports (C-12); `yielding` is ours (P2P-27)."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    YIELDING = "yielding"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    FAILED = "failed"


class RecordStatus(StrEnum):
    """States of a registration (C-57)."""

    CREATED = "created"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    DEAD = "dead"


class RecordAttribute(StrEnum):
    """Reports of a registry on a record (M-30)."""

    STATUS = "status"


class PolicyMethod(StrEnum):
    """Requests of an administrator to a node's policy manager, besides changes (POL-05)."""

    RELOAD = "reload"


class SessionMethod(StrEnum):
    """Requests of a stub to a node's session manager (M-14..M-17); `release` is ours (MN-21)."""

    OPEN = "open"
    REOPEN = "re-open"
    CLOSE = "close"
    PING = "ping"
    RELEASE = "release"
    RENEW = "renew"


class StubMethod(StrEnum):
    """Commands of a runtime to a stub (M-11, M-12); the last three are ours (P2P-27, STB-09)."""

    CONNECT = "connect"
    DISCONNECT = "disconnect"
    YIELD = "yield"
    RESUME = "resume"
    RENEWED = "renewed"


class LinkRole(StrEnum):
    """The role of a runtime at a P2P link (P2P-18)."""

    REQUESTER = "requester"
    HANDLER = "handler"


class DescriptionType(StrEnum):
    """The end of a P2P link that describes itself (P2P-07), or an empty text for none yet."""

    UNSET = ""
    OFFER = "offer"
    ANSWER = "answer"


class CandidateKind(StrEnum):
    """Kinds of listeners of a P2P link."""

    WEBSOCKET = "websocket"
    TCP = "tcp"
    UNIX = "unix"


class AttributeType(StrEnum):
    """The kind of a changed attribute, where it matters (C-35)."""

    ARRAY = "array"


class Operation(StrEnum):
    """The operation of a change on an array (C-35)."""

    ADD = "add"
    REMOVE = "remove"
