"""The subscriptions to one data object, and the list of its observers that its reporter sees.

One entity of the machine `object_subscription` per observer. A subscription that was refused
or removed is forgotten: the next one of that observer is a new entity under the same key.

The reporter's hyperty gets each change of the list in a numbered message (SYN-23, M-53). A
gap in the numbers shows what is missing, and the whole list is read. A reader of joins and
leaves gets each of them while it keeps up, and otherwise the difference from the list that
it saw last: taken in order they always lead to the present list.
"""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias, final

import attrs

from fsm.effects import RowChanged
from fsm.engine import Entity, Step
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION, State, Trigger
from fsm.sync.reporter_io import (
    Denied,
    Granted,
    Question,
    Renewed,
    ReporterAsked,
    ReporterEffect,
    SubscribeAsked,
)
from specs.addresses.address import runtime_of
from specs.bodies.object import ObserverList, ObserversChange
from specs.bodies.sync import DataObject
from specs.bodies.word import Operation
from specs.limits.sync import MAX_ALLOWED_OBSERVERS, MAX_UNDECIDED, OBSERVER_CHANGES_KEPT
from specs.reply_code import Code
from specs.trace import Op

__all__ = [
    "ObjectObservers",
    "ObserverJoined",
    "ObserverLeft",
    "ObserverMove",
    "ObserversCore",
    "ObserversSeen",
    "Watcher",
]


@final
@attrs.frozen
class ObserverJoined:
    """A hyperty observes the object from now on."""

    observer: str


@final
@attrs.frozen
class ObserverLeft:
    """An observer is gone: it left, was expelled, or its runtime is gone."""

    observer: str


ObserverMove: TypeAlias = ObserverJoined | ObserverLeft


@final
class ObserversCore:
    """The observers of one object."""

    def __init__(self) -> None:
        self._version = 0
        self._newest = 0
        self._there: dict[str, None] = {}

    @property
    def observers(self) -> tuple[str, ...]:
        """The observers, in the order they came."""
        return tuple(self._there)

    @property
    def is_behind(self) -> bool:
        """True if a change was missed: the whole list is to be read."""
        return self._newest > self._version

    def changed(self, change: ObserversChange) -> list[ObserverMove]:
        """Take a change of the list; return the joins and leaves."""
        version = change.version or self._version + 1
        is_next = version == self._version + 1 and not self.is_behind
        self._newest = max(self._newest, version)
        if not is_next:
            return []
        self._version = version
        if change.operation == Operation.ADD:
            return self._join(change.value)
        return self._leave(change.value)

    def read(self, whole: ObserverList) -> list[ObserverMove]:
        """Take the whole list; return the difference."""
        if whole.version < self._version:
            return []
        self._version = whole.version
        self._newest = max(self._newest, whole.version)
        before, self._there = self._there, dict.fromkeys(whole.observers)
        return _moves(before, self._there)

    def _join(self, observers: tuple[str, ...]) -> list[ObserverMove]:
        fresh = [one for one in dict.fromkeys(observers) if one not in self._there]
        self._there.update(dict.fromkeys(fresh))
        return [ObserverJoined(one) for one in fresh]

    def _leave(self, observers: tuple[str, ...]) -> list[ObserverMove]:
        gone = [one for one in dict.fromkeys(observers) if one in self._there]
        for one in gone:
            del self._there[one]
        return [ObserverLeft(one) for one in gone]


@final
class ObserversSeen:
    """The position of one reader in the joins and leaves, which starts with the present list.

    Args:
        seen: The observers when it began.
    """

    def __init__(self, seen: tuple[str, ...]) -> None:
        self._seen = dict.fromkeys(seen)
        self._waiting: Final[deque[ObserverMove]] = deque()
        self._is_behind = False

    def add(self, moves: list[ObserverMove]) -> None:
        """Add joins and leaves; of too many only the difference is kept."""
        self._waiting.extend(moves)
        if len(self._waiting) > OBSERVER_CHANGES_KEPT:
            self._waiting.clear()
            self._is_behind = True

    def next(self, observers: tuple[str, ...]) -> ObserverMove | None:
        """Return the next move; None: there is none now.

        Args:
            observers: The current observers.
        """
        if self._is_behind:
            self._waiting.clear()
            self._waiting.extend(_moves(self._seen, dict.fromkeys(observers)))
            self._is_behind = False
        if not self._waiting:
            return None
        move = self._waiting.popleft()
        if isinstance(move, ObserverJoined):
            self._seen[move.observer] = None
        else:
            del self._seen[move.observer]
        return move


