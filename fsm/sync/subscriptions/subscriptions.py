"""Which runtimes get what is sent to an address (MN-14..MN-17, I-M5..I-M7).

Each pair of an address and a runtime is an entity of `fsm.machines.node_subscription`. A
node may hold millions, so none is kept as an object: `fsm.sync.subscriptions.path_table` keeps
its state, and who the owner consented to, and a step makes the entity anew.

A path on a part of somebody else's object is held until the owner consents to an observer
of the runtime (S3, T4); with the last observer it is held again. What the owner has
agreed to holds for all paths of the runtime on that object, also for those that follow.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from sys import intern
from typing import Final, assert_never, final

from fsm.effects import RowChanged
from fsm.engine import Entity, Step
from fsm.machines.node_subscription import NODE_SUBSCRIPTION, State, Trigger
from fsm.refused import Refused
from fsm.sync.subscriptions.consented import Observers, each, joined, one_or_more, without
from fsm.sync.subscriptions.io import (
    AddressGone,
    Consent,
    Consented,
    Declined,
    Effect,
    Ending,
    Input,
    Lapsed,
    Moved,
    Opened,
    RuntimeGone,
    Subscribe,
    Unsubscribe,
    Withdrawn,
    entity_of,
)
from fsm.sync.subscriptions.path_table import PathTable
from specs.limits.protocol import MAX_SUBSCRIPTIONS
from specs.reply_code import Code
from specs.trace import Op

__all__ = ["SubscriptionCore"]

_OF_REGISTRY: Final = "/registration"
"""Where the domain registry tells of a record; it does so when the address is nobody's, too."""

_OBSERVED: Final = ("/changes", "/children/")
"""How parts of an object begin on which observers have paths."""


