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


def states(table: Table, steps: Iterable[Step]) -> dict[str, str]:
    """Each entity's states, in order, with a bar where a new story begins."""
    reported: dict[str, str] = {}
    for step in steps:
        if step.machine == table.name:
            before = reported.get(step.key, "")
            bar = " | " if before and step.old is None else " "
            reported[step.key] = f"{before}{bar}{step.new}".strip()
    return reported
