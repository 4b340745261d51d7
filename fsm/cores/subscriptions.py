"""Which runtimes get what is sent to an address (MN-14..MN-17, I-M5..I-M7).

Each pair of an address and a runtime is an entity of `fsm.machines.node_subscription`. A
node may hold millions, so none is kept as an object: the tables of pairs keep its state,
and who the owner consented to, in the places where dictionaries have room for a value
anyway, and a step makes the entity anew.

A path on a part of somebody else's object is held until the owner consents to an observer
of the runtime (S3, T4); with the last observer it is held again. What the owner has
agreed to holds for all paths of the runtime on that object, also for those that follow.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from sys import intern
from typing import Final, TypeAlias, TypeVar, assert_never, final

from fsm.cores.effects import RowChanged
from fsm.cores.refused import Refused
from fsm.cores.subscription_terms import (
    AddressGone,
    Consented,
    Declined,
    Effect,
    Ending,
    Input,
    Opened,
    RuntimeGone,
    Subscribe,
    Unsubscribe,
    Withdrawn,
    entity_of,
)
from fsm.engine import Entity, Step
from fsm.machines.node_subscription import NODE_SUBSCRIPTION, State, Trigger
from specs.limits import MAX_SUBSCRIPTIONS
from specs.reply_code import Code
from specs.trace import Op

__all__ = ["SubscriptionCore"]

V = TypeVar("V")

_Observers: TypeAlias = str | tuple[str, ...] | None
"""Whom the owner consented to: one, several; None: the path needs no consent."""

_OF_REGISTRY: Final = "/registration"
"""Where the domain registry tells of a record; it does so when the address is nobody's, too."""


