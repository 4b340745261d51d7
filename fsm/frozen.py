"""Serialisation of cores to bytes and back, to store states and to copy objects.

A state machine is stored by its name only, since each table exists once in a process.
"""

import copyreg
import pickle
from collections.abc import Callable
from io import BytesIO
from types import MappingProxyType
from typing import Final, TypeVar

from fsm.engine import Entity
from fsm.machine_list import MACHINES
from fsm.table import Table
from specs.trace import ABSENT

_T = TypeVar("_T")


def _table(name: str) -> Table:
    return MACHINES[name]


def _entity(name: str, key: str, state: str) -> Entity:
    table = MACHINES[name]
    known = table.state_of[state]
    return Entity(table, key) if known is None else Entity.restore(table, key, known)


def _reduced_table(table: Table) -> tuple[Callable[[str], Table], tuple[str]]:
    return _table, (table.name,)


def _reduced_entity(
    entity: Entity,
) -> tuple[Callable[[str, str, str], Entity], tuple[str, str, str]]:
    state = entity.state
    return _entity, (entity.table.name, entity.key, ABSENT if state is None else state.value)


def _view(mapping: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(mapping)


def _reduced_view(
    view: MappingProxyType[object, object],
) -> tuple[Callable[[dict[object, object]], MappingProxyType[object, object]], tuple[object]]:
    return _view, ({**view},)


_REDUCERS: Final = copyreg.dispatch_table | {
    Table: _reduced_table,
    Entity: _reduced_entity,
    MappingProxyType: _reduced_view,
}


def pickle_state(value: object) -> bytes:
    """Return an object, with everything it refers to, serialised as bytes."""
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(value)
    return buffer.getvalue()


def restore(data: bytes, kind: type[_T]) -> _T:
    """Return the object that `pickle_state` has serialised, as a copy.

    Args:
        data: The bytes; modules that they name are imported, so they must be trusted.
        kind: The class of the object.
    """
    value = pickle.loads(data)  # noqa: S301 - bytes that this project wrote
    assert isinstance(value, kind)  # noqa: S101 - for the type checker
    return value
