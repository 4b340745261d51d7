"""The reporter's end of a data object: its observers, and the changes to publish.

It counts versions, adds an observer before it gives out the snapshot (I-D6) and lets only
the reporter write (I-D1). Connection objects of P2P links are ordinary objects of this
machinery.

The reporter is not asked about allowed observers (SYN-04, SYN-11): invited and allowed ones; of
a public object, all. After an observer was expelled its reporter decides on each request, even
if the object is public (SYN-18, SYN-21).
"""

from collections.abc import Iterable
from typing import Final, assert_never, final

import attrs

from fsm.effects import Refused
from fsm.machines.sync.object_subscription import Trigger
from fsm.sync.observers import ObjectObservers, Watcher
from fsm.sync.reporter_io import (
    AllowAsked,
    Authorised,
    ChangeAsked,
    CutOff,
    DeleteAsked,
    Deleted,
    Denied,
    ExpelAsked,
    Expired,
    LeaseOver,
    Obeyed,
    ObserversNotified,
    Published,
    RemovalAsked,
    ReporterAccepted,
    ReporterEffect,
    ReporterInput,
    ReporterRefused,
    RuntimeNotified,
    SubscribeAsked,
    UnsubscribeAsked,
    Vacated,
)
from fsm.sync.value.value import changed, published_change
from specs.bodies.sync import ChangeObject, DataObject
from specs.jsonvalue import ABSENT, value_at
from specs.limits.sync import MAX_ALLOWED_OBSERVERS
from specs.reply_code import Code

__all__ = ["ALLOWED", "PUBLIC", "AllowedObservers", "ReporterCore"]

ALLOWED: Final = "invited"
PUBLIC: Final = "public"


@final
class AllowedObservers:
    """The allowed observers of one object.

    Args:
        allowed: Observers allowed from the beginning; at most `MAX_ALLOWED_OBSERVERS` are taken.
        expelled: Observers that are not allowed although the object is public; as many at most.
        is_public: Whether all other observers are allowed.
    """

    def __init__(
        self,
        allowed: tuple[str, ...] = (),
        expelled: tuple[str, ...] = (),
        *,
        is_public: bool = False,
    ) -> None:
        self._allowed = dict.fromkeys(allowed[:MAX_ALLOWED_OBSERVERS])
        self._is_public = is_public
        self._expelled = dict.fromkeys(expelled[:MAX_ALLOWED_OBSERVERS])
        self._shut_out: dict[str, None] = {}
        self._changed: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._allowed)

    @property
    def is_public(self) -> bool:
        """True if all observers are allowed but those that were expelled."""
        return self._is_public

    @property
    def allowed(self) -> tuple[str, ...]:
        """The observers that were invited or allowed, in that order."""
        return tuple(self._allowed)

    def said_of(self, observer: str) -> bool | None:
        """Return whether an observer was allowed (True) or expelled (False); None: neither."""
        if observer in self._allowed:
            return True
        return False if observer in self._expelled else None

    def changes(self) -> tuple[str, ...]:
        """Return the observers that were allowed or expelled since the last call."""
        said, self._changed = tuple(self._changed), {}
        return said

    def welcome(self, observer: str) -> str:
        """Return why an observer is allowed; empty: its reporter is to be asked."""
        if observer in self._allowed:
            return ALLOWED
        return PUBLIC if self._is_public and observer not in self._expelled else ""

    def allow(self, observer: str) -> bool:
        """Allow an observer; False: the limit is reached."""
        if observer not in self._allowed and len(self) >= MAX_ALLOWED_OBSERVERS:
            return False
        self._changed[observer] = None
        self._shut_out.pop(observer, None)
        self._allowed[observer] = None
        self._expelled.pop(observer, None)
        return True

    def expel(self, observer: str) -> None:
        """Withdraw the allowance of an observer.

        Beyond `MAX_ALLOWED_OBSERVERS` the observers that were expelled first are forgotten.
        """
        self._allowed.pop(observer, None)
        self._changed[observer] = None
        _note(self._shut_out, observer)
        if self._is_public:
            _note(self._expelled, observer)

    def may_renew(self, observer: str) -> bool:
        """Return whether an observer whose subscription ended may renew it without a new decision.

        An observer that was expelled may not: it may not know of that yet.
        """
        return observer not in self._shut_out

    def asks_anew(self, observer: str) -> None:
        """Note that an observer subscribes anew: it knows that its subscription has ended."""
        self._shut_out.pop(observer, None)