@final
class SubscriptionCore:
    """The subscription table of one node."""

    def __init__(self) -> None:
        self._paths = PathTable()

    def subscribers(self, resource: str) -> Collection[str]:
        """Return the runtimes that are delivered what goes to an address, oldest first."""
        return self._paths.active(resource)

    def is_heard_by(self, resource: str, runtime: str, observer: str) -> bool:
        """Say whether what goes to an address goes to a runtime for this observer's sake.

        Where nobody had to consent, it goes there for all who live there.
        """
        there = self._paths.active(resource)
        if runtime not in there:
            return False
        observers = there[runtime]
        return observers is None or observer in each(observers)

    def held(self, resource: str) -> Collection[str]:
        """Return the runtimes whose path on an address waits for its owner."""
        return self._paths.held(resource)

    def resources_of(self, runtime: str) -> tuple[str, ...]:
        """Return what a runtime has paths on, oldest first, held ones included."""
        return tuple(self._paths.of(runtime))

    def observes(self, runtime: str, entity: str) -> bool:
        """Say whether a runtime has a path on an entity that needs its owner's consent."""
        return any(
            state is State.HELD or self._paths.active(one)[runtime] is not None
            for one, state in self._paths.on(runtime, entity)
        )

    def has_room(self, runtime: str, resources: Collection[str]) -> bool:
        """Say whether a runtime may have paths on these, too."""
        held = self._paths.of(runtime)
        fresh = {one for one in resources if one not in held}
        return len(held) + len(fresh) <= MAX_SUBSCRIPTIONS

    def __len__(self) -> int:
        return len(self._paths)

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
            case Moved():
                return list(self._move(happened))
            case _:
                return list(self._consent(happened))

    def _consent(self, happened: Consent) -> Iterator[Effect]:
        match happened:
            case Consented(entity, runtime, observer):
                yield from self._admit(entity, runtime, observer)
            case Declined(entity, runtime, observer):
                yield from self._refuse(entity, runtime, observer, Trigger.REFUSE)
            case Lapsed(entity, runtime, observer):
                yield from self._refuse(entity, runtime, observer, Trigger.EXPIRE)
            case Withdrawn(entity, runtime, observer):
                yield from self._withdraw(entity, runtime, observer)
            case Opened(entity):
                yield from self._open(entity)
            case _:
                assert_never(happened)

    # ---- set and removed

    def _subscribe(self, wish: Subscribe) -> list[Effect]:
        held = self._paths.of(wish.runtime)
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
        self, resource: str, runtime: str, trigger: Trigger, observers: Observers
    ) -> tuple[Step, RowChanged]:
        step = Entity(NODE_SUBSCRIPTION, _key(resource, runtime)).step(trigger)
        self._paths.put(resource, runtime, State(step.new), observers)
        return step, _row(Op.ADD, resource, runtime)

    def _end(self, ended: Ending) -> Iterator[Effect]:
        match ended:
            case Unsubscribe(runtime, resources):
                mine = self._paths.of(runtime)
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
            self._paths.take_out(resource, runtime)
            yield _row(Op.DEL, resource, runtime)

    def _at_or_below(self, address: str) -> Iterator[tuple[str, str]]:
        for resource in self._paths.parts(entity_of(address)):
            if resource == address or self._goes_with(resource, address):
                for runtime in (*self._paths.active(resource), *self._paths.held(resource)):
                    yield resource, runtime

    @staticmethod
    def _goes_with(resource: str, address: str) -> bool:
        return resource.startswith(f"{address}/") and not resource.endswith(_OF_REGISTRY)

    # ---- consent

    def _admit(self, entity: str, runtime: str, observer: str) -> Iterator[Effect]:
        observer = intern(observer)
        for resource, state in self._paths.on(runtime, entity):
            if state is State.HELD:
                yield self._turn(resource, runtime, Trigger.CONSENT, observer)
            else:
                known = self._paths.active(resource)[runtime]
                self._paths.agree(resource, runtime, joined(known, observer))

    def _refuse(
        self, entity: str, runtime: str, observer: str, trigger: Trigger
    ) -> Iterator[Effect]:
        yield from self._withdraw(entity, runtime, observer)
        paths = self._paths.on(runtime, entity)
        held = [(resource, runtime) for resource, state in paths if state is State.HELD]
        yield from self._remove(held, trigger)

    def _withdraw(self, entity: str, runtime: str, observer: str) -> Iterator[Effect]:
        for resource, state in self._paths.on(runtime, entity):
            known = self._paths.active(resource)[runtime] if state is State.ACTIVE else None
            if known is not None:
                left = without(known, observer)
                self._paths.agree(resource, runtime, left)
                if left is None:
                    yield self._turn(resource, runtime, Trigger.WITHDRAW, None)

    def _open(self, entity: str) -> Iterator[Effect]:
        for resource in tuple(self._paths.parts(entity)):
            for runtime in tuple(self._paths.held(resource)):
                yield self._turn(resource, runtime, Trigger.CONSENT, None)

    def _move(self, moved: Moved) -> Iterator[Effect]:
        """Give an object's own paths to its new owner, and let the old one be an observer."""
        entity, old, new = moved.entity, moved.old, moved.new
        paths = [resource for resource, _ in self._paths.on(old, entity)]
        own = [one for one in paths if not _is_observed(one.removeprefix(entity))]
        goes = own if moved.observers else paths
        yield from self._remove([(one, old) for one in goes], Trigger.UNSUBSCRIBE)
        for resource, state in self._paths.on(old, entity):
            if state is State.ACTIVE:
                self._paths.agree(resource, old, one_or_more(moved.observers))
        for resource, state in self._paths.on(new, entity):
            if state is State.HELD:
                yield self._turn(resource, new, Trigger.CONSENT, None)
            else:
                self._paths.agree(resource, new, None)
        held = self._paths.of(new)
        for resource in [one for one in own if one not in held]:
            yield from self._add(resource, new, Trigger.SUBSCRIBE, None)

    def _consents(self, runtime: str, entity: str) -> Observers:
        """Return what holds already for other paths of a runtime on an entity."""
        for resource, state in self._paths.on(runtime, entity):
            known = self._paths.active(resource)[runtime] if state is State.ACTIVE else None
            if known is not None:
                return known
        return None

    def _recalled(self, resource: str, runtime: str) -> Entity:
        state = self._paths.state(resource, runtime)
        return Entity.recalled(NODE_SUBSCRIPTION, _key(resource, runtime), state)

    def _turn(self, resource: str, runtime: str, trigger: Trigger, observers: Observers) -> Step:
        step = self._recalled(resource, runtime).step(trigger)
        self._paths.turn(resource, runtime, State(step.new), observers)
        return step


def _key(resource: str, runtime: str) -> str:
    return f"{resource}|{runtime}"


def _is_observed(part: str) -> bool:
    return part.startswith(_OBSERVED)


def _row(op: Op, resource: str, runtime: str) -> RowChanged:
    return RowChanged(op, "subs", resource, runtime, "sm")
