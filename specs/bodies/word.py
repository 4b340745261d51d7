"""The closed vocabularies of message bodies: for each kind of field, the permitted words."""

from enum import StrEnum


class StatusValue(StrEnum):
    """States of a stub in its status events (C-12)."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    FAILED = "failed"


class LinkValue(StrEnum):
    """States of a P2P link in the status events of its stub (C-12)."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    YIELDING = "yielding"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    FAILED = "failed"


class RecordStatus(StrEnum):
    """States of the registration of an address in a registry (C-57)."""

    CREATED = "created"
    LIVE = "live"
    DISCONNECTED = "disconnected"
    DEAD = "dead"


class RecordAttribute(StrEnum):
    """Attributes of a registration whose changes a registry reports to subscribers (M-30)."""

    STATUS = "status"


class PolicyMethod(StrEnum):
    """Commands to a policy manager that change no single policy set (POL-05)."""

    RELOAD = "reload"


class SessionMethod(StrEnum):
    """Requests to a node's session manager (M-14..M-17), for example to open a session."""

    OPEN = "open"
    REOPEN = "re-open"
    CLOSE = "close"
    PING = "ping"
    RELEASE = "release"
    RENEW = "renew"


class StubMethod(StrEnum):
    """Commands of a runtime to a stub of a P2P link or of a node (M-11, M-12, P2P-27, STB-09)."""

    CONNECT = "connect"
    DISCONNECT = "disconnect"
    YIELD = "yield"
    RESUME = "resume"
    RENEWED = "renewed"


class LinkRole(StrEnum):
    """Roles of the two runtimes of a P2P link: one has requested the link, one accepts (P2P-18)."""

    REQUESTER = "requester"
    HANDLER = "handler"


class DescriptionType(StrEnum):
    """Kinds of descriptions in the negotiation of a P2P link (P2P-07); empty: none written yet."""

    UNSET = ""
    OFFER = "offer"
    ANSWER = "answer"


class CandidateKind(StrEnum):
    """Kinds of addresses at which a runtime listens for a P2P link."""

    WEBSOCKET = "websocket"
    TCP = "tcp"
    UNIX = "unix"


class AttributeType(StrEnum):
    """The type of a changed attribute, stated only for changes of list elements (C-35)."""

    ARRAY = "array"


class Operation(StrEnum):
    """Operations of a change on the elements of a list (C-35)."""

    ADD = "add"
    REMOVE = "remove"
