"""The reporter's end of a data object: who may observe it, and what is published.

It counts versions, adds an observer before it gives out the snapshot (I-D6) and
lets nobody but the reporter write (I-D1). Connection objects of P2P links are
ordinary objects of this machinery.
"""

from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.cores.object_value import changed
from specs.body_sync import Change, DataObject
from specs.reply_code import Code

__all__ = [
    "Authorised",
    "ChangeAsked",
    "DeleteAsked",
    "Deleted",
    "Denied",
    "Granted",
    "Left",
    "Published",
    "Refused",
    "ReporterAccepted",
    "ReporterAsked",
    "ReporterCore",
    "ReporterEffect",
    "ReporterInput",
    "ReporterRefused",
    "SubscribeAsked",
    "UnsubscribeAsked",
]


# --- the reporter's end: what happens ---------------------------------------------------


@final
@attrs.frozen(slots=True)
class Authorised:
    """The reporter invites an observer, which may then subscribe unasked (SYN-04)."""

    observer: str


@final
@attrs.frozen(slots=True)
class SubscribeAsked:
    """An observer wants to subscribe (M-38).

    Attributes:
        observer: The true observer.
        manager: The sync manager that asks for it.
    """

    observer: str
    manager: str


@final
@attrs.frozen(slots=True)
class ReporterAccepted:
    """The reporter said yes to an observer (M-39 answered 200)."""

    observer: str


@final
@attrs.frozen(slots=True)
class ReporterRefused:
    """The reporter said no, or nothing, to an observer."""

    observer: str
    why: str


@final
@attrs.frozen(slots=True)
class UnsubscribeAsked:
    """An observer leaves (M-43); only the manager that brought it can say so."""

    observer: str
    manager: str


@final
@attrs.frozen(slots=True)
class ChangeAsked:
    """Somebody wants to change the object; only its reporter may (I-D1)."""

    by: str
    change: Change


@final
@attrs.frozen(slots=True)
class DeleteAsked:
    """Somebody wants to delete the object; only its reporter may (M-46)."""

    by: str


ReporterInput: TypeAlias = (
    Authorised
    | SubscribeAsked
    | ReporterAccepted
    | ReporterRefused
    | UnsubscribeAsked
    | ChangeAsked
    | DeleteAsked
)


# --- the reporter's end: what is to be done ---------------------------------------------


@final
@attrs.frozen(slots=True)
class Granted:
    """Answer the subscription with the newest object; the observer is added already."""

    observer: str
    manager: str
    snapshot: DataObject


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
    """Ask the reporter whether the observer may subscribe (M-39)."""

    observer: str


@final
@attrs.frozen(slots=True)
class Published:
    """Publish a change (M-40); its version is set."""

    change: Change


@final
@attrs.frozen(slots=True)
class Left:
    """An observer left and is told nothing more (I-D7)."""

    observer: str


@final
@attrs.frozen(slots=True)
class Deleted:
    """Tell the observers' sync managers that the object is gone (M-47)."""

    managers: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Refused:
    """Refuse a change or a deletion."""

    code: Code
    why: str


ReporterEffect: TypeAlias = Granted | Denied | ReporterAsked | Published | Left | Deleted | Refused

_DELETED: Final = "the object is deleted"
_NOT_REPORTER: Final = "only the reporter may"


@final
class ReporterCore:
    """The reporter's end of one data object."""

    def __init__(self, created: DataObject) -> None:
        self._object = created
        self._authorised: set[str] = set()
        self._asking: dict[str, str] = {}
        self._observers: dict[str, str] = {}
        self._deleted = False

    @property
    def snapshot(self) -> DataObject:
        """The newest object, version included."""
        return self._object

    @property
    def observers(self) -> tuple[str, ...]:
        """Who observes, in order of subscription."""
        return tuple(self._observers)

    def feed(self, happened: ReporterInput) -> list[ReporterEffect]:
        """Take one input, say what is to be done."""
        match happened:
            case Authorised(observer):
                self._authorised.add(observer)
                return []
            case SubscribeAsked(observer, manager):
                return self._subscribe(observer, manager)
            case ReporterAccepted() | ReporterRefused():
                return self._decided(happened)
            case UnsubscribeAsked(observer, manager):
                return self._leave(observer, manager)
            case ChangeAsked(by, change):
                return self._change(by, change)
            case DeleteAsked(by):
                return self._delete(by)
            case _:
                assert_never(happened)

    def _subscribe(self, observer: str, manager: str) -> list[ReporterEffect]:
        if self._deleted:
            return [Denied(observer, manager, Code.NOT_FOUND, _DELETED)]
        if observer in self._authorised or observer in self._observers:
            return [self._admit(observer, manager)]
        asked = observer in self._asking
        self._asking[observer] = manager
        return [] if asked else [ReporterAsked(observer)]

    def _decided(self, decision: ReporterAccepted | ReporterRefused) -> list[ReporterEffect]:
        observer = decision.observer
        manager = self._asking.pop(observer, None)
        if manager is None:
            return []
        if self._deleted:
            return [Denied(observer, manager, Code.NOT_FOUND, _DELETED)]
        if isinstance(decision, ReporterRefused):
            return [Denied(observer, manager, Code.FORBIDDEN, decision.why)]
        return [self._admit(observer, manager)]

    def _admit(self, observer: str, manager: str) -> Granted:
        self._observers[observer] = manager
        return Granted(observer, manager, self._object)

    def _leave(self, observer: str, manager: str) -> list[ReporterEffect]:
        if self._observers.get(observer) != manager:
            return []
        del self._observers[observer]
        return [Left(observer)]

    def _change(self, by: str, change: Change) -> list[ReporterEffect]:
        refused = self._refusal(by)
        if refused is not None:
            return [refused]
        version = self._object.version + 1
        data = changed(self._object.data, change)
        self._object = attrs.evolve(self._object, version=version, data=data)
        return [Published(attrs.evolve(change, version=version, source=by))]

    def _delete(self, by: str) -> list[ReporterEffect]:
        refused = self._refusal(by)
        if refused is not None:
            return [refused]
        self._deleted = True
        managers = tuple(dict.fromkeys(self._observers.values()))
        self._observers = {}
        return [Deleted(managers)]

    def _refusal(self, by: str) -> Refused | None:
        if self._deleted:
            return Refused(Code.NOT_FOUND, _DELETED)
        if by != self._object.reporter:
            return Refused(Code.FORBIDDEN, _NOT_REPORTER)
        return None
