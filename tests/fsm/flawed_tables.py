"""Tables with a flaw, which the cores follow as if they were the declared ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from fsm import engine
from fsm.machine_list import MACHINES
from fsm.table import Table
from tests.support.trace.census import uncounted

_FIELDS = [field.name for field in attrs.fields(Table)]


@contextmanager
def flawed(name: str, table: Table) -> Iterator[None]:
    """Let the machine of that name be as in `table`: cores keep hold of the table itself."""
    real = MACHINES[name]
    declared = {field: getattr(real, field) for field in _FIELDS}
    _become(real, {field: getattr(table, field) for field in _FIELDS})
    try:
        with uncounted(name):
            yield
    finally:
        _become(real, declared)


def _become(table: Table, fields: dict[str, object]) -> None:
    for field, value in fields.items():
        object.__setattr__(table, field, value)
    engine.machine_of.cache_clear()
    engine._take_of.cache_clear()


def changed(name: str, **changes: object) -> Table:
    """The declared table of that name, but for some of it."""
    return attrs.evolve(MACHINES[name], **changes)


def without_row(name: str, state: str, trigger: str) -> Table:
    """Without the rows for a trigger in a state."""
    kept = (row for row in MACHINES[name].rows if (row.old, row.trigger.value) != (state, trigger))
    return changed(name, rows=tuple(kept), deadlines=_deadlines(name, state, trigger))


def _deadlines(name: str, state: str, trigger: str) -> tuple:
    return tuple(
        one
        for one in MACHINES[name].deadlines
        if (one.state.value, one.trigger and one.trigger.value) != (state, trigger)
    )


def without_deadline(name: str, *states: str) -> Table:
    """Without the deadlines of some states."""
    kept = (one for one in MACHINES[name].deadlines if one.state.value not in states)
    return changed(name, deadlines=tuple(kept))


def led_to(name: str, state: str, trigger: str, target: str) -> Table:
    """With rows for a trigger in a state that lead to another state."""
    machine = MACHINES[name]
    rows = (
        attrs.evolve(row, target=machine.states(target))
        if (row.old, row.trigger.value) == (state, trigger)
        else row
        for row in machine.rows
    )
    return changed(name, rows=tuple(rows))
