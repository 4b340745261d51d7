"""The page of all machines, as Markdown: what `docs/machines.md` holds.

Everything on it is a field of a table or a claim of the catalogue: drawings, states,
deadlines, rows. Whoever wants it to say more says it there.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from fsm.drawing.draw import Format, draw
from fsm.table import Deadline, Table, Transition
from specs.claims.all import CLAIMS

__all__ = ["page"]

_HEAD: Final = (
    "# Machines\n\n"
    "Every connection, session, subscription and request of the protocol is an entity of one of "
    "these machines. A machine is a table, in `fsm/machines/`; the table is what the actors run, "
    "what is drawn here, what the composition check explores, and what recorded runs are judged "
    "by. A trigger that a table does not have in a state is refused.\n\n"
    "`[*]` stands for the entity that does not exist: before its first step, and after its last. "
    "A trigger with words in brackets is followed only if they are true. What the protocol's own "
    "drawings do not have is marked as an extension.\n\n"
    "*Written by `python -m fsm document`; not to be edited.*\n"
)


def page(tables: Sequence[Table]) -> str:
    """The page of some machines."""
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
        _grid(("in state", "at trigger", "to state", "because"), map(_row, table.rows)),
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
    said = [f"- {CLAIMS[claim].text}" for claim in table.claims]
    return "\n".join(["What is claimed of it:", "", *said]) if said else ""


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
