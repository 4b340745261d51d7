"""Messages of the sync manager's own tasks to it."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import attrs

from actors.kit.supervision.actor import Reply
from fsm.effects import Refused
from fsm.sync.reporter_io import ReporterAccepted, ReporterRefused
from fsm.sync.routes import Moving, ObserverRoute
from specs.bodies.sync import CreateObject, DataObject
from specs.message import Message

__all__ = [
    "Decided",
    "LeaseAnswered",
    "LinkIs",
    "ObjectReady",
    "ObjectRegistered",
    "ObjectRemoved",
    "ObjectsView",
    "ObjectsWanted",
    "ObserveDone",
    "ObserverLeft",
    "ObserverReport",
    "PathClosed",
    "Report",
    "ReporterReport",
    "Route",
    "RouteMoved",
    "SenderChecked",
    "StillObserved",
    "TaskReport",
]


@final
@attrs.frozen(slots=True)
class ObjectReady:
    """A new object has its address and path.

    Attributes:
        request: The reporter's own.
        wanted: The object that it asks for.
        created: None: there will be none, and the reporter knows.
    """

    request: Message
    wanted: CreateObject
    created: DataObject | None


@final
@attrs.frozen(slots=True)
class ObjectRegistered:
    """The domain registry has answered about a new object.

    Attributes:
        request: The reporter's own, still to be answered.
        refusal: Why it is not registered; None: it is.
    """

    request: Message
    url: str
    refusal: Refused | None


@final
@attrs.frozen(slots=True)
class Decided:
    """The reporter said whether an observer may subscribe."""

    url: str
    decision: ReporterAccepted | ReporterRefused


@final
@attrs.frozen(slots=True)
class ObjectRemoved:
    """Path, record, listeners and address of a deleted object are gone.

    Attributes:
        request: The reporter's own; None: unrequested.
    """

    url: str
    request: Message | None


@final
@attrs.frozen(slots=True)
class ObjectsView:
    """The data objects of a runtime at one moment.

    Attributes:
        reported: Addresses of those reported here.
        observed: Addresses of those observed here.
    """

    reported: tuple[str, ...]
    observed: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class ObjectsWanted:
    """Show the data objects."""

    reply: Reply[ObjectsView]


@final
@attrs.frozen(slots=True)
class Route:
    """The route by which an observer was answered.

    Attributes:
        link: The link; None: the node.
        barred: The link by which it was not let in.
        is_first: Whether it is the first observer of its object here.
    """

    link: str | None = None
    barred: str | None = None
    is_first: bool = False


@final
@attrs.frozen(slots=True)
class ObserveDone:
    """The reporter's end answered, or the path was refused.

    Attributes:
        request: The observer's own request.
        answer: What it comes to.
    """

    request: Message
    url: str
    answer: Message
    route: Route


@final
@attrs.frozen(slots=True)
class RouteMoved:
    """The changes of an object come by another route now, or it was tried.

    Attributes:
        route: What decided so; another decides if the object was left meanwhile.
        link: By which they were to come; None: by the node.
    """

    url: str
    route: ObserverRoute
    link: str | None
    how: Moving


@final
@attrs.frozen(slots=True)
class ObserverLeft:
    """The reporter's end knows that an observer left.

    Attributes:
        request: The observer's own; None: unrequested.
    """

    url: str
    observer: str
    request: Message | None


@final
@attrs.frozen(slots=True)
class RefusedAgain:
    """The reporter's end, asked once more, does not let an observer in any more.

    Attributes:
        number: Of the request by which it observes.
    """

    url: str
    observer: str
    number: int


@final
@attrs.frozen(slots=True)
class LeaseAnswered:
    """The reporter's end was asked to let an observer go on observing.

    Attributes:
        number: Of the request by which it observes.
        answer: What it said.
        link: By which it was asked; None: by the node.
    """

    url: str
    observer: str
    number: int
    answer: Message
    link: str | None


@final
@attrs.frozen(slots=True)
class StillObserved:
    """A sync manager has reported its observers of a resumed object."""

    url: str
    manager: str
    observers: frozenset[str]


@final
@attrs.frozen(slots=True)
class PathClosed:
    """Nothing of an object comes here any more: its path and listeners are gone."""

    url: str


@final
@attrs.frozen(slots=True)
class SenderChecked:
    """The result of the check whether a requester over a link may act for an observer.

    Attributes:
        request: What was asked; to be answered.
        link: By which it came.
    """

    url: str
    request: Message
    link: str
    is_so: bool


@final
@attrs.frozen(slots=True)
class LinkIs:
    """This live link leads to a runtime, or to an object that is observed; None: none does."""

    entity: str
    link: str | None


ReporterReport: TypeAlias = (
    ObjectReady | ObjectRegistered | Decided | ObjectRemoved | SenderChecked | StillObserved
)
"""Reports of tasks about objects that are reported here."""

ObserverReport: TypeAlias = (
    ObserveDone | ObserverLeft | RefusedAgain | LeaseAnswered | PathClosed | RouteMoved
)
"""Reports of tasks about objects that are observed here."""

TaskReport: TypeAlias = ReporterReport | ObserverReport | LinkIs
"""Any of these messages."""

Report: TypeAlias = Callable[[TaskReport], Awaitable[None]]
"""Sends a message to the sync manager."""
