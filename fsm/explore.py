"""What a table allows: ways through it, states in reach, states with a way out."""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum

from fsm.table import Table

__all__ = ["can_end", "shortest_paths"]


def shortest_paths(table: Table) -> Mapping[StrEnum | None, tuple[StrEnum, ...]]:
    """The fewest triggers from `[*]` to every state in reach, `[*]` (None) itself too."""
    paths: dict[StrEnum | None, tuple[StrEnum, ...]] = {None: ()}
    waiting: deque[StrEnum | None] = deque([None])
    while waiting:
        state = waiting.popleft()
        for row in table.rows:
            if row.source is state and row.target not in paths:
                paths[row.target] = (*paths[state], row.trigger)
                waiting.append(row.target)
    return paths


def can_end(table: Table) -> frozenset[StrEnum]:
    """The states that may end, or have a way to one that may."""
    found = set(table.may_end)
    while True:
        more = {row.source for row in table.rows if row.target in found and row.source}
        if more <= found:
            return frozenset(found)
        found |= more
