"""Names that drawings share: stable ids for states and edges, and words for edges.

The id of a state or edge depends on names only, so a page that lights up an edge goes
on working when the table gets more rows.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from fsm.guard import ALWAYS
from fsm.table import Table, Transition
from specs.trace import ABSENT

__all__ = ["Weights", "edge_id", "end_edge_id", "node_name", "state_id"]

Weights: TypeAlias = Mapping[tuple[str, str, str], int]
"""How often each row was followed, by (state left, trigger, state entered); `[*]` is absent.

Rows that differ in their guard alone share a figure: a trace does not tell them apart."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")


def node_name(state: str) -> str:
    """`state` as an identifier of the drawing languages (`in-progress`: `in_progress`)."""
    return "absent" if state == ABSENT else _UNSAFE.sub("_", state)


def state_id(table: Table, state: str) -> str:
    """Return the element id of a state, as in `p2p_connection__live`.

    Args:
        table: The machine.
        state: The state.
    """
    return f"{table.name}__{node_name(state)}"


def edge_id(table: Table, row: Transition) -> str:
    """Return the element id of a row, as in `p2p_connection__live__closed`.

    A guard follows the trigger, as in `observer_copy__live__changed__not_gap`.

    Args:
        table: The machine.
        row: The row.
    """
    guard = f"__{node_name(str(row.guard))}" if row.guard != ALWAYS else ""
    return f"{state_id(table, row.old)}__{node_name(row.trigger)}{guard}"


def end_edge_id(table: Table, state: str) -> str:
    """Return the element id of the edge from a state to the end, as in `address__released__end`.

    Args:
        table: The machine.
        state: The state.
    """
    return f"{state_id(table, state)}__end"
