"""What happens to an observer's copy of a data object, and what is to be done about it."""

from typing import TypeAlias, final

import attrs

from fsm.engine import Step
from specs.bodies.sync import Change, DataObject, Snapshot
from specs.jsonvalue import JsonObject

__all__ = [
    "Applied",
    "Changed",
    "CopyTimeOver",
    "GivenUp",
    "NotFound",
    "ObserveBegun",
    "ObserverEffect",
    "ObserverGone",
    "ObserverInput",
    "ReadFailed",
    "ReadNeeded",
    "Recalled",
    "SnapshotRead",
    "WithdrawnByReporter",
]


# --- what happens -----------------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class ObserveBegun:
    """The subscription was asked for (M-36); changes may come from now on."""


@final
@attrs.frozen(slots=True)
class Recalled:
    """The observer had the object before a restart, at this version (SYN-25, M-52)."""

    version: int
    data: JsonObject


@final
@attrs.frozen(slots=True)
class SnapshotRead:
    """The whole object came: with a subscription's answer, or because it was read."""

    snapshot: Snapshot | DataObject


@final
@attrs.frozen(slots=True)
class Changed:
    """A change was published (M-40)."""

    change: Change


@final
@attrs.frozen(slots=True)
class ReadFailed:
    """A read came to nothing for now: nobody answered, or there was no way.

    Attributes:
        read: Number of the read, as `ReadNeeded` gave it.
    """

    read: int
    why: str = ""


@final
@attrs.frozen(slots=True)
class NotFound:
    """A read found no such object: it is gone, or its reporter is not back yet.

    A node that has forgotten everything knows an object again only when its runtime came
    back: so this is the end only when it was said `GONE_READS` times in a row.

    Attributes:
        read: Number of the read, as `ReadNeeded` gave it.
    """

    read: int
    why: str = ""


@final
@attrs.frozen(slots=True)
class GivenUp:
    """The subscription or a read was refused for good, or the observer leaves."""

    why: str = ""


@final
@attrs.frozen(slots=True)
class WithdrawnByReporter:
    """The object was deleted by its reporter (M-47)."""


@final
@attrs.frozen(slots=True)
class CopyTimeOver:
    """The deadline is over."""


ObserverInput: TypeAlias = (
    ObserveBegun
    | Recalled
    | SnapshotRead
    | Changed
    | ReadFailed
    | NotFound
    | GivenUp
    | WithdrawnByReporter
    | CopyTimeOver
)


# --- what is to be done -----------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Applied:
    """The copy has a new value.

    Attributes:
        data: All of it, frozen.
        change: What made it of the version before; None: the whole object came.
    """

    version: int
    data: JsonObject
    change: Change | None = attrs.field(default=None, eq=False)


@final
@attrs.frozen(slots=True)
class ReadNeeded:
    """A change is missing, or may be: read the whole object (M-41).

    Attributes:
        read: Number of the read, for `ReadFailed`.
    """

    read: int


@final
@attrs.frozen(slots=True)
class ObserverGone:
    """Nothing will be applied any more (I-D7, I-D8)."""

    why: str = ""


ObserverEffect: TypeAlias = Step | Applied | ReadNeeded | ObserverGone
