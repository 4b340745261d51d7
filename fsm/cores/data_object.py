"""The reporter's end of a data object: who may observe it, and what is published.

It counts versions, adds an observer before it gives out the snapshot (I-D6) and
lets nobody but the reporter write (I-D1). Connection objects of P2P links are
ordinary objects of this machinery.
"""

from typing import Final, assert_never, final

import attrs

from fsm.cores.data_object_terms import (
    Authorised,
    ChangeAsked,
    DeleteAsked,
    Deleted,
    Denied,
    Granted,
    ObserversTold,
    Published,
    Refused,
    ReporterAccepted,
    ReporterAsked,
    ReporterEffect,
    ReporterInput,
    ReporterRefused,
    RuntimeTold,
    SubscribeAsked,
    UnsubscribeAsked,
    Vacated,
)
from fsm.cores.effects import RowChanged
from fsm.cores.object_value import changed
from fsm.engine import Entity
from fsm.machines.object_subscription import OBJECT_SUBSCRIPTION, State, Trigger
from specs.address import runtime_of
from specs.body_sync import Change, ChangeObject, DataObject
from specs.reply_code import Code
from specs.trace import Op

__all__ = ["ReporterCore"]

_DELETED: Final = "the object is deleted"
_NOT_REPORTER: Final = "only the reporter may"
_LEFT: Final = "the observer left before the decision"
_INVITED: Final = "invited"


@final
@attrs.define
class _Subscription:
    """One observer's subscription, while it is requested or active.

    Attributes:
        manager: The sync manager that asked for it last.
    """

    entity: Entity
    manager: str

    @property
    def is_active(self) -> bool:
        return self.entity.state is State.ACTIVE

    @property
    def runtime(self) -> str:
        """By which it answers what all observers are asked (C-81)."""
        return runtime_of(self.manager)