def _moves(before: dict[str, None], after: dict[str, None]) -> list[ObserverMove]:
    left = [ObserverLeft(one) for one in before if one not in after]
    return [*left, *(ObserverJoined(one) for one in after if one not in before)]


@final
@attrs.frozen(slots=True)
class Watcher:
    """An observer, and the sync manager that asked for it.

    Attributes:
        lease: Seconds for which its subscription is granted; None: it lasts.
    """

    observer: str
    manager: str
    lease: int | None = None


_RECALLED: Final = "it observed before a restart"


@final
@attrs.define
class _Subscription:
    """One observer's subscription, while it is requested or active.

    Attributes:
        manager: The sync manager that asked for it last.
        lease: Seconds for which it is granted; None: it lasts.
        question: What the reporter is asked; None: it need not be.
    """

    entity: Entity
    manager: str
    lease: int | None = None
    question: Question | None = None

    @property
    def is_active(self) -> bool:
        return self.entity.state is State.ACTIVE

    @property
    def runtime(self) -> str:
        """The runtime by which it answers requests to all observers (C-81)."""
        return runtime_of(self.manager)


@final
class ObjectObservers:
    """The subscriptions to one object, in the order of their requests.

    Args:
        url: Address of the object.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._all: dict[str, _Subscription] = {}
        self._undecided = 0
        self._asked = 0

    def __len__(self) -> int:
        return len(self._all)

    @property
    def active(self) -> tuple[str, ...]:
        """The observers."""
        return tuple(who for who, each in self._all.items() if each.is_active)

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes of the observers, each once."""
        active = [each for each in self._all.values() if each.is_active]
        return tuple(dict.fromkeys(each.runtime for each in active))

    @property
    def asking(self) -> tuple[str, ...]:
        """The runtimes of observers without a decision; a runtime may occur twice."""
        return tuple(each.runtime for each in self._all.values() if not each.is_active)

    def is_active(self, observer: str) -> bool:
        """Return whether a hyperty observes the object."""
        subscription = self._all.get(observer)
        return subscription is not None and subscription.is_active

    def is_waiting(self, observer: str) -> bool:
        """Return whether a subscription waits for a decision."""
        subscription = self._all.get(observer)
        return subscription is not None and not subscription.is_active

    def is_asked(self, observer: str, question: Question) -> bool:
        """Return whether a subscription waits for the answer to this question, not to an older one.

        Args:
            observer: Address of the observer.
            question: The question to the reporter.
        """
        return self.is_waiting(observer) and self._all[observer].question == question

    def manager_of(self, observer: str) -> str | None:
        """Return the sync manager of an observer, waiting or active; None: no subscription."""
        subscription = self._all.get(observer)
        return None if subscription is None else subscription.manager

    def lease_of(self, observer: str) -> int | None:
        """Return the lease of an observer in seconds; None: its subscription needs no renewal."""
        return self._all[observer].lease if self.is_active(observer) else None

    def has_room(self, welcome: str) -> bool:
        """Return whether one more observer and one more question are within the limits.

        Args:
            welcome: Why the reporter need not be asked; empty: it is to be asked.
        """
        is_answerable = bool(welcome) or self._undecided < MAX_UNDECIDED
        return is_answerable and len(self._all) < MAX_ALLOWED_OBSERVERS

    # --- one of them ----------------------------------------------------------------------

    def begin(self, asked: SubscribeAsked, version: int) -> tuple[Step, ReporterAsked]:
        """Let a subscription wait for a decision; return the question, should it be needed.

        Args:
            asked: The subscription.
            version: Version of the object.
        """
        observer = asked.observer
        entity = self._enter(Watcher(observer, asked.manager, asked.lease))
        self._undecided += 1
        self._asked += 1
        question = self._all[observer].question = Question(version, self._asked)
        return entity.step(Trigger.REQUEST), ReporterAsked(observer, entity.patience, question)

    def again(self, asked: SubscribeAsked, now: DataObject) -> list[ReporterEffect]:
        """Take a retry, or a renewal: an active observer gets the object again, others wait on.

        The object is not sent to an observer that has this version and the same terms.

        Args:
            asked: The repeated subscription.
            now: The object as it is now.
        """
        observer, lease = asked.observer, asked.lease
        there = self._all[observer]
        is_as_before = (there.manager, there.lease) == (asked.manager, lease)
        there.manager, there.lease = asked.manager, lease
        if not there.is_active:
            return []
        steps = [] if lease is None else [there.entity.step(Trigger.RENEW)]
        if is_as_before and asked.version == now.version:
            return [*steps, Renewed(observer, lease)]
        return [*steps, Granted(observer, asked.manager, now, lease, is_renewal=True)]

    def accept(self, observer: str, why: str, now: DataObject) -> list[ReporterEffect]:
        """Make a waiting observer active, before it is given the object (I-D6); ignore others.

        Args:
            observer: Address of the observer.
            why: The reason, as half a sentence, for the trace.
            now: The object as it is now.
        """
        if not self.is_waiting(observer):
            return []
        subscription = self._all[observer]
        self._undecided -= 1
        return [
            self._row(Op.ADD, observer),
            subscription.entity.step(Trigger.ACCEPT, why),
            Granted(observer, subscription.manager, now, subscription.lease),
        ]

    def refuse(self, observer: str, trigger: Trigger, code: Code, why: str) -> list[ReporterEffect]:
        """Forget a waiting subscription, and answer it.

        Args:
            observer: Address of the observer, which waits.
            trigger: The event that ends the subscription.
            code: Code of the answer.
            why: Description in the answer.
        """
        subscription = self._all.pop(observer)
        self._undecided -= 1
        step = subscription.entity.step(trigger, why)
        return [step, Denied(observer, subscription.manager, code, why)]

    def remove(self, observer: str, trigger: Trigger, why: str = "") -> list[ReporterEffect]:
        """Forget an active observer.

        Args:
            observer: Address of the observer, which is active.
            trigger: The event that ends the subscription.
            why: The reason, as half a sentence, for the trace.
        """
        subscription = self._all.pop(observer)
        return [subscription.entity.step(trigger, why), self._row(Op.DEL, observer)]

    # --- many of them ---------------------------------------------------------------------

    def refuse_all(self, trigger: Trigger, code: Code, why: str) -> list[ReporterEffect]:
        """Forget all waiting subscriptions, and answer them.

        Args:
            trigger: The event that ends them.
            code: Code of the answers.
            why: Description in the answers.
        """
        waiting = [who for who, each in self._all.items() if not each.is_active]
        return [one for who in waiting for one in self.refuse(who, trigger, code, why)]

    def remove_all(self, trigger: Trigger, runtimes: Collection[str]) -> list[ReporterEffect]:
        """Forget all active observers in some runtimes.

        Args:
            trigger: The event that ends their subscriptions.
            runtimes: Addresses of the runtimes.
        """
        gone = [who for who in self.active if self._all[who].runtime in runtimes]
        return [one for who in gone for one in self.remove(who, trigger)]

    def recall(self, watchers: Iterable[Watcher]) -> list[ReporterEffect]:
        """Restore the observers of an earlier process.

        Each subscription is a new entity in this process.
        """
        effects: list[ReporterEffect] = []
        for one in watchers:
            entity = self._enter(one)
            begun = entity.step(Trigger.REQUEST, _RECALLED)
            row = self._row(Op.ADD, one.observer)
            effects += [begun, row, entity.step(Trigger.ACCEPT, _RECALLED)]
        return effects

    def _enter(self, one: Watcher) -> Entity:
        entity = Entity(OBJECT_SUBSCRIPTION, f"{self._url}|{one.observer}")
        self._all[one.observer] = _Subscription(entity, one.manager, one.lease)
        return entity

    def _row(self, op: Op, observer: str) -> RowChanged:
        return RowChanged(op, "observers", self._url, observer, "sm")
