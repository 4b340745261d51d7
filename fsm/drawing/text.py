"""Mermaid and PlantUML from a table."""

from collections import defaultdict
from typing import Final

from fsm.drawing.ids import node_name
from fsm.table import Table, Transition
from specs.trace import ABSENT

__all__ = ["mermaid", "plantuml"]

_EXTENSION: Final = "#7c3aed"
"""The colour of what the drawing does not have."""


def mermaid(table: Table) -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    direction TB"]
    lines += [f'    state "{state.value}" as {node_name(state)}' for state in table.states]
    said: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in table.rows:
        # Mermaid draws the loops of one state on top of each other: they share one arrow.
        said[_arrow(row), "" if row.old == row.target else row.words].append(_words(row))
    lines += [f"    {arrow}: {'<br>'.join(words)}" for (arrow, _), words in said.items()]
    lines += [f"    {node_name(state)} --> {ABSENT}" for state in _ends(table)]
    return "\n".join([*lines, ""])


def plantuml(table: Table) -> str:
    """The table as a PlantUML state diagram, with the drawing's words."""
    lines = [f"@startuml {table.name}", "hide empty description"]
    lines += [f'state "{state.value}" as {node_name(state)}' for state in table.states]
    for row in table.rows:
        arrow = f"-[{_EXTENSION}]->" if row.extension else "-->"
        words = _words(row) + (rf"\n{row.label}" if row.label else "")
        lines.append(f"{_arrow(row, arrow)} : {words}")
    for state in _ends(table):
        arrow = f"-[{_EXTENSION}]->" if state in table.extension_ends else "-->"
        lines.append(f"{node_name(state)} {arrow} {ABSENT}")
    return "\n".join([*lines, "@enduml", ""])


def _ends(table: Table) -> list[str]:
    return [state for state in table.states if state in table.may_end]


def _arrow(row: Transition, arrow: str = "-->") -> str:
    source = ABSENT if row.source is None else node_name(row.source)
    return f"{source} {arrow} {node_name(row.target)}"


def _words(row: Transition) -> str:
    return f"{row.words} (extension)" if row.extension else row.words
