"""What may be done for a message that has no listener here."""

from enum import Enum, StrEnum, unique
from typing import Final

from specs.address import RUNTIME_SCHEME, scheme_of
from specs.message import Message, MessageType

__all__ = [
    "Intent",
    "P2pWish",
    "intent_of",
]

_CONNECTION_SCHEME: Final = "connection"
_OBSERVING: Final = frozenset({MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE})
_SUBSCRIPTION: Final = "/subscription"
_P2P_PARTS: Final = frozenset({"p2phandler", "p2prequester"})
_PART: Final = 4
"""Where the part stands in `hyperty-runtime://d/name/part/n`, split at slashes."""


@unique
class Intent(Enum):
    """What a message may have done for it to get a route."""

    REACH = "reach"
    """A request: the registry may be asked, a P2P link may be set up (RES-04..08)."""

    KNOWN = "known"
    """An answer or event: by what is known now."""

    NODE = "node"
    """By the message node only: P2P signalling (P2P-29), the sender's wish (C-21), or asking
    the owner of an object to be an observer, which its node has to see (M-38, M-43, S3)."""


@unique
class P2pWish(StrEnum):
    """Whether a runtime wants P2P links (RES-06)."""

    WHENEVER_POSSIBLE = "whenever-possible"
    NEVER = "never"


def intent_of(message: Message) -> Intent:
    """Return what may be done for a message that has no listener here."""
    if message.body.get("p2p") is False or _is_signalling(message.from_, message.to):
        return Intent.NODE
    if message.type in _OBSERVING and message.to.endswith(_SUBSCRIPTION):
        return Intent.NODE
    return Intent.REACH if message.is_request else Intent.KNOWN


def _is_signalling(*ends: str) -> bool:
    return any(_is_p2p_part(end) for end in ends)


def _is_p2p_part(address: str) -> bool:
    scheme = scheme_of(address)
    if scheme == _CONNECTION_SCHEME:
        return True
    if scheme != RUNTIME_SCHEME:
        return False
    segments = address.split("/", _PART + 1)
    return len(segments) > _PART and segments[_PART] in _P2P_PARTS
