"""What a table allows: ways through it, states in reach, states with a way out."""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum

from fsm.table import Table, Transition

__all__ = ["can_end", "shortest_ways"]


def shortest_ways(table: Table) -> Mapping[StrEnum | None, tuple[Transition, ...]]:
    """The fewest rows from `[*]` to every state in reach, `[*]` (None) itself too."""
    ways: dict[StrEnum | None, tuple[Transition, ...]] = {None: ()}
    waiting: deque[StrEnum | None] = deque([None])
    while waiting:
        state = waiting.popleft()
        for row in table.rows:
            if row.source is state and row.target not in ways:
                ways[row.target] = (*ways[state], row)
                waiting.append(row.target)
    return ways


def can_end(table: Table) -> frozenset[StrEnum]:
    """The states that may end, or have a way to one that may."""
    found = set(table.may_end)
    while True:
        more = {row.source for row in table.rows if row.target in found and row.source}
        if more <= found:
            return frozenset(found)
        found |= more
