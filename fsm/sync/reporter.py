"""The reporter's end of a data object: its observers, and the changes to publish.

It counts versions, adds an observer before it gives out the snapshot (I-D6) and lets only
the reporter write (I-D1). Connection objects of P2P links are ordinary objects of this
machinery.

Each subscription is an entity of the machine `object_subscription`. One that was refused or
removed is forgotten: the next one of that observer is a new entity under the same key.

The reporter is not asked about allowed observers (SYN-04, SYN-11): invited and allowed ones; of
a public object, all. After an observer was expelled its reporter decides on each request, even
if the object is public (SYN-18, SYN-21).

Of an object that its reporter wants stored, all that an observer could have seen, or relies on,
is stored before it is sent (SYN-25).
"""

from collections.abc import Collection, Iterable
from typing import Final, Protocol

import attrs

from fsm.effects import Refused, RowChanged
from fsm.engine import Entity, Step
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION, State, Trigger
from fsm.sync import stored
from fsm.sync.value.value import changed, published_change
from specs.addresses.address import runtime_of
from specs.bodies.object import Change, ChangeObject, DataObject
from specs.jsonvalue import ABSENT, value_at
from specs.limits.sync import MAX_ALLOWED_OBSERVERS, MAX_UNDECIDED
from specs.reply_code import Code
from specs.trace import Op

_ALLOWED: Final = "invited"
_PUBLIC: Final = "public"

_DELETED: Final = "the object is deleted"
_NOT_REPORTER: Final = "only the reporter may"
_LEFT: Final = "the observer left before the decision"
_EXPELLED: Final = "the reporter expelled the observer"
_CROWD: Final = "too many observe, or wait for the reporter to decide; ask again later"
_NO_ROOM: Final = f"{MAX_ALLOWED_OBSERVERS} observers are allowed already; expel one of them first"
_RESTORED: Final = "it observed before a restart"


class ReportPort(Protocol):
    """What a reported object asks of its host; no method calls the object."""

    def step(self, step: Step) -> None:
        """Trace a step of a subscription."""

    def row(self, row: RowChanged) -> None:
        """Trace a change of the observers, or of those that are allowed (I-D9)."""

    def keep(self, change: stored.Keep) -> None:
        """Store a change, if the object is stored; what follows is sent when that is done."""

    def written(self, snapshot: DataObject) -> None:
        """Trace that the object has a new version."""

    def publish(self, change: Change) -> None:
        """Publish a change, whose version is set (M-40)."""

    def lease(self, observer: str, seconds: int | None) -> None:
        """Begin the lease of an observer anew; None: it has none, or none any more."""

    def ask(self, observer: str, patience: float, question: int) -> None:
        """Ask the reporter whether an observer may subscribe (M-39).

        Args:
            observer: Address of the observer.
            patience: Seconds after which silence is a refusal.
            question: Number of the question, for `accept` and `refuse`.
        """

    def grant(
        self, observer: str, snapshot: DataObject, lease: int | None, *, is_renewal: bool
    ) -> None:
        """Answer a subscription with the newest object; the observer is added already.

        Args:
            observer: Address of the observer.
            snapshot: The object.
            lease: Seconds that the subscription lasts; None: it needs no renewal.
            is_renewal: Whether it observed before.
        """

    def renew(self, observer: str, lease: int | None) -> None:
        """Answer the renewal of a subscription whose observer has the newest object."""

    def deny(self, observer: str, code: Code, why: str) -> None:
        """Answer a subscription with a refusal."""

    def cut_off(self, observer: str, manager: str, *, is_over: bool) -> None:
        """Send an observer no more messages, whether it reacts or not.

        Args:
            observer: Address of the observer.
            manager: The sync manager that subscribed it; empty: it was no observer, and may
                have read the object.
            is_over: Whether its lease is over, and it may subscribe again; else it was expelled.
        """

    def end(self, runtimes: tuple[str, ...]) -> None:
        """Notify the observers' runtimes that the object is deleted (M-47).

        The host calls `notified` for each answer, and when the time for them is over.
        """

    def vacate(self) -> None:
        """Remove what is left of the deleted object: it has no observers any more (SYN-22)."""


