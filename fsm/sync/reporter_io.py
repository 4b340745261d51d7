"""Inputs and effects of the reporter's end of a data object."""

from typing import TypeAlias, final

import attrs

from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from specs.bodies.sync import Change, ChangeObject, DataObject
from specs.reply_code import Code

__all__ = [
    "AllowAsked",
    "Authorised",
    "ChangeAsked",
    "CutOff",
    "DeleteAsked",
    "Deleted",
    "Denied",
    "ExpelAsked",
    "Expired",
    "Granted",
    "LeaseOver",
    "Obeyed",
    "ObserverEffect",
    "ObserversNotified",
    "Published",
    "Question",
    "RemovalAsked",
    "Renewed",
    "ReporterAccepted",
    "ReporterAsked",
    "ReporterEffect",
    "ReporterInput",
    "ReporterRefused",
    "RuntimeNotified",
    "SubscribeAsked",
    "UnsubscribeAsked",
    "Vacated",
]


@final
@attrs.frozen(slots=True)
class Question:
    """The identity of a question to the reporter; no two questions have the same.

    Attributes:
        version: Version of the object when it was asked.
        number: Number of the question since the object is reported, from 1.
    """

    version: int
    number: int


# --- what happens -----------------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Authorised:
    """The reporter invites an observer, which may then subscribe unasked (SYN-04)."""

    observer: str


@final
@attrs.frozen(slots=True)
class AllowAsked:
    """A request to allow an observer; only the reporter may."""

    by: str
    observer: str


@final
@attrs.frozen(slots=True)
class ExpelAsked:
    """A request to expel an observer; only the reporter may (SYN-21)."""

    by: str
    observer: str


@final
@attrs.frozen(slots=True)
class SubscribeAsked:
    """An observer wants to subscribe (M-38).

    Attributes:
        observer: The true observer.
        manager: The sync manager that sent the request.
        lease: Seconds for which it is granted; None: it is never renewed, and lasts.
        version: Version of the observer's copy, if this renews its subscription.
    """

    observer: str
    manager: str
    lease: int | None = None
    version: int | None = None


@final
@attrs.frozen(slots=True)
class ReporterAccepted:
    """The reporter has accepted an observer (M-39 answered 200).

    Attributes:
        question: The question that it answers; an answer to an older one is ignored.
    """

    observer: str
    question: Question


@final
@attrs.frozen(slots=True)
class ReporterRefused:
    """The reporter has refused an observer, or has not answered in time."""

    observer: str
    why: str
    question: Question


@final
@attrs.frozen(slots=True)
class UnsubscribeAsked:
    """An observer leaves (M-43); only the manager that brought it can say so."""

    observer: str
    manager: str


@final
@attrs.frozen(slots=True)
class LeaseOver:
    """A subscription was not renewed in time; its observer may be gone."""

    observer: str


@final
@attrs.frozen(slots=True)
class ChangeAsked:
    """A request to change the object; only its reporter may (I-D1)."""

    by: str
    change: ChangeObject


@final
@attrs.frozen(slots=True)
class RemovalAsked:
    """A request to delete one attribute of the object; only its reporter may (M-46).

    Attributes:
        attribute: Dotted path; if it is absent, nothing is changed.
    """

    by: str
    attribute: str


@final
@attrs.frozen(slots=True)
class DeleteAsked:
    """A request to delete the object; only its reporter may (M-46)."""

    by: str


@final
@attrs.frozen(slots=True)
class RuntimeNotified:
    """A runtime of `Deleted` has answered M-47: it knows that the object is gone (C-81)."""

    runtime: str


@final
@attrs.frozen(slots=True)
class ObserversNotified:
    """The runtimes of `Deleted` have answered, or their time is over (M-47, SYN-22)."""


ReporterInput: TypeAlias = (
    Authorised
    | AllowAsked
    | ExpelAsked
    | SubscribeAsked
    | ReporterAccepted
    | ReporterRefused
    | UnsubscribeAsked
    | LeaseOver
    | ChangeAsked
    | RemovalAsked
    | DeleteAsked
    | RuntimeNotified
    | ObserversNotified
)


# --- what is to be done -----------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Granted:
    """Answer the subscription with the newest object; the observer is added already.

    Attributes:
        lease: Seconds that the subscription lasts; None: it needs no renewal.
        is_renewal: Whether it observed before.
    """

    observer: str
    manager: str
    snapshot: DataObject
    lease: int | None = None
    is_renewal: bool = False


@final
@attrs.frozen(slots=True)
class Renewed:
    """Answer the renewal of a subscription whose observer has the newest object."""

    observer: str
    lease: int | None


@final
@attrs.frozen(slots=True)
class Denied:
    """Answer the subscription with a refusal."""

    observer: str
    manager: str
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class ReporterAsked:
    """Ask the reporter whether the observer may subscribe (M-39).

    Attributes:
        patience: Seconds after which silence is a refusal.
        question: The identity that the decision has to name.
    """

    observer: str
    patience: float
    question: Question


@final
@attrs.frozen(slots=True)
class Obeyed:
    """Answer the reporter's request with success."""


@final
@attrs.frozen(slots=True)
class CutOff:
    """Send an expelled observer no more messages, whether it reacts or not.

    Attributes:
        manager: The sync manager that subscribed it; empty: it was no observer, and may have
            read the object.
    """

    observer: str
    manager: str = ""


@final
@attrs.frozen(slots=True)
class Expired:
    """Send an observer whose lease is over no more messages; it may subscribe again.

    Attributes:
        manager: The sync manager that subscribed it.
    """

    observer: str
    manager: str


@final
@attrs.frozen(slots=True)
class Published:
    """Publish a change (M-40); its version is set."""

    change: Change


@final
@attrs.frozen(slots=True)
class Deleted:
    """Notify the observers' runtimes that the object is gone (M-47).

    The host feeds `RuntimeNotified` for each answer, and `ObserversNotified` when the time is over.
    """

    runtimes: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Vacated:
    """The deleted object has no observers any more: remove what is left of it (SYN-22)."""


ObserverEffect: TypeAlias = (
    RowChanged | Granted | Renewed | Denied | ReporterAsked | CutOff | Expired
)
"""Effects about one observer."""

ReporterEffect: TypeAlias = Step | ObserverEffect | Obeyed | Published | Deleted | Vacated | Refused
