"""Inputs and effects of the cores for children of a data object (SYN-24)."""

from enum import Enum, unique
from typing import TypeAlias, final

import attrs

from specs.bodies.object import ChildrenSign
from specs.child import named
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from specs.reply_code import Code

__all__ = [
    "Act",
    "AllChildren",
    "ChildGone",
    "ChildOp",
    "ChildRefused",
    "ChildSaid",
    "ChildShown",
    "ChildrenDoubted",
    "ChildrenEffect",
    "ChildrenInput",
    "ChildrenNeeded",
    "ChildrenTimeOver",
    "ChildrenUnread",
    "SaidAgain",
    "SignHeard",
    "op_in",
]


@final
@unique
class Act(Enum):
    """The kind of an operation on a child."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


_ACTS = {
    MessageType.CREATE: Act.CREATE,
    MessageType.UPDATE: Act.UPDATE,
    MessageType.DELETE: Act.DELETE,
}


@final
@attrs.frozen(slots=True)
class ChildOp:
    """One operation of a creator on a child of its own.

    Attributes:
        name: The child: `creator#number`.
        version: Id of the message that said it: of one creator the greater is the later.
        value: Its new value; None, if it is deleted.
    """

    act: Act
    name: str
    creator: str
    number: int
    version: int
    value: Json = None


def op_in(message: Message) -> ChildOp | None:
    """Return the operation in a message; None: its sender may not do it (I-D10).

    The sender must be the creator in the child's name; a router has checked the sender.
    """
    act, name = _ACTS.get(message.type), message.body.get("resource")
    found = named(name) if isinstance(name, str) else None
    if act is None or found is None or found[0] != message.from_:
        return None
    creator, number = found
    value = None if act is Act.DELETE else message.body.get("value")
    return ChildOp(act, str(name), creator, number, message.id, value)


# --- what happens -----------------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class ChildSaid:
    """An operation of a creator; also one of the copy's keeper, once it is sent."""

    op: ChildOp


@final
@attrs.frozen(slots=True)
class SignHeard:
    """The reporter's end has published the sign of its children."""

    sign: ChildrenSign


@final
@attrs.frozen(slots=True)
class AllChildren:
    """The whole object came, with all its children.

    Attributes:
        shown: As `childrenObjects` has them; None: the object did not say.
    """

    shown: JsonObject | None


@final
@attrs.frozen(slots=True)
class ChildrenUnread:
    """A read of the object has failed for now.

    Attributes:
        read: Its number, as `ChildrenNeeded` gave it.
    """

    read: int


@final
@attrs.frozen(slots=True)
class ChildrenDoubted:
    """Messages may have been missed, and no sign will show it: the object is to be read."""


@final
@attrs.frozen(slots=True)
class ChildrenTimeOver:
    """The deadline has passed."""


ChildrenInput: TypeAlias = (
    ChildSaid | SignHeard | AllChildren | ChildrenUnread | ChildrenDoubted | ChildrenTimeOver
)


# --- what is to be done -----------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class ChildShown:
    """A child is there, or has another value."""

    name: str
    value: Json
    version: int


@final
@attrs.frozen(slots=True)
class ChildGone:
    """A child is no longer there."""

    name: str


@final
@attrs.frozen(slots=True)
class ChildRefused:
    """An operation is not done; the host answers a request with the reason."""

    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class ChildrenNeeded:
    """Some are missing, or too many are there: read the whole object (M-41)."""

    read: int


@final
@attrs.frozen(slots=True)
class SaidAgain:
    """The reporter's end lacks an operation of this copy's keeper: send it again.

    The new message has a version of its own; `ChildSaid` reports it to the core.
    """

    act: Act
    name: str
    value: Json = None


ChildrenEffect: TypeAlias = ChildShown | ChildGone | ChildRefused | ChildrenNeeded | SaidAgain