@final
class SubscriptionCore:
    """The subscription table of one node."""

    def __init__(self) -> None:
        self._runtimes: dict[str, dict[str, _Observers]] = {}
        self._held: dict[str, dict[str, None]] = {}
        self._resources: dict[str, dict[str, State]] = {}
        self._parts: dict[str, dict[str, None]] = {}

    def subscribers(self, resource: str) -> Collection[str]:
        """Return the runtimes that are delivered what goes to an address, oldest first."""
        return self._runtimes.get(resource, ())

    def held(self, resource: str) -> Collection[str]:
        """Return the runtimes whose path on an address waits for its owner."""
        return self._held.get(resource, ())

    def resources_of(self, runtime: str) -> tuple[str, ...]:
        """Return what a runtime has paths on, oldest first, held ones included."""
        return tuple(self._resources.get(runtime, ()))

    def observes(self, runtime: str, entity: str) -> bool:
        """Say whether a runtime has a path on an entity that needs its owner's consent."""
        return any(
            state is State.HELD or self._runtimes[one][runtime] is not None
            for one, state in self._paths(runtime, entity)
        )

    def has_room(self, runtime: str, resources: Collection[str]) -> bool:
        """Say whether a runtime may have paths on these, too."""
        held = self._resources.get(runtime, {})
        fresh = {one for one in resources if one not in held}
        return len(held) + len(fresh) <= MAX_SUBSCRIPTIONS

    def __len__(self) -> int:
        return sum(map(len, self._resources.values()))

    def deadline(self) -> float:
        """Return when to be fed again: never, paths live as long as sessions."""
        return math.inf

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Decide; `now` is not looked at."""
        del now
        match happened:
            case Subscribe():
                return self._subscribe(happened)
            case Unsubscribe() | RuntimeGone() | AddressGone():
                return list(self._end(happened))
            case Consented(entity, runtime, observer):
                return list(self._admit(entity, runtime, observer))
            case Declined(entity, runtime, observer):
                return list(self._refuse(entity, runtime, observer))
            case Withdrawn(entity, runtime, observer):
                return list(self._withdraw(entity, runtime, observer))
            case Opened(entity):
                return list(self._open(entity))
            case _:
                assert_never(happened)

    # ---- set and removed

    def _subscribe(self, wish: Subscribe) -> list[Effect]:
        held = self._resources.get(wish.runtime, {})
        fresh = [one for one in dict.fromkeys(wish.resources) if one not in held]
        if not self.has_room(wish.runtime, wish.resources):
            return [Refused(Code.TOO_LARGE, f"a session has at most {MAX_SUBSCRIPTIONS} paths")]
        return [
            effect
            for resource in fresh
            for effect in (
                self._ask(resource, wish.runtime)
                if resource in wish.asking
                else self._add(resource, wish.runtime, Trigger.SUBSCRIBE, None)
            )
        ]

    def _ask(self, resource: str, runtime: str) -> tuple[Step, RowChanged]:
        """Set a path that needs consent; it has it already if a path beside it has."""
        observers = self._consents(runtime, entity_of(resource))
        trigger = Trigger.HOLD if observers is None else Trigger.SUBSCRIBE
        return self._add(resource, runtime, trigger, observers)

    def _add(
        self, resource: str, runtime: str, trigger: Trigger, observers: _Observers
    ) -> tuple[Step, RowChanged]:
        step = Entity(NODE_SUBSCRIPTION, _key(resource, runtime)).step(trigger)
        self._place(resource, runtime, State(step.new), observers)
        self._parts.setdefault(entity_of(resource), {})[resource] = None
        return step, _row(Op.ADD, resource, runtime)

    def _end(self, ended: Ending) -> Iterator[Effect]:
        match ended:
            case Unsubscribe(runtime, resources):
                mine = self._resources.get(runtime, {})
                pairs = [(one, runtime) for one in dict.fromkeys(resources) if one in mine]
                yield from self._remove(pairs, Trigger.UNSUBSCRIBE)
            case RuntimeGone(runtime):
                pairs = [(one, runtime) for one in self.resources_of(runtime)]
                yield from self._remove(pairs, Trigger.SESSION_OVER)
            case AddressGone(address):
                pairs = list(self._at_or_below(address))
                yield from self._remove(pairs, Trigger.ADDRESS_RELEASED)
            case _:
                assert_never(ended)

    def _remove(self, pairs: Iterable[tuple[str, str]], trigger: Trigger) -> Iterator[Effect]:
        for resource, runtime in pairs:
            yield self._recalled(resource, runtime).step(trigger)
            self._lift(resource, runtime)
            _take_out(self._resources, runtime, resource)
            if resource not in self._runtimes and resource not in self._held:
                _take_out(self._parts, entity_of(resource), resource)
            yield _row(Op.DEL, resource, runtime)

    def _at_or_below(self, address: str) -> Iterator[tuple[str, str]]:
        for resource in self._parts.get(entity_of(address), ()):
            if resource == address or self._goes_with(resource, address):
                for table in (self._runtimes, self._held):
                    for runtime in table.get(resource, ()):
                        yield resource, runtime

    @staticmethod
    def _goes_with(resource: str, address: str) -> bool:
        return resource.startswith(f"{address}/") and not resource.endswith(_OF_REGISTRY)

    # ---- consent

    def _admit(self, entity: str, runtime: str, observer: str) -> Iterator[Effect]:
        observer = intern(observer)
        for resource, state in self._paths(runtime, entity):
            if state is State.HELD:
                yield self._turn(resource, runtime, Trigger.CONSENT, observer)
            else:
                there = self._runtimes[resource]
                there[runtime] = _joined(there[runtime], observer)

    def _refuse(self, entity: str, runtime: str, observer: str) -> Iterator[Effect]:
        yield from self._withdraw(entity, runtime, observer)
        paths = self._paths(runtime, entity)
        held = [(resource, runtime) for resource, state in paths if state is State.HELD]
        yield from self._remove(held, Trigger.REFUSE)

    def _withdraw(self, entity: str, runtime: str, observer: str) -> Iterator[Effect]:
        for resource, state in self._paths(runtime, entity):
            known = self._runtimes[resource][runtime] if state is State.ACTIVE else None
            if known is not None:
                left = self._runtimes[resource][runtime] = _without(known, observer)
                if left is None:
                    yield self._turn(resource, runtime, Trigger.WITHDRAW, None)

    def _open(self, entity: str) -> Iterator[Effect]:
        for resource in tuple(self._parts.get(entity, ())):
            for runtime in tuple(self._held.get(resource, ())):
                yield self._turn(resource, runtime, Trigger.CONSENT, None)

    def _consents(self, runtime: str, entity: str) -> _Observers:
        """Return what holds already for other paths of a runtime on an entity."""
        for resource, state in self._paths(runtime, entity):
            if state is State.ACTIVE and self._runtimes[resource][runtime] is not None:
                return self._runtimes[resource][runtime]
        return None

    # ---- the tables

    def _paths(self, runtime: str, entity: str) -> list[tuple[str, State]]:
        """Return the paths of a runtime on an entity; the smaller table is gone through."""
        parts, mine = self._parts.get(entity), self._resources.get(runtime)
        if parts is None or mine is None:
            return []
        if len(parts) <= len(mine):
            return [(one, mine[one]) for one in parts if one in mine]
        return [(one, state) for one, state in mine.items() if one in parts]

    def _recalled(self, resource: str, runtime: str) -> Entity:
        state = self._resources[runtime][resource]
        return Entity.recalled(NODE_SUBSCRIPTION, _key(resource, runtime), state)

    def _turn(self, resource: str, runtime: str, trigger: Trigger, observers: _Observers) -> Step:
        step = self._recalled(resource, runtime).step(trigger)
        self._lift(resource, runtime)
        self._place(resource, runtime, State(step.new), observers)
        return step

    def _place(self, resource: str, runtime: str, state: State, observers: _Observers) -> None:
        if state is State.HELD:
            self._held.setdefault(resource, {})[runtime] = None
        else:
            self._runtimes.setdefault(resource, {})[runtime] = observers
        self._resources.setdefault(runtime, {})[resource] = state

    def _lift(self, resource: str, runtime: str) -> None:
        """Take a path out of the table of its state."""
        if self._resources[runtime][resource] is State.HELD:
            _take_out(self._held, resource, runtime)
        else:
            _take_out(self._runtimes, resource, runtime)


def _key(resource: str, runtime: str) -> str:
    return f"{resource}|{runtime}"


def _joined(known: _Observers, observer: str) -> _Observers:
    """Return whom is consented to after one more yes; a path that needs none needs none."""
    match known:
        case None:
            return None
        case str():
            return known if known == observer else (known, observer)
        case _:
            return known if observer in known else (*known, observer)


def _without(known: str | tuple[str, ...], observer: str) -> _Observers:
    """Return whom is still consented to; None: nobody."""
    if isinstance(known, str):
        return None if known == observer else known
    left = tuple(one for one in known if one != observer)
    return left if len(left) > 1 else left[0]


def _take_out(table: dict[str, dict[str, V]], row: str, value: str) -> None:
    """Remove a value from a row, and the row when it was the last (I-X2)."""
    del table[row][value]
    if not table[row]:
        del table[row]


def _row(op: Op, resource: str, runtime: str) -> RowChanged:
    return RowChanged(op, "subs", resource, runtime, "sm")
