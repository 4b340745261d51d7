"""What the table of foreign domains is told, and what it tells (`fsm.catalogue.foreign`)."""

from typing import TypeAlias, final

import attrs

from fsm.effects import Dropped
from fsm.engine import Step
from fsm.machines.stub_connection import State
from fsm.session.node_session_io import Parcel
from specs.message import Message
from specs.reply_code import Code

__all__ = [
    "Answer",
    "Banish",
    "Effect",
    "End",
    "Hand",
    "Input",
    "Leave",
    "OfRoom",
    "Open",
    "Pass",
    "Refuse",
    "Renew",
    "RoomFull",
    "RoomGone",
    "RoomKept",
    "RoomLost",
    "RoomMoved",
    "RoomReady",
    "RoomSpoke",
    "Send",
    "Tick",
]


# ---- inputs


@final
@attrs.frozen(slots=True)
class Send:
    """A message is for a foreign domain."""

    domain: str
    parcel: Parcel


@final
@attrs.frozen(slots=True)
class RoomReady:
    """The room of this stub is open, and the stub is in it."""

    stub: str


@final
@attrs.frozen(slots=True)
class RoomMoved:
    """The stub's connection is in another state now."""

    stub: str
    state: State
    why: str


@final
@attrs.frozen(slots=True)
class RoomSpoke:
    """The stub posted a message."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class RoomLost:
    """A message cannot be handed into the room, which is on its way in or out."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class RoomFull:
    """The room, or the way into it, has no place for a message."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class RoomKept:
    """The stub has a session that its successor may come back to."""

    stub: str
    token: str


@final
@attrs.frozen(slots=True)
class RoomGone:
    """The room is no more, or never came to be."""

    stub: str
    why: str


@final
@attrs.frozen(slots=True)
class Banish:
    """A domain has said too much that it had no right to: leave it alone (S14)."""

    domain: str


@final
@attrs.frozen(slots=True)
class Leave:
    """The node is going down."""


@final
@attrs.frozen(slots=True)
class Tick:
    """The deadline may have passed."""


OfRoom: TypeAlias = RoomReady | RoomMoved | RoomSpoke | RoomLost | RoomFull | RoomKept | RoomGone
"""What is told of one room."""

Input: TypeAlias = OfRoom | Send | Banish | Leave | Tick


# ---- effects


@final
@attrs.frozen(slots=True)
class Open:
    """Open a room for a stub; answer `RoomReady` or `RoomGone`.

    Attributes:
        token: Of a session that an earlier stub of the domain had; None: there is none.
    """

    stub: str
    domain: str
    token: str | None


@final
@attrs.frozen(slots=True)
class Hand:
    """Give a message to a stub in its room; answer `RoomFull` or `RoomLost` if that cannot be."""

    stub: str
    parcel: Parcel


@final
@attrs.frozen(slots=True)
class Pass:
    """A stub has brought a message: check it as if it came over the network."""

    domain: str
    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class Refuse:
    """Answer a request that does not reach the domain."""

    message: Message
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class Answer:
    """Answer, into the room, a request that a stub had no right to post."""

    stub: str
    message: Message
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class End:
    """End a room, whatever goes on in it; answer `RoomGone`."""

    stub: str
    why: str


@final
@attrs.frozen(slots=True)
class Renew:
    """Set again what is subscribed at the domain's node: it may have been forgotten."""

    domain: str


Effect: TypeAlias = Step | Open | Hand | Pass | Refuse | Answer | End | Renew | Dropped
