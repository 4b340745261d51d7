"""A host as a value: to be taken up again, and to be known again.

A host is kept as bytes, and made anew from them each time something else happens to it. It
is known again by its key: two hosts of equal keys do the same whatever happens. Times are
relative to the host's clock there, and those that are longer ago than the horizon of the
composition are equal.
"""

import copyreg
import io
import math
import pickle
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from types import FunctionType, MethodType
from typing import Final, TypeAlias, final

from fsm.engine import Entity
from fsm.machine_list import MACHINES
from fsm.product.host import Host
from fsm.table import Table
from specs.trace import ABSENT

__all__ = ["Key", "kept", "key_of", "restored"]

Key: TypeAlias = Hashable

_DIGITS: Final = 6
"""Of a second: what is nearer is at the same time."""


# --- as bytes -------------------------------------------------------------------------------


def _table(name: str) -> Table:
    return MACHINES[name]


def _entity(name: str, key: str, state: str) -> Entity:
    table = MACHINES[name]
    known = table.state(state)
    return Entity(table, key) if known is None else Entity.recalled(table, key, known)


def _reduced_table(table: Table) -> tuple[Callable[[str], Table], tuple[str]]:
    return _table, (table.name,)


def _reduced_entity(
    entity: Entity,
) -> tuple[Callable[[str, str, str], Entity], tuple[str, str, str]]:
    state = entity.state
    return _entity, (entity.table.name, entity.key, ABSENT if state is None else state.value)


_REDUCERS: Final = copyreg.dispatch_table | {Table: _reduced_table, Entity: _reduced_entity}


def kept(host: Host) -> bytes:
    """The host as bytes."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(host)
    return file.getvalue()


def restored(data: bytes) -> Host:
    """A host like the one that was kept."""
    host = pickle.loads(data)  # noqa: S301 - bytes of this process
    assert isinstance(host, Host)  # noqa: S101 - for the type checker
    return host


# --- as a key -------------------------------------------------------------------------------


def key_of(host: Host, horizon: float) -> Key:
    """Return the key of a host: equal hosts have equal keys.

    Args:
        host: The host.
        horizon: Seconds beyond which deadlines are not told apart.
    """
    return _Freezer(host, horizon).of_host()


@final
class _Freezer:
    """Makes values of objects."""

    def __init__(self, host: Host, horizon: float) -> None:
        self._host = host
        self._skipped = host.counters | {"now", "out"}
        self._durations = host.durations
        self._now = host.now
        self._horizon = horizon
        self._seen: dict[int, int] = {}

    def of_host(self) -> Key:
        """The key of the whole host."""
        return tuple(self._fields(vars(self._host)))

    def _fields(self, fields: Mapping[str, object]) -> list[Key]:
        told = [item for item in fields.items() if item[0] not in self._skipped]
        if self._durations:
            return [repr(one) if name in self._durations else self(one) for name, one in told]
        return [self(one) for _, one in told]

    def __call__(self, one: object) -> Key:
        match one:
            case float():
                return self._time(one)
            case str() | int() | bytes() | None | Enum() | type() | FunctionType():
                return one
            case list() | tuple() | deque():
                return tuple([self(each) for each in one])
            case Entity():
                return one.key, one.state
            case _:
                return self._other(one)

    def _other(self, one: object) -> Key:
        match one:
            case Mapping():
                return tuple([(self(key), self(value)) for key, value in one.items()])
            case set() | frozenset():
                return tuple(sorted([self(each) for each in one], key=repr))
            case Table():
                return one.name
            case MethodType():
                return one.__func__.__qualname__, self(one.__self__)
            case _:
                return self._instance(one)

    def _time(self, when: float) -> Key:
        if not math.isfinite(when):
            return when
        return "t", round(max(when - self._now, -self._horizon), _DIGITS)

    def _instance(self, one: object) -> Key:
        kind = type(one)
        names, is_value = _shape(kind)
        if not is_value:
            if id(one) in self._seen:
                return "seen", self._seen[id(one)]
            self._seen[id(one)] = len(self._seen)
        held = {name: getattr(one, name) for name in names if hasattr(one, name)}
        if not names or hasattr(one, "__dict__"):
            held |= vars(one)
        return kind.__name__, *self._fields(held)


_SHAPES: Final[dict[type, tuple[tuple[str, ...], bool]]] = {}


def _shape(kind: type) -> tuple[tuple[str, ...], bool]:
    """The slots of a class, and whether its instances are equal by what is in them."""
    known = _SHAPES.get(kind)
    if known is not None:
        return known
    slots: list[str] = []
    for each in kind.__mro__:
        own = each.__dict__.get("__slots__", ())
        slots += [own] if isinstance(own, str) else own
    names = tuple(name for name in dict.fromkeys(slots) if name not in {"__weakref__", "__dict__"})
    way = getattr(kind, "__hash__", None)
    _SHAPES[kind] = names, way is not None and way is not object.__hash__
    return _SHAPES[kind]
