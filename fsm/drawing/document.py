"""Descriptions of state machines: text and JSON for one, a Markdown page for all.

Everything on the page is a field of a table or a claim of the catalogue: drawings, states,
deadlines, rows.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from fsm.drawing.draw import Format, draw
from fsm.machine_list import fingerprint
from fsm.table import Deadline, Table, Transition
from specs.claims import CLAIMS
from specs.jsonvalue import JsonObject


def summary_text(tables: Sequence[Table]) -> str:
    """Return an overview as text, with one line for each machine."""
    cells = [("machine", "states", "rows", "kept by")]
    cells += [
        (table.name, str(len(table.states)), str(len(table.rows)), table.owner) for table in tables
    ]
    return _align(cells)


def summary_json(table: Table) -> JsonObject:
    """Return a summary of a machine as JSON: name, hash, states and counts."""
    return {
        "schema": "protofly.machine/1",
        "machine": table.name,
        "hash": fingerprint(table),
        "owner": table.owner,
        "key": table.key,
        "drawn_in": table.drawn_in,
        "states": [state.value for state in table.states],
        "triggers": [trigger.value for trigger in table.triggers],
        "conditions": [condition.value for condition in table.conditions],
        "rows": len(table.rows),
        "may_end": [state.value for state in table.states if state in table.may_end],
    }


def as_json(table: Table) -> JsonObject:
    """Return a machine's whole table as JSON."""
    return {
        **summary_json(table),
        "schema": "protofly.table/1",
        "meanings": {state.value: meaning for state, meaning in table.meanings.items()},
        "rows": [_row_json(row) for row in table.rows],
        "deadlines": [_deadline_json(deadline) for deadline in table.deadlines],
        "claims": [CLAIMS[claim].text for claim in table.claims],
    }


def _row_json(row: Transition) -> JsonObject:
    return {
        "old": row.old,
        "trigger": row.trigger.value,
        "new": row.target.value,
        "when": [each.value for each in sorted(row.guard.when)],
        "unless": [each.value for each in sorted(row.guard.unless)],
        "cite": row.cite,
        "label": row.label,
        "extension": row.extension,
    }


def _deadline_json(deadline: Deadline) -> JsonObject:
    return {
        "state": deadline.state.value,
        "limit": deadline.limit,
        "seconds": deadline.seconds,
        "trigger": None if deadline.trigger is None else deadline.trigger.value,
        "why": deadline.why,
    }


def as_text(table: Table) -> str:
    """Return a whole machine as text for the terminal."""
    states = [
        (
            f"  {state.value}",
            "may end" if state in table.may_end else "",
            table.meanings.get(state, ""),
        )
        for state in table.states
    ]
    rows = [(f"  {row.old}", row.words, row.target.value, _source(row)) for row in table.rows]
    head = f"{table.name}: {table.owner}\nkey {table.key}\nfrom {table.drawn_in}"
    parts = [
        f"{head}\nhash {fingerprint(table)}",
        f"states\n{_align(states)}",
        f"rows\n{_align(rows)}",
        f"deadlines\n{_align([_deadline_cells(deadline) for deadline in table.deadlines])}",
    ]
    return "\n\n".join(parts)


def _source(row: Transition) -> str:
    return f"{row.cite} (extension)" if row.extension else row.cite


def _deadline_cells(deadline: Deadline) -> tuple[str, str, str, str]:
    state = f"  {deadline.state.value}"
    if deadline.trigger is None:
        return state, "waits without end", "", deadline.why
    return state, f"{deadline.limit} = {deadline.seconds:g} s", deadline.trigger.value, deadline.why


def _align(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines)


_HEAD: Final = (
    "# Machines\n\n"
    "Every connection, session, subscription and request is an *entity* of one of these machines. "
    "A machine is a table in `fsm/machines/`: the program executes it, this page shows it, the "
    "composition check explores it, recorded runs are judged by it. Other steps are refused.\n\n"
    "`[*]` is the state before the first step and after the last. A row with words in brackets is "
    "followed if they are true. In keys, `R` is a runtime and `MN` a node. *From* names a part of "
    "reTHINK's description of the protocol, which is not in this repository; *extension* marks "
    "what it does not draw, and `t1` to `t9` are its numbers for the steps of a direct link.\n\n"
    "*Written by `python -m fsm document`; not to be edited.*\n"
)


def page(tables: Sequence[Table]) -> str:
    """Return the Markdown page that describes machines."""
    summary = [
        (_link(table.name), table.owner, str(len(table.states)), str(len(table.rows)))
        for table in tables
    ]
    parts = [_HEAD, _grid(("machine", "kept by", "states", "rows"), summary)]
    return "\n".join([*parts, *(_section(table) for table in tables)])


def _link(name: str) -> str:
    return f"[{name}](#{name})"


def _section(table: Table) -> str:
    parts = [
        f"## {table.name}",
        f"Kept by: {table.owner}. One entity per `{table.key}`. From: {table.drawn_in}.",
        f"```mermaid\n{draw(table, Format.MERMAID)}```",
        _states(table),
        _grid(("in state", "at trigger", "to state", "what has happened"), map(_row, table.rows)),
        _claims(table),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _states(table: Table) -> str:
    rows = [
        (
            f"`{state.value}`",
            table.meanings.get(state, ""),
            _stay(table.deadline(state.value)),
            _end(table, state.value),
        )
        for state in table.states
    ]
    return _grid(("state", "meaning", "how long", "may end"), rows)


def _stay(deadline: Deadline | None) -> str:
    if deadline is None:
        return ""
    if deadline.trigger is None:
        return f"without end: {deadline.why}"
    return f"{deadline.seconds:g} s, then `{deadline.trigger.value}`: {deadline.why}"


def _end(table: Table, state: str) -> str:
    if state not in table.may_end:
        return ""
    return "yes (extension)" if state in table.extension_ends else "yes"


def _row(row: Transition) -> tuple[str, str, str, str]:
    because = f"{row.cite} (extension)" if row.extension else row.cite
    return f"`{row.old}`", f"`{row.words}`", f"`{row.target.value}`", because


def _claims(table: Table) -> str:
    lines = [f"- {CLAIMS[claim].text}" for claim in table.claims]
    return "\n".join(["[Claims](claims.md) about it:", "", *lines]) if lines else ""


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
