"""DOT from a table: the source of the SVG too.

Colours are those of a light page; the SVG's own style takes over in a browser. Texts
are laid out somewhat larger than that style shows them, since the font of the browser
may be wider than Graphviz thinks.
"""

import math
import textwrap
from typing import Final

from fsm.drawing.ids import Weights, edge_id, end_edge_id, node_name, state_id
from fsm.guard import ALWAYS
from fsm.table import Table, Transition

__all__ = ["dot"]

_LABEL_WIDTH: Final = 24
"""Characters in one line of an edge's label."""

_THINNEST: Final = 1.2
_THICKEST: Final = 5.0
"""Widths of edges in points, for the least and the most used one."""

_SIDES: Final = ("w", "n")
"""Where the second and third loop of a state are drawn; the first is on the right."""

INK: Final = "#1f2937"
LINE: Final = "#64748b"
BOX: Final = "#f8fafc"
EXTENSION: Final = "#7c3aed"
NEVER: Final = "#7a8594"


def dot(table: Table, weights: Weights | None = None) -> str:
    """The table as a DOT graph.

    Args:
        table: What to draw.
        weights: How often each row was followed: edges become as thick as they were
            used, and dashed if never. None: all alike, with the drawing's words.
    """
    lines = [f"digraph {node_name(table.name)} {{", *_head(table)]
    lines += [_state(table, state.value) for state in table.states]
    lines += [_row(table, row, weights) for row in table.rows]
    lines += [_end(table, state.value) for state in table.states if state in table.may_end]
    return "\n".join([*lines, "}", ""])


def _head(table: Table) -> list[str]:
    font = 'fontname="Helvetica"'
    box = f'shape=box style="rounded,filled" fillcolor="{BOX}" color="{LINE}" fontcolor="{INK}"'
    tip = f'class=absent fixedsize=true fillcolor="{INK}" color="{INK}" style=filled label=""'
    return [
        f'  graph [id="{table.name}" bgcolor=transparent rankdir=TB nodesep=0.5 ranksep=0.45];',
        f'  node [{box} fontsize=15 margin="0.22,0.09" height=0.42 {font}];',
        f'  edge [color="{LINE}" fontcolor="{INK}" fontsize=13 arrowsize=0.75 {font}];',
        f'  absent [id="{table.name}__absent" shape=circle width=0.19 height=0.19 {tip}];',
        f'  end [id="{table.name}__end" shape=doublecircle width=0.13 height=0.13 {tip}];',
    ]


def _state(table: Table, state: str) -> str:
    return f'  {node_name(state)} [id="{state_id(table, state)}" class=state label="{state}"];'


def _row(table: Table, row: Transition, weights: Weights | None) -> str:
    classes = ["drawn" if not row.extension else "extension"]
    style = f' color="{EXTENSION}" fontcolor="{EXTENSION}"' if row.extension else ""
    style += _side(table, row)
    guard = "" if row.guard == ALWAYS else f"[{row.guard}]"
    said = [row.trigger.value, *textwrap.wrap(guard, _LABEL_WIDTH)]
    words = [*said, *textwrap.wrap(row.label, _LABEL_WIDTH)]
    if weights is not None:
        count = weights.get((row.old, row.trigger.value, row.target.value), 0)
        words = [*said, f"\N{MULTIPLICATION SIGN} {count:,}" if count else "never"]
        classes.append("used" if count else "never")
        style += _used(count, max(weights.values(), default=0)) if count else _never()
    if row.extension:
        words.append("(extension)")
    label = r"\n".join(f" {_escape(word)} " for word in words)
    names = f'id="{edge_id(table, row)}" class="{" ".join(classes)}" label="{label}"'
    return f"  {node_name(row.old)} -> {node_name(row.target)} [{names}{style}];"


def _side(table: Table, row: Transition) -> str:
    """Put the loops of one state on different sides of it: Graphviz stacks them."""
    loops = [each for each in table.rows if each.old == row.old and each.target == row.source]
    if row not in loops[1:]:
        return ""
    side = _SIDES[(loops.index(row) - 1) % len(_SIDES)]
    return f" tailport={side} headport={side}"


def _used(count: int, most: int) -> str:
    share = math.log1p(count) / math.log1p(most)
    width = _THINNEST + (_THICKEST - _THINNEST) * share
    return f" penwidth={width:.1f} arrowsize={0.65 + width / 25:.2f}"


def _never() -> str:
    return f' style=dashed color="{NEVER}" fontcolor="{NEVER}"'


def _end(table: Table, state: str) -> str:
    origin = "extension" if state in table.extension_ends else "drawn"
    names = f'id="{end_edge_id(table, state)}" class="ends {origin}"'
    style = f' color="{EXTENSION}"' if origin == "extension" else ""
    return f"  {node_name(state)} -> end [{names}{style}];"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
