"""Which runtimes get what is sent to an address (MN-14..MN-17, I-M5..I-M7).

Each pair of an address and a runtime is an entity of `fsm.machines.node_subscription`. A
node may hold millions, so none is kept as an object: the table of pairs has its state in
the place where a dictionary has room for a value anyway, and a step makes the entity anew.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias, TypeVar, assert_never, final

import attrs

from fsm.cores.effects import RowChanged
from fsm.cores.refused import Refused
from fsm.engine import Entity, Step
from fsm.machines.node_subscription import NODE_SUBSCRIPTION, State, Trigger
from specs.limits import MAX_SUBSCRIPTIONS
from specs.reply_code import Code
from specs.trace import Op

__all__ = [
    "AddressGone",
    "Effect",
    "Input",
    "RuntimeGone",
    "Subscribe",
    "SubscriptionCore",
    "Unsubscribe",
    "entity_of",
]

V = TypeVar("V")

_ENTITY_SLASHES: Final = 4


def entity_of(address: str) -> str:
    """Return the entity an address is part of: scheme, domain, first path segment."""
    return "/".join(address.split("/", _ENTITY_SLASHES)[:_ENTITY_SLASHES])


@final
@attrs.frozen(slots=True)
class Subscribe:
    """Deliver what goes to `resources` to `runtime` as well; all or none."""

    runtime: str
    resources: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Unsubscribe:
    """No longer deliver what goes to `resources` to `runtime`."""

    runtime: str
    resources: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class RuntimeGone:
    """The session of `runtime` is over (I-M4)."""

    runtime: str


@final
@attrs.frozen(slots=True)
class AddressGone:
    """An address was released: nobody is delivered what goes to it or below (MN-12)."""

    address: str


Input: TypeAlias = Subscribe | Unsubscribe | RuntimeGone | AddressGone


Effect: TypeAlias = Step | RowChanged | Refused


@final
class SubscriptionCore:
    """The subscription table of one node."""

    def __init__(self) -> None:
        self._runtimes: dict[str, dict[str, State]] = {}
        self._resources: dict[str, dict[str, None]] = {}
        self._parts: dict[str, dict[str, None]] = {}

    def subscribers(self, resource: str) -> Collection[str]:
        """Return the runtimes bound to an address, in the order they came."""
        return self._runtimes.get(resource, ())

    def resources_of(self, runtime: str) -> tuple[str, ...]:
        """Return what a runtime subscribes to, oldest first."""
        return tuple(self._resources.get(runtime, ()))

    def __len__(self) -> int:
        return sum(map(len, self._runtimes.values()))

    def deadline(self) -> float:
        """Return when to be fed again: never, paths live as long as sessions."""
        return math.inf

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Decide; `now` is not looked at."""
        del now
        match happened:
            case Subscribe(runtime, resources):
                return self._subscribe(runtime, resources)
            case Unsubscribe(runtime, resources):
                pairs = [(one, runtime) for one in resources]
                return list(self._remove(pairs, Trigger.UNSUBSCRIBE))
            case RuntimeGone(runtime):
                pairs = [(one, runtime) for one in self.resources_of(runtime)]
                return list(self._remove(pairs, Trigger.SESSION_OVER))
            case AddressGone(address):
                pairs = list(self._at_or_below(address))
                return list(self._remove(pairs, Trigger.ADDRESS_RELEASED))
            case _:
                assert_never(happened)

    def _subscribe(self, runtime: str, resources: tuple[str, ...]) -> list[Effect]:
        held = self._resources.get(runtime, {})
        fresh = [one for one in dict.fromkeys(resources) if one not in held]
        if len(held) + len(fresh) > MAX_SUBSCRIPTIONS:
            return [Refused(Code.TOO_LARGE, f"a session has at most {MAX_SUBSCRIPTIONS} paths")]
        return [effect for resource in fresh for effect in self._add(resource, runtime)]

    def _add(self, resource: str, runtime: str) -> tuple[Step, RowChanged]:
        entity = Entity(NODE_SUBSCRIPTION, _key(resource, runtime))
        step = entity.step(Trigger.SUBSCRIBE)
        self._runtimes.setdefault(resource, {})[runtime] = State(step.new)
        self._resources.setdefault(runtime, {})[resource] = None
        self._parts.setdefault(entity_of(resource), {})[resource] = None
        return step, _row(Op.ADD, resource, runtime)

    def _remove(self, pairs: Iterable[tuple[str, str]], trigger: Trigger) -> Iterator[Effect]:
        for resource, runtime in pairs:
            state = self._runtimes.get(resource, {}).get(runtime)
            if state is not None:
                entity = Entity.recalled(NODE_SUBSCRIPTION, _key(resource, runtime), state)
                yield entity.step(trigger)
                _take_out(self._runtimes, resource, runtime)
                _take_out(self._resources, runtime, resource)
                if resource not in self._runtimes:
                    _take_out(self._parts, entity_of(resource), resource)
                yield _row(Op.DEL, resource, runtime)

    def _at_or_below(self, address: str) -> Iterator[tuple[str, str]]:
        for resource in self._parts.get(entity_of(address), ()):
            if resource == address or resource.startswith(f"{address}/"):
                for runtime in self._runtimes[resource]:
                    yield resource, runtime


def _key(resource: str, runtime: str) -> str:
    return f"{resource}|{runtime}"


def _take_out(table: dict[str, dict[str, V]], row: str, value: str) -> None:
    """Remove a value from a row, and the row when it was the last (I-X2)."""
    del table[row][value]
    if not table[row]:
        del table[row]


def _row(op: Op, resource: str, runtime: str) -> RowChanged:
    return RowChanged(op, "subs", resource, runtime, "sm")
