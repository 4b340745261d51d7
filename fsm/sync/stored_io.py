"""What is written of data objects, for a restart to find (SYN-25, SYN-28)."""

from typing import TypeAlias, final

import attrs

from specs.bodies.sync import DataObject
from specs.jsonvalue import JsonObject

__all__ = [
    "ChildrenKept",
    "CopyForgotten",
    "CopyKept",
    "GuestKept",
    "HomeForgotten",
    "HomeKept",
    "Keep",
    "ObjectForgotten",
    "ObjectKept",
    "ObserverForgotten",
    "ObserverKept",
    "SessionKept",
]


@final
@attrs.frozen(slots=True)
class ObjectKept:
    """An object has this value and version.

    Attributes:
        is_public: Whether everybody may observe it.
    """

    snapshot: DataObject
    is_public: bool = False


@final
@attrs.frozen(slots=True)
class ObjectForgotten:
    """An object is deleted, or reported elsewhere: nothing of it stays."""

    url: str


@final
@attrs.frozen(slots=True)
class ObserverKept:
    """Somebody observes an object, by this sync manager.

    Attributes:
        lease: Seconds for which its subscription is granted; None: it lasts.
    """

    url: str
    observer: str
    manager: str
    lease: int | None = None


@final
@attrs.frozen(slots=True)
class ObserverForgotten:
    """Somebody does not observe an object any more."""

    url: str
    observer: str


@final
@attrs.frozen(slots=True)
class GuestKept:
    """What the reporter has said of somebody.

    Attributes:
        may: Whether it may observe unasked; False: it was expelled; None: nothing was said.
    """

    url: str
    guest: str
    may: bool | None


@final
@attrs.frozen(slots=True)
class ChildrenKept:
    """The children of an object, as whoever keeps them writes them; None: there are none."""

    url: str
    children: JsonObject | None


@final
@attrs.frozen(slots=True)
class CopyKept:
    """What an observer here has of somebody's object."""

    url: str
    observer: str
    version: int
    data: JsonObject


@final
@attrs.frozen(slots=True)
class CopyForgotten:
    """An observer here has done with an object."""

    url: str
    observer: str


@final
@attrs.frozen(slots=True)
class HomeKept:
    """A hyperty of this runtime has an address.

    Attributes:
        descriptor: By what it is known again.
    """

    url: str
    descriptor: str


@final
@attrs.frozen(slots=True)
class HomeForgotten:
    """The address was given back."""

    url: str


@final
@attrs.frozen(slots=True)
class SessionKept:
    """The session with the node of a domain has this token."""

    domain: str
    token: str


Keep: TypeAlias = (
    ObjectKept
    | ObjectForgotten
    | ObserverKept
    | ObserverForgotten
    | GuestKept
    | ChildrenKept
    | CopyKept
    | CopyForgotten
    | HomeKept
    | HomeForgotten
    | SessionKept
)
