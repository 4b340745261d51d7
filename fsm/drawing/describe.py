"""A machine in words, for people and for scripts."""

from collections.abc import Sequence

from fsm.fingerprint import fingerprint
from fsm.table import Deadline, Table, Transition
from specs.claims.all import CLAIMS
from specs.jsonvalue import JsonObject

__all__ = ["as_json", "as_text", "summary_json", "summary_text"]


def summary_text(tables: Sequence[Table]) -> str:
    """One line per machine."""
    cells = [("machine", "states", "rows", "kept by")]
    cells += [
        (table.name, str(len(table.states)), str(len(table.rows)), table.owner) for table in tables
    ]
    return _aligned(cells)


def summary_json(table: Table) -> JsonObject:
    """A machine in figures."""
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
    """A machine, whole."""
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
        "when": [one.value for one in sorted(row.guard.when)],
        "unless": [one.value for one in sorted(row.guard.unless)],
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
    """A machine, whole."""
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
        f"states\n{_aligned(states)}",
        f"rows\n{_aligned(rows)}",
        f"deadlines\n{_aligned([_deadline_cells(deadline) for deadline in table.deadlines])}",
    ]
    return "\n\n".join(parts)


def _source(row: Transition) -> str:
    return f"{row.cite} (extension)" if row.extension else row.cite


def _deadline_cells(deadline: Deadline) -> tuple[str, str, str, str]:
    state = f"  {deadline.state.value}"
    if deadline.trigger is None:
        return state, "waits without end", "", deadline.why
    return state, f"{deadline.limit} = {deadline.seconds:g} s", deadline.trigger.value, deadline.why


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines)
