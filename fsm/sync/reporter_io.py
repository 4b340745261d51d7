"""What happens to the reporter's end of a data object, and what is to be done about it."""

from typing import TypeAlias, final

import attrs

from fsm.effects import RowChanged
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
    "HandedTo",
    "Held",
    "LeaseOver",
    "Obeyed",
    "ObserverEffect",
    "ObserversTold",
    "Published",
    "Question",
    "Refused",
    "Released",
    "Renewed",
    "ReporterAccepted",
    "ReporterAsked",
    "ReporterEffect",
    "ReporterInput",
    "ReporterRefused",
    "RuntimeTold",
    "SubscribeAsked",
    "UnsubscribeAsked",
    "Vacated",
]


@final
@attrs.frozen(slots=True)
class Question:
    """Which question to the reporter an answer is to; none is ever asked twice.

    Attributes:
        version: Of the object when it was asked: it is higher after each hand-over.
        number: Of the questions since the object came here, from 1.
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
    """Somebody wants to let an observer in unasked; only the reporter may."""

    by: str
    observer: str


@final
@attrs.frozen(slots=True)
class ExpelAsked:
    """Somebody wants an observer out; only the reporter may (SYN-21)."""

    by: str
    observer: str


@final
@attrs.frozen(slots=True)
class SubscribeAsked:
    """An observer wants to subscribe (M-38).

    Attributes:
        observer: The true observer.
        manager: The sync manager that asks for it.
        lease: Seconds for which it is granted; None: it is never renewed, and lasts.
        version: Of the copy that the observer has, if this renews its subscription.
    """

    observer: str
    manager: str
    lease: int | None = None
    version: int | None = None


@final
@attrs.frozen(slots=True)
class ReporterAccepted:
    """The reporter said yes to an observer (M-39 answered 200).

    Attributes:
        question: What it said yes to; to one that is over, it means nothing.
    """

    observer: str
    question: Question


@final
@attrs.frozen(slots=True)
class ReporterRefused:
    """The reporter said no to an observer, or nothing in time."""

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
    """Somebody wants to change the object; only its reporter may (I-D1)."""

    by: str
    change: ChangeObject


@final
@attrs.frozen(slots=True)
class DeleteAsked:
    """Somebody wants to delete the object; only its reporter may (M-46)."""

    by: str


@final
@attrs.frozen(slots=True)
class RuntimeTold:
    """A runtime of `Deleted` knows that the object is gone: its answer to M-47 (C-81)."""

    runtime: str


@final
@attrs.frozen(slots=True)
class ObserversTold:
    """Those of `Deleted` were told, or did not answer in time (M-47, SYN-22)."""


@final
@attrs.frozen(slots=True)
class Held:
    """The object is being handed over: nothing of it changes, nobody comes or goes (SYN-26)."""


@final
@attrs.frozen(slots=True)
class Released:
    """It was not handed over: all goes on."""


@final
@attrs.frozen(slots=True)
class HandedTo:
    """Another component of this runtime reports the object from now on (SYN-26)."""

    reporter: str


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
    | DeleteAsked
    | RuntimeTold
    | ObserversTold
    | Held
    | Released
    | HandedTo
)


# --- what is to be done -----------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Granted:
    """Answer the subscription with the newest object; the observer is added already.

    Attributes:
        lease: Seconds for which it is; None: it lasts.
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
        question: What the decision has to name.
    """

    observer: str
    patience: float
    question: Question


@final
@attrs.frozen(slots=True)
class Obeyed:
    """Tell the reporter that what it asked for is so; there is nothing to say besides."""


@final
@attrs.frozen(slots=True)
class CutOff:
    """See to it that an expelled observer hears nothing more, whether it reacts or not.

    Attributes:
        manager: The sync manager that brought it; empty: it was no observer, and may have
            heard something as a reader.
    """

    observer: str
    manager: str = ""


@final
@attrs.frozen(slots=True)
class Expired:
    """Have an observer whose lease is over hear nothing more; it may subscribe again.

    Attributes:
        manager: The sync manager that brought it.
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
    """Tell the observers' runtimes that the object is gone (M-47).

    What they answer is `RuntimeTold`; of those that do not, `ObserversTold`.
    """

    runtimes: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Vacated:
    """Nobody observes the deleted object any more: take down what is left of it (SYN-22)."""


@final
@attrs.frozen(slots=True)
class Refused:
    """Refuse a change or a deletion."""

    code: Code
    why: str


ObserverEffect: TypeAlias = (
    RowChanged | Granted | Renewed | Denied | ReporterAsked | CutOff | Expired
)
"""What is to be done about one observer."""

ReporterEffect: TypeAlias = Step | ObserverEffect | Obeyed | Published | Deleted | Vacated | Refused