@final
class ReporterCore:
    """The reporter's end of one data object.

    One entity of the machine `object_subscription` per observer. One that was refused or
    removed is forgotten: when it asks again, a new story begins under the same key.
    """

    def __init__(self, created: DataObject) -> None:
        self._object = created
        self._url = created.url
        self._authorised: set[str] = set()
        self._subscriptions: dict[str, _Subscription] = {}
        self._deleted = False

    @property
    def snapshot(self) -> DataObject:
        """The newest object, version included."""
        return self._object

    @property
    def observers(self) -> tuple[str, ...]:
        """Who observes, in the order they asked."""
        return tuple(who for who, each in self._subscriptions.items() if each.is_active)

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes of those who observe, each once."""
        active = [each for each in self._subscriptions.values() if each.is_active]
        return tuple(dict.fromkeys(each.runtime for each in active))

    @property
    def is_deleted(self) -> bool:
        """Whether there is nothing to observe, read or change any more."""
        return self._deleted

    def may_read(self, reader: str) -> bool:
        """Say whether the object is shown to `reader` (SYN-18)."""
        subscription = self._subscriptions.get(reader)
        is_observer = subscription is not None and subscription.is_active
        return is_observer or reader == self._object.reporter

    def feed(self, happened: ReporterInput) -> list[ReporterEffect]:
        """Take one input, say what is to be done."""
        match happened:
            case Authorised(observer):
                self._authorised.add(observer)
                return self._accept(observer, _INVITED)
            case SubscribeAsked(observer, manager):
                return self._subscribe(observer, manager)
            case ReporterAccepted() | ReporterRefused():
                return self._decided(happened)
            case UnsubscribeAsked(observer, manager):
                return self._leave(observer, manager)
            case ChangeAsked(by, change):
                return self._change(by, change)
            case DeleteAsked() | RuntimeTold() | ObserversTold():
                return self._end(happened)
            case _:
                assert_never(happened)

    # --- observers ------------------------------------------------------------------------

    def _subscribe(self, observer: str, manager: str) -> list[ReporterEffect]:
        if self._deleted:
            return [Denied(observer, manager, Code.NOT_FOUND, _DELETED)]
        subscription = self._subscriptions.get(observer)
        if subscription is not None:
            # A retry: whoever is active gets the object again, others wait on.
            subscription.manager = manager
            again = Granted(observer, manager, self._object)
            return [again] if subscription.is_active else []
        entity = Entity(OBJECT_SUBSCRIPTION, f"{self._url}|{observer}")
        self._subscriptions[observer] = _Subscription(entity, manager)
        begun = entity.step(Trigger.REQUEST)
        if observer in self._authorised:
            return [begun, *self._accept(observer, _INVITED)]
        return [begun, ReporterAsked(observer, entity.patience)]

    def _decided(self, decision: ReporterAccepted | ReporterRefused) -> list[ReporterEffect]:
        if isinstance(decision, ReporterAccepted):
            return self._accept(decision.observer)
        subscription = self._requested(decision.observer)
        if subscription is None:
            return []
        return self._refuse(decision.observer, Trigger.REFUSE, Code.FORBIDDEN, decision.why)

    def _requested(self, observer: str) -> _Subscription | None:
        subscription = self._subscriptions.get(observer)
        return None if subscription is None or subscription.is_active else subscription

    def _accept(self, observer: str, why: str = "") -> list[ReporterEffect]:
        subscription = self._requested(observer)
        if subscription is None:
            return []
        return [
            self._row(Op.ADD, observer),
            subscription.entity.step(Trigger.ACCEPT, why),
            Granted(observer, subscription.manager, self._object),
        ]

    def _refuse(
        self, observer: str, trigger: Trigger, code: Code, why: str
    ) -> list[ReporterEffect]:
        subscription = self._subscriptions.pop(observer)
        step = subscription.entity.step(trigger, why)
        return [step, Denied(observer, subscription.manager, code, why)]

    def _leave(self, observer: str, manager: str) -> list[ReporterEffect]:
        subscription = self._subscriptions.get(observer)
        if subscription is None or subscription.manager != manager:
            return []
        if not subscription.is_active:
            return self._refuse(observer, Trigger.UNSUBSCRIBE, Code.GONE, _LEFT)
        return [*self._remove(observer, Trigger.UNSUBSCRIBE), *self._vacated()]

    def _remove(self, observer: str, trigger: Trigger) -> list[ReporterEffect]:
        subscription = self._subscriptions.pop(observer)
        return [subscription.entity.step(trigger), self._row(Op.DEL, observer)]

    def _row(self, op: Op, observer: str) -> RowChanged:
        return RowChanged(op, "observers", self._url, observer, "sm")

    # --- the object -----------------------------------------------------------------------

    def _change(self, by: str, change: ChangeObject) -> list[ReporterEffect]:
        refused = self._refusal(by)
        if refused is not None:
            return [refused]
        version = self._object.version + 1
        data = changed(self._object.data, change)
        self._object = attrs.evolve(self._object, version=version, data=data)
        published = Change(
            version,
            change.attribute,
            change.value,
            change.attribute_type,
            change.operation,
            source=by,
        )
        return [Published(published)]

    def _end(self, happened: DeleteAsked | RuntimeTold | ObserversTold) -> list[ReporterEffect]:
        if not isinstance(happened, DeleteAsked):
            return self._told(happened)
        refused = self._refusal(happened.by)
        if refused is not None:
            return [refused]
        self._deleted = True
        effects: list[ReporterEffect] = []
        for observer in [who for who, each in self._subscriptions.items() if not each.is_active]:
            effects += self._refuse(observer, Trigger.OBJECT_DELETED, Code.NOT_FOUND, _DELETED)
        return [*effects, Deleted(self.runtimes), *self._vacated()]

    def _told(self, told: RuntimeTold | ObserversTold) -> list[ReporterEffect]:
        if not self._deleted or not self._subscriptions:
            return []
        runtimes = (told.runtime,) if isinstance(told, RuntimeTold) else self.runtimes
        effects: list[ReporterEffect] = []
        for observer in self.observers:
            if self._subscriptions[observer].runtime in runtimes:
                effects += self._remove(observer, Trigger.OBJECT_DELETED)
        return [*effects, *self._vacated()]

    def _vacated(self) -> list[ReporterEffect]:
        return [Vacated()] if self._deleted and not self._subscriptions else []

    def _refusal(self, by: str) -> Refused | None:
        if self._deleted:
            return Refused(Code.NOT_FOUND, _DELETED)
        if by != self._object.reporter:
            return Refused(Code.FORBIDDEN, _NOT_REPORTER)
        return None
