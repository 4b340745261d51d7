"""Drawings of a machine, all from its table: Mermaid, DOT, SVG, PlantUML, SCXML."""

import re
from enum import StrEnum, unique
from html import escape
from typing import Final, assert_never

from fsm.drawing.dot import dot
from fsm.drawing.ids import Weights, edge_id, end_edge_id, state_id
from fsm.drawing.layout import render
from fsm.drawing.scxml import scxml
from fsm.drawing.text import mermaid, plantuml
from fsm.table import Table
from specs.trace import ABSENT

__all__ = ["Format", "draw", "svg"]


@unique
class Format(StrEnum):
    """A language of drawings."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    PLANTUML = "plantuml"
    SCXML = "scxml"


def draw(table: Table, language: Format) -> str:
    """Draw a machine.

    Args:
        table: The machine.
        language: Language of the drawing.

    Raises:
        LayoutError: SVG is wanted and there is no Graphviz.
    """
    match language:
        case Format.MERMAID:
            return mermaid(table)
        case Format.DOT:
            return dot(table)
        case Format.SVG:
            return svg(table)
        case Format.PLANTUML:
            return plantuml(table)
        case Format.SCXML:
            return scxml(table)
        case _:
            assert_never(language)


_STYLE: Final = """<style>
.fsm { --fsm-ink: #1f2937; --fsm-muted: #6b7280; --fsm-line: #64748b; --fsm-box: #f8fafc;
  --fsm-extension: #7c3aed; --fsm-never: #7a8594; max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  .fsm { --fsm-ink: #e5e7eb; --fsm-muted: #9ca3af; --fsm-line: #94a3b8; --fsm-box: #273244;
    --fsm-extension: #b79cf7; --fsm-never: #7d8a9b; }
}
.fsm text { font-family: Helvetica, Arial, sans-serif; fill: var(--fsm-ink); }
.fsm .state path { fill: var(--fsm-box); stroke: var(--fsm-line); }
.fsm .state text { font-weight: 600; font-size: 13px; }
.fsm .absent ellipse { fill: var(--fsm-ink); stroke: var(--fsm-ink); }
.fsm .absent ellipse ~ ellipse { fill: none; }
.fsm .edge { --fsm-edge: var(--fsm-line); }
.fsm .edge.extension { --fsm-edge: var(--fsm-extension); }
.fsm .edge.never { --fsm-edge: var(--fsm-never); }
.fsm .edge path { stroke: var(--fsm-edge); }
.fsm .edge polygon { fill: var(--fsm-edge); stroke: var(--fsm-edge); }
.fsm .edge text { font-size: 11px; }
.fsm .edge text ~ text { fill: var(--fsm-muted); font-size: 10px; }
.fsm .edge.extension text, .fsm .edge.never text { fill: var(--fsm-edge); }
</style>"""

_HEAD: Final = re.compile(r".*?<svg ", re.DOTALL)
_TITLED: Final = re.compile(r'<g id="([^"]*)"([^>]*)>\s*<title>.*?</title>', re.DOTALL)


def svg(table: Table, weights: Weights | None = None) -> str:
    """The table as a self-contained `<svg>` element, for light and dark pages.

    Its states and edges carry the ids of `fsm.drawing.ids` and the classes `state`,
    `drawn`, `extension`, `used`, `never`, `ends`; its colours are custom properties
    (`--fsm-ink`, ...) that a page may set on the class `fsm`.

    Args:
        table: What to draw.
        weights: How often each row was followed. None: all edges alike, with the
            drawing's words.

    Raises:
        LayoutError: There is no Graphviz.
    """
    hints = _hints(table)

    def retitle(found: re.Match[str]) -> str:
        hint = hints.get(found[1], "")
        title = f"<title>{escape(hint)}</title>" if hint else ""
        return f'<g id="{found[1]}"{found[2]}>{title}'

    named = f'<svg class="fsm" role="img" aria-label="State machine {table.name}" '
    laid_out = _TITLED.sub(retitle, _HEAD.sub(named, render(dot(table, weights)), count=1))
    end_of_tag = laid_out.index(">") + 1
    return f"{laid_out[:end_of_tag]}\n{_STYLE}{laid_out[end_of_tag:]}"


def _hints(table: Table) -> dict[str, str]:
    """What a pointer over an element shows."""
    hints = {state_id(table, state): meaning for state, meaning in table.meanings.items()}
    for row in table.rows:
        said = f"{row.label}\n" if row.label else ""
        hints[edge_id(table, row)] = (
            f"{row.old} \N{RIGHTWARDS ARROW} {row.target.value}: {row.words}\n{said}{row.cite}"
        )
    for state in table.may_end:
        hints[end_edge_id(table, state)] = f"{state.value} \N{RIGHTWARDS ARROW} {ABSENT}"
    return hints