@attrs.define
class _Subscription:
    """One observer's subscription, while it is requested or active.

    Attributes:
        manager: The sync manager that asked for it last.
        lease: Seconds for which it is granted; None: it lasts.
        question: Number of the question to the reporter.
    """

    entity: Entity
    manager: str
    lease: int | None
    question: int

    @property
    def is_active(self) -> bool:
        return self.entity.state is State.ACTIVE


class ReportedObject:
    """The reporter's end of one data object.

    Args:
        created: The object.
        port: The host.
        allowed: Observers allowed from the beginning; at most `MAX_ALLOWED_OBSERVERS` are taken.
        expelled: Observers that are not allowed although the object is public; as many at most.
        is_public: Whether all other observers are allowed.

    Attributes:
        snapshot: The newest object, version included.
        is_public: True if all observers are allowed but those that were expelled.
        is_deleted: True if there is nothing to observe, read or change any more.
    """

    def __init__(
        self,
        created: DataObject,
        port: ReportPort,
        allowed: tuple[str, ...] = (),
        expelled: tuple[str, ...] = (),
        *,
        is_public: bool = False,
    ) -> None:
        self.snapshot = created
        self.is_public: Final = is_public
        self.is_deleted = False
        self._port = port
        self._allowed = dict.fromkeys(allowed[:MAX_ALLOWED_OBSERVERS])
        self._expelled = dict.fromkeys(expelled[-MAX_ALLOWED_OBSERVERS:] if is_public else ())
        # Expelled observers that may not know of it yet, and try to renew their subscriptions.
        self._shut_out = dict.fromkeys(expelled[-MAX_ALLOWED_OBSERVERS:])
        self._subscriptions: dict[str, _Subscription] = {}
        self._undecided = 0
        self._questions = 0

    # --- queries ------------------------------------------------------------------------------

    @property
    def observers(self) -> tuple[str, ...]:
        """The observers, in the order of their subscriptions."""
        return tuple(who for who, each in self._subscriptions.items() if each.is_active)

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes of the observers, each once; it answers for all of its own (C-81)."""
        all_ = self._subscriptions.values()
        return tuple(dict.fromkeys([runtime_of(each.manager) for each in all_ if each.is_active]))

    @property
    def asking(self) -> tuple[str, ...]:
        """The runtimes of observers without a decision; a runtime may occur twice."""
        all_ = self._subscriptions.values()
        return tuple(runtime_of(each.manager) for each in all_ if not each.is_active)

    def is_observed_by(self, observer: str) -> bool:
        """Return whether a hyperty observes the object."""
        subscription = self._subscriptions.get(observer)
        return subscription is not None and subscription.is_active

    def lease_of(self, observer: str) -> int | None:
        """Return the lease of an observer in seconds; None: its subscription needs no renewal."""
        return self._subscriptions[observer].lease if self.is_observed_by(observer) else None

    def may_read(self, reader: str) -> bool:
        """Return whether `reader` may read the object (SYN-18)."""
        is_welcome = self.is_observed_by(reader) or bool(self._welcome(reader))
        return is_welcome or reader == self.snapshot.reporter

    def _welcome(self, observer: str) -> str:
        """Return why an observer is allowed; empty: its reporter is to be asked."""
        if observer in self._allowed:
            return _ALLOWED
        return _PUBLIC if self.is_public and observer not in self._expelled else ""

    # --- begin --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Store and trace the object, which is new."""
        self._port.keep(stored.ObjectKept(self.snapshot.url, self.snapshot, self.is_public))
        for observer in self._allowed:
            self._port.keep(stored.GuestKept(self.snapshot.url, observer, may=True))
        self._port.written(self.snapshot)
        for observer in (*self._allowed, *((_PUBLIC,) if self.is_public else ())):
            self._trace_guest(Op.ADD, observer)

    def restore(self, observers: Iterable[stored.ObserverKept]) -> None:
        """Restore the observers of an earlier process; each is a new entity in this process."""
        for one in observers:
            entity = self._enter(one.observer, one.manager, one.lease)
            self._port.step(entity.step(Trigger.REQUEST, _RESTORED))
            self._trace_observer(Op.ADD, one.observer)
            self._port.step(entity.step(Trigger.ACCEPT, _RESTORED))
            self._port.lease(one.observer, one.lease)

    # --- observers ----------------------------------------------------------------------------

    def subscribe(
        self, observer: str, manager: str, lease: int | None = None, version: int | None = None
    ) -> None:
        """Take a subscription, its repetition or its renewal (M-38).

        Args:
            observer: The true observer.
            manager: The sync manager that sent the request.
            lease: Seconds for which it is granted; None: it is never renewed, and lasts.
            version: Version of the observer's copy, if this renews its subscription.
        """
        if self.is_deleted:
            self._port.deny(observer, Code.NOT_FOUND, _DELETED)
        elif observer in self._subscriptions:
            self._renew(observer, manager, lease, version)
        elif version is not None and observer in self._shut_out:
            self._port.deny(observer, Code.FORBIDDEN, _EXPELLED)
        else:
            self._shut_out.pop(observer, None)
            self._request(observer, manager, lease)

    def _request(self, observer: str, manager: str, lease: int | None) -> None:
        welcome = self._welcome(observer)
        is_answerable = bool(welcome) or self._undecided < MAX_UNDECIDED
        if not is_answerable or len(self._subscriptions) >= MAX_ALLOWED_OBSERVERS:
            self._port.deny(observer, Code.UNAVAILABLE, _CROWD)
            return
        self._undecided += 1
        self._questions += 1
        entity = self._enter(observer, manager, lease)
        self._port.step(entity.step(Trigger.REQUEST))
        if welcome:
            self._accept(observer, welcome)
        else:
            self._port.ask(observer, entity.patience, self._questions)

    def _enter(self, observer: str, manager: str, lease: int | None) -> Entity:
        entity = Entity(OBJECT_SUBSCRIPTION, f"{self.snapshot.url}|{observer}")
        self._subscriptions[observer] = _Subscription(entity, manager, lease, self._questions)
        return entity

    def _renew(self, observer: str, manager: str, lease: int | None, version: int | None) -> None:
        """Take a retry, or a renewal: an active observer gets the object again, others wait on.

        The object is not sent to an observer that has this version and the same terms.
        """
        there = self._subscriptions[observer]
        is_as_before = (there.manager, there.lease) == (manager, lease)
        there.manager, there.lease = manager, lease
        if not there.is_active:
            return
        is_known = is_as_before and version == self.snapshot.version
        if not is_known:
            self._port.keep(stored.ObserverKept(self.snapshot.url, observer, manager, lease))
        if lease is not None:
            self._port.step(there.entity.step(Trigger.RENEW))
        self._port.lease(observer, lease)
        if is_known:
            self._port.renew(observer, lease)
        else:
            self._port.grant(observer, self.snapshot, lease, is_renewal=True)

    def accept(self, observer: str, question: int) -> None:
        """Admit an observer: the reporter has accepted it (M-39 answered 200).

        An answer to an older question, from before an expulsion, does not count.
        """
        if self._is_asked(observer, question):
            self._accept(observer)

    def refuse(self, observer: str, why: str, question: int) -> None:
        """Refuse an observer: the reporter does, or has not answered in time."""
        if self._is_asked(observer, question):
            self._refuse(observer, Trigger.REFUSE, Code.FORBIDDEN, why)

    def _is_waiting(self, observer: str) -> bool:
        return observer in self._subscriptions and not self.is_observed_by(observer)

    def _is_asked(self, observer: str, question: int) -> bool:
        is_waiting = self._is_waiting(observer)
        return is_waiting and self._subscriptions[observer].question == question

    def _accept(self, observer: str, why: str = "") -> None:
        """Make a waiting observer active, before it is given the object (I-D6)."""
        subscription = self._subscriptions[observer]
        manager, lease = subscription.manager, subscription.lease
        self._undecided -= 1
        self._port.keep(stored.ObserverKept(self.snapshot.url, observer, manager, lease))
        self._trace_observer(Op.ADD, observer)
        self._port.step(subscription.entity.step(Trigger.ACCEPT, why))
        self._port.lease(observer, lease)
        self._port.grant(observer, self.snapshot, lease, is_renewal=False)

    def _refuse(self, observer: str, trigger: Trigger, code: Code, why: str) -> None:
        """Forget a waiting subscription, and answer it."""
        subscription = self._subscriptions.pop(observer)
        self._undecided -= 1
        self._port.step(subscription.entity.step(trigger, why))
        self._port.deny(observer, code, why)

    def _remove(self, observer: str, trigger: Trigger, why: str = "") -> None:
        """Forget an active observer."""
        subscription = self._subscriptions.pop(observer)
        self._port.keep(stored.Forgotten(stored.ObserverKept, (self.snapshot.url, observer)))
        self._port.step(subscription.entity.step(trigger, why))
        self._port.lease(observer, None)
        self._trace_observer(Op.DEL, observer)

    def unsubscribe(self, observer: str, manager: str) -> None:
        """Remove an observer that leaves (M-43); only the manager that brought it can say so."""
        there = self._subscriptions.get(observer)
        if there is None or there.manager != manager:
            return
        if there.is_active:
            self._remove(observer, Trigger.UNSUBSCRIBE)
            self._vacate()
        else:
            self._refuse(observer, Trigger.UNSUBSCRIBE, Code.GONE, _LEFT)

    def expire(self, observer: str) -> None:
        """Remove an observer that has not renewed its subscription; it may subscribe again."""
        if self.lease_of(observer) is not None:
            manager = self._subscriptions[observer].manager
            self._remove(observer, Trigger.EXPIRE)
            self._port.cut_off(observer, manager, is_over=True)
            self._vacate()

    # --- the reporter: a refusal is returned, else it is done -----------------------------------

    def authorise(self, observer: str) -> Refused | None:
        """Allow an invited observer, which may then subscribe unasked (SYN-04)."""
        if observer not in self._allowed and len(self._allowed) >= MAX_ALLOWED_OBSERVERS:
            return Refused(Code.TOO_LARGE, _NO_ROOM)
        self._shut_out.pop(observer, None)
        self._allowed[observer] = None
        self._expelled.pop(observer, None)
        self._trace_guest(Op.ADD, observer)
        self._port.keep(stored.GuestKept(self.snapshot.url, observer, may=True))
        if self._is_waiting(observer):
            self._accept(observer, _ALLOWED)
        return None

    def allow(self, by: str, observer: str) -> Refused | None:
        """Allow an observer; only the reporter may."""
        return self._refusal(by) or self.authorise(observer)

    def expel(self, by: str, observer: str) -> Refused | None:
        """Withdraw the allowance and the subscription of an observer; it may ask again (SYN-21).

        Beyond `MAX_ALLOWED_OBSERVERS` the observers that were expelled first are forgotten.
        """
        refusal = self._refusal(by)
        if refusal is not None:
            return refusal
        self._allowed.pop(observer, None)
        for expelled in (self._shut_out, *((self._expelled,) if self.is_public else ())):
            expelled[observer] = None
            if len(expelled) > MAX_ALLOWED_OBSERVERS:
                del expelled[next(iter(expelled))]
        self._trace_guest(Op.DEL, observer)
        key = self.snapshot.url, observer
        if self.is_public:
            self._port.keep(stored.GuestKept(*key, may=False))
        else:
            self._port.keep(stored.Forgotten(stored.GuestKept, key))
        there = self._subscriptions.get(observer)
        if there is not None and there.is_active:
            self._remove(observer, Trigger.UNSUBSCRIBE, _EXPELLED)
        elif there is not None:
            self._refuse(observer, Trigger.REFUSE, Code.FORBIDDEN, _EXPELLED)
        self._port.cut_off(observer, "" if there is None else there.manager, is_over=False)
        return None

    def change(self, by: str, change: ChangeObject) -> Refused | None:
        """Change the object, and publish the change; only the reporter may (I-D1)."""
        refusal = self._refusal(by)
        if refusal is None:
            self._change(by, change)
        return refusal

    def remove(self, by: str, attribute: str) -> Refused | None:
        """Delete an attribute at a dotted path; if it is absent, nothing is changed (M-46)."""
        refusal = self._refusal(by)
        if refusal is None and value_at(self.snapshot.data, attribute) is not ABSENT:
            self._change(by, ChangeObject(self.snapshot.url, attribute))
        return refusal

    def _change(self, by: str, change: ChangeObject) -> None:
        before, version = self.snapshot.data, self.snapshot.version + 1
        data = changed(before, change)
        self.snapshot = attrs.evolve(self.snapshot, version=version, data=data)
        self._port.keep(stored.ObjectKept(self.snapshot.url, self.snapshot, self.is_public))
        self._port.written(self.snapshot)
        self._port.publish(published_change(before, data, change, version, by))

    def _refusal(self, by: str) -> Refused | None:
        if self.is_deleted:
            return Refused(Code.NOT_FOUND, _DELETED)
        if by != self.snapshot.reporter:
            return Refused(Code.FORBIDDEN, _NOT_REPORTER)
        return None

    # --- end ----------------------------------------------------------------------------------

    def delete(self, by: str) -> Refused | None:
        """Delete the object; only its reporter may (M-46)."""
        refusal = self._refusal(by)
        if refusal is None:
            self.is_deleted = True
            self._port.keep(stored.Forgotten(stored.ObjectKept, (self.snapshot.url,)))
            for observer in [who for who in self._subscriptions if self._is_waiting(who)]:
                self._refuse(observer, Trigger.OBJECT_DELETED, Code.NOT_FOUND, _DELETED)
            self._port.end(self.runtimes)
            self._vacate()
        return refusal

    def notified(self, runtimes: Collection[str] | None = None) -> None:
        """Remove the observers in runtimes that know that the object is deleted (SYN-22).

        Args:
            runtimes: Addresses of the runtimes; None: all, as the time to answer is over.
        """
        if self.is_deleted and self._subscriptions:
            for who, each in list(self._subscriptions.items()):
                if runtimes is None or runtime_of(each.manager) in runtimes:
                    self._remove(who, Trigger.OBJECT_DELETED)
            self._vacate()

    def _vacate(self) -> None:
        if self.is_deleted and not self._subscriptions:
            self._port.vacate()

    def end_all(self) -> None:
        """End all subscriptions without messages: the runtime stops."""
        waiting = [who for who in self._subscriptions if self._is_waiting(who)]
        for observer in (*waiting, *self.observers):
            entity = self._subscriptions.pop(observer).entity
            why = _DELETED if observer in waiting else ""
            self._port.step(entity.step(Trigger.OBJECT_DELETED, why))

    # --- traces -------------------------------------------------------------------------------

    def _trace_observer(self, op: Op, observer: str) -> None:
        self._port.row(RowChanged(op, "observers", self.snapshot.url, observer, "sm"))

    def _trace_guest(self, op: Op, observer: str) -> None:
        writer = self.snapshot.reporter
        self._port.row(RowChanged(op, "guests", self.snapshot.url, observer, writer))
