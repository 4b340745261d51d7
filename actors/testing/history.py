"""Sequence diagrams, in text, of the records that led to a violation; for failed tests."""

from collections.abc import Iterator, Sequence
from typing import Final

from fsm.judge.trace_line import TraceLine

_LENGTH: Final = 11
"""Maximum number of records of a history (ours)."""

_WIDTH: Final = 4
"""Columns from one lifeline to the next (ours)."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def history_of(node: str, ln: int, lines: Sequence[TraceLine]) -> list[TraceLine]:
    """Return a record and the records of all processes that led to it, oldest first.

    These are earlier records of the same message, else of the same key, else of the same link,
    else of the same process.

    Args:
        node: Process of the record.
        ln: Number of the record.
        lines: The trace, in the order in which it was written.
    """
    at = next((at for at, one in enumerate(lines) if (one.node, one.ln) == (node, ln)), None)
    if at is None:
        return [one for one in lines if one.node == node and one.ln <= ln][-_LENGTH:]
    last, before = lines[at], lines[:at]
    found = next((alike for alike in _alike(last, before) if alike), None)
    if found is None:
        found = [one for one in before if one.node == node]
    return [*found[1 - _LENGTH :], last]


def _alike(last: TraceLine, before: Sequence[TraceLine]) -> Iterator[list[TraceLine]]:
    message = {last.mid, last.ref} - {None}
    yield [one for one in before if {one.mid, one.ref} & message]
    if last.key is not None:
        yield [one for one in before if one.key == last.key]
    if last.link is not None:
        yield [one for one in before if one.link == last.link]


def drawn(history: Sequence[TraceLine]) -> Iterator[str]:
    """Yield the lines of a sequence diagram; its last record is marked by an X.

    Each part of a process has a lifeline with a letter. An arrow leads from the part of one record
    to that of the next one.

    Args:
        history: The records, oldest first; at most as many parts as there are letters.
    """
    lanes = {who: at for at, who in enumerate(dict.fromkeys(map(_who, history)))}
    for (node, actor), at in lanes.items():
        yield f"{_LETTERS[at]} = {node}: {actor}"
    yield "".join(_LETTERS[at].ljust(_WIDTH) for at in lanes.values()).rstrip()
    before = None
    for line in history:
        lane = lanes[_who(line)]
        mark = "X" if line is history[-1] else "o"
        yield f"{_row(before, lane, len(lanes), mark)}  {_said(line)}"
        before = lane


def _who(line: TraceLine) -> tuple[str, str]:
    return line.node, line.actor


def _row(before: int | None, lane: int, lanes: int, mark: str) -> str:
    row = list("".join("|".ljust(_WIDTH) for _ in range(lanes)))
    here, there = lane * _WIDTH, (lane if before is None else before) * _WIDTH
    first, last = sorted((here, there))
    row[first : last + 1] = "-" * (last + 1 - first)
    if there < here:
        row[here - 1] = ">"
    elif here < there:
        row[here + 1] = "<"
    row[there], row[here] = "|", mark
    return "".join(row)


def _said(line: TraceLine) -> str:
    what = line.op or line.k
    match line.k:
        case "state":
            text = f"{line.machine} {line.key}: {line.old} -> {line.new} by {line.cause}"
        case "msg":
            text = f"{line.type or ''} {line.from_} -> {line.to} {line.code or ''}".strip()
        case _:
            text = " ".join(filter(None, (line.table, line.key, line.val, line.why)))
    return f"{line.ln:>5} {line.t:>9.3f} s  {what} {text}"
