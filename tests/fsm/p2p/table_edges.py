"""The histories of entities, as steps."""

from collections.abc import Iterable

from fsm.engine import Step
from fsm.table import Table

Edge = tuple[str | None, str, str]
"""State left, trigger, state entered."""


def edges(table: Table, steps: Iterable[Step]) -> set[Edge]:
    """What steps of a machine took of its rows."""
    return {(step.old, step.cause, step.new) for step in steps if step.machine == table.name}


def declared(table: Table) -> set[Edge]:
    """What its rows are."""
    return {(row.source, row.trigger, row.target) for row in table.rows}