def _note(expelled: dict[str, None], observer: str) -> None:
    expelled[observer] = None
    if len(expelled) > MAX_ALLOWED_OBSERVERS:
        del expelled[next(iter(expelled))]


_DELETED: Final = "the object is deleted"
_NOT_REPORTER: Final = "only the reporter may"
_LEFT: Final = "the observer left before the decision"
_EXPELLED: Final = "the reporter expelled the observer"
_CROWD: Final = "too many observe, or wait for the reporter to decide; ask again later"
_NO_ROOM: Final = f"{MAX_ALLOWED_OBSERVERS} observers are allowed already; expel one of them first"


@final
class ReporterCore:
    """The reporter's end of one data object.

    Args:
        created: The object.
        guests: The allowed observers.
    """

    def __init__(self, created: DataObject, guests: AllowedObservers | None = None) -> None:
        self._object = created
        self._guests = AllowedObservers() if guests is None else guests
        self._observers = ObjectObservers(created.url)
        self._deleted = False

    @property
    def snapshot(self) -> DataObject:
        """The newest object, version included."""
        return self._object

    @property
    def guests(self) -> AllowedObservers:
        """The allowed observers."""
        return self._guests

    @property
    def observers(self) -> tuple[str, ...]:
        """The observers, in the order of their subscriptions."""
        return self._observers.active

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes of the observers, each once."""
        return self._observers.runtimes

    @property
    def asking(self) -> tuple[str, ...]:
        """The runtimes of observers without a decision; a runtime may occur twice."""
        return self._observers.asking

    @property
    def is_deleted(self) -> bool:
        """True if there is nothing to observe, read or change any more."""
        return self._deleted

    def lease_of(self, observer: str) -> int | None:
        """Return the lease of an observer in seconds; None: its subscription needs no renewal."""
        return self._observers.lease_of(observer)

    def may_read(self, reader: str) -> bool:
        """Return whether `reader` may read the object (SYN-18)."""
        is_welcome = self._observers.is_active(reader) or bool(self._guests.welcome(reader))
        return is_welcome or reader == self._object.reporter

    def feed(self, happened: ReporterInput) -> list[ReporterEffect]:
        """Take an input; return the effects, in order."""
        match happened:
            case Authorised() | AllowAsked() | ExpelAsked():
                return self._allowance(happened)
            case SubscribeAsked() | UnsubscribeAsked() | LeaseOver():
                return self._come_or_go(happened)
            case ReporterAccepted() | ReporterRefused():
                return self._decided(happened)
            case ChangeAsked() | RemovalAsked():
                return self._write(happened)
            case DeleteAsked() | RuntimeNotified() | ObserversNotified():
                return self._end(happened)
            case _:
                assert_never(happened)

    # --- observers ------------------------------------------------------------------------

    def _come_or_go(
        self, happened: SubscribeAsked | UnsubscribeAsked | LeaseOver
    ) -> list[ReporterEffect]:
        match happened:
            case SubscribeAsked():
                return self._subscribe(happened)
            case UnsubscribeAsked(observer, manager):
                return self._leave(observer, manager)
            case LeaseOver(observer):
                return self._expire(observer)
            case _:
                assert_never(happened)

    def _subscribe(self, asked: SubscribeAsked) -> list[ReporterEffect]:
        observer, manager = asked.observer, asked.manager
        if self._deleted:
            return [Denied(observer, manager, Code.NOT_FOUND, _DELETED)]
        if self._observers.manager_of(observer) is not None:
            return self._observers.again(asked, self._object)
        if asked.version is None:
            self._guests.asks_anew(observer)
        elif not self._guests.may_renew(observer):
            return [Denied(observer, manager, Code.FORBIDDEN, _EXPELLED)]
        welcome = self._guests.welcome(observer)
        if not self._observers.has_room(welcome):
            return [Denied(observer, manager, Code.UNAVAILABLE, _CROWD)]
        begun, question = self._observers.begin(asked, self._object.version)
        return [begun, *self._accept(observer, welcome)] if welcome else [begun, question]

    def _decided(self, decision: ReporterAccepted | ReporterRefused) -> list[ReporterEffect]:
        observer = decision.observer
        if not self._observers.is_asked(observer, decision.question):
            # An answer from before an expulsion does not count now.
            return []
        if isinstance(decision, ReporterAccepted):
            return self._accept(observer)
        return self._observers.refuse(observer, Trigger.REFUSE, Code.FORBIDDEN, decision.why)

    def _accept(self, observer: str, why: str = "") -> list[ReporterEffect]:
        return self._observers.accept(observer, why, self._object)

    def _leave(self, observer: str, manager: str) -> list[ReporterEffect]:
        if self._observers.manager_of(observer) != manager:
            return []
        if self._observers.is_waiting(observer):
            return self._observers.refuse(observer, Trigger.UNSUBSCRIBE, Code.GONE, _LEFT)
        return [*self._observers.remove(observer, Trigger.UNSUBSCRIBE), *self._vacated()]

    def _expire(self, observer: str) -> list[ReporterEffect]:
        """Remove an observer that has not renewed its subscription; it may subscribe again."""
        manager = self._observers.manager_of(observer)
        if manager is None or self.lease_of(observer) is None:
            return []
        gone = self._observers.remove(observer, Trigger.EXPIRE)
        return [*gone, Expired(observer, manager), *self._vacated()]

    def recall(self, observers: Iterable[Watcher]) -> list[ReporterEffect]:
        """Restore the observers of an earlier process."""
        return self._observers.recall(observers)

    # --- allowances -----------------------------------------------------------------------

    def _allowance(self, change: Authorised | AllowAsked | ExpelAsked) -> list[ReporterEffect]:
        if isinstance(change, Authorised):
            return self._allow(change.observer)
        refused = self._refusal(change.by)
        if refused is not None:
            return [refused]
        if isinstance(change, ExpelAsked):
            return [*self._expel(change.observer), Obeyed()]
        effects = self._allow(change.observer)
        is_full = any(isinstance(each, Refused) for each in effects)
        return effects if is_full else [*effects, Obeyed()]

    def _allow(self, observer: str) -> list[ReporterEffect]:
        if not self._guests.allow(observer):
            return [Refused(Code.TOO_LARGE, _NO_ROOM)]
        return self._accept(observer, ALLOWED)

    def _expel(self, observer: str) -> list[ReporterEffect]:
        """Withdraw the allowance and the subscription of an observer; it may ask again."""
        self._guests.expel(observer)
        manager = self._observers.manager_of(observer)
        if manager is None:
            return [CutOff(observer)]
        if self._observers.is_waiting(observer):
            gone = self._observers.refuse(observer, Trigger.REFUSE, Code.FORBIDDEN, _EXPELLED)
        else:
            gone = self._observers.remove(observer, Trigger.UNSUBSCRIBE, _EXPELLED)
        return [*gone, CutOff(observer, manager)]

    # --- the object -----------------------------------------------------------------------

    def _write(self, asked: ChangeAsked | RemovalAsked) -> list[ReporterEffect]:
        refused = self._refusal(asked.by)
        if refused is not None:
            return [refused]
        if isinstance(asked, ChangeAsked):
            return self._change(asked.by, asked.change)
        if value_at(self._object.data, asked.attribute) is ABSENT:
            return [Obeyed()]
        return self._change(asked.by, ChangeObject(self._object.url, asked.attribute))

    def _change(self, by: str, change: ChangeObject) -> list[ReporterEffect]:
        version = self._object.version + 1
        data = changed(self._object.data, change)
        published = published_change(self._object.data, data, change, version, by)
        self._object = attrs.evolve(self._object, version=version, data=data)
        return [Published(published)]

    def _end(
        self, happened: DeleteAsked | RuntimeNotified | ObserversNotified
    ) -> list[ReporterEffect]:
        if not isinstance(happened, DeleteAsked):
            return self._notified(happened)
        refused = self._refusal(happened.by)
        if refused is not None:
            return [refused]
        self._deleted = True
        waited = self._observers.refuse_all(Trigger.OBJECT_DELETED, Code.NOT_FOUND, _DELETED)
        return [*waited, Deleted(self.runtimes), *self._vacated()]

    def _notified(self, notified: RuntimeNotified | ObserversNotified) -> list[ReporterEffect]:
        if not self._deleted or not self._observers:
            return []
        runtimes = (notified.runtime,) if isinstance(notified, RuntimeNotified) else self.runtimes
        left = self._observers.remove_all(Trigger.OBJECT_DELETED, runtimes)
        return [*left, *self._vacated()]

    def _vacated(self) -> list[ReporterEffect]:
        return [Vacated()] if self._deleted and not self._observers else []

    def _refusal(self, by: str) -> Refused | None:
        if self._deleted:
            return Refused(Code.NOT_FOUND, _DELETED)
        if by != self._object.reporter:
            return Refused(Code.FORBIDDEN, _NOT_REPORTER)
        return None
