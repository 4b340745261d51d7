"""Drawings of time as SVG: the history of a violation, and the run times of processes.

They are as wide as a telephone, and grow with the page up to where they look coarse.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from spark.report.figures import Hole, ProcessRun
from spark.report.markup import cell, code, details, number, table, text
from spark.report.stories import Event
from spark.report.words import duration

__all__ = ["sequence", "timeline"]

_WIDTH: Final = 348
_ROW: Final = 34
_TOP: Final = 24
_SIDE: Final = 14
_BAR: Final = 44
_LETTER: Final = 6.2
"""Width of a letter of a label; where it is cut, the table beside the drawing has all of it."""
_NANO: Final = 1e-9

_Lanes = Mapping[tuple[str, str], int]


def sequence(story: Sequence[Event], name: str) -> str:
    """Draw a history; its last record is the violating one.

    Each component has a lifeline with a letter. A table has the same content in words.

    Args:
        story: The records, oldest first; at least one.
        name: What the drawing shows, for screen readers.
    """
    lanes = {who: at for at, who in enumerate(dict.fromkeys(map(_who, story)))}
    height = _TOP + _ROW * len(story) + 8
    parts = [_lifeline(at, _x(at, lanes), height) for at in lanes.values()]
    before = story[0]
    for at, event in enumerate(story):
        along = _x(lanes[_who(before)], lanes), _x(lanes[_who(event)], lanes)
        kind = "broken" if at == len(story) - 1 else "told"
        parts.append(_event(event, along, _TOP + _ROW * at + 26, kind))
        before = event
    drawing = (
        f'<svg class="sequence" role="img" viewBox="0 0 {_WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{text(name)}</title>{"".join(parts)}</svg>\n'
    )
    names = "".join(
        f"<li><b>{_letter(at)}</b> {text(node)}: <code>{text(actor)}</code></li>\n"
        for (node, actor), at in lanes.items()
    )
    told = _table(story, name, lanes)
    return f'{drawing}<ul class="lanes">\n{names}</ul>\n{details("The same as a table", told)}'


def _who(event: Event) -> tuple[str, str]:
    return event.node, event.actor


def _letter(lane: int) -> str:
    return chr(ord("A") + lane)


def _x(lane: int, lanes: _Lanes) -> int:
    return _SIDE + (_WIDTH - 2 * _SIDE) * lane // max(len(lanes) - 1, 1)


def _short(told: str, room: int) -> str:
    letters = int(room / _LETTER)
    return told if len(told) <= letters else f"{told[: letters - 3]}..."


def _lifeline(lane: int, x: int, height: int) -> str:
    return (
        f'<g class="lifeline"><text x="{x}" y="14">{_letter(lane)}</text>'
        f'<path d="M{x} 20V{height}"/></g>'
    )


def _event(event: Event, along: tuple[int, int], y: int, kind: str) -> str:
    """An arrow from the previous record, and a dot on the component's lifeline."""
    start, end = along
    arrow = ""
    if start != end:
        back = end - 10 if end > start else end + 10
        arrow = f'<path d="M{start} {y}H{end}M{back} {y - 4}L{end} {y}L{back} {y + 4}"/>'
    room = max(end, _WIDTH - end) - 7
    anchored = ("start", end + 7) if end <= _WIDTH / 2 else ("end", end - 7)
    return (
        f'<g class="{kind}">{arrow}<circle cx="{end}" cy="{y}" r="4"/>'
        f'<text text-anchor="{anchored[0]}" x="{anchored[1]}" y="{y - 6}">'
        f"{text(_short(event.words, room))}</text></g>"
    )


def _table(story: Sequence[Event], name: str, lanes: _Lanes) -> str:
    end = story[-1].wall_ns
    rows = [
        (
            cell(f"{_letter(lanes[_who(event)])} {event.node}"),
            number(f"{event.ln:,}"),
            number("0.0 ms" if at == len(story) else f"-{_before(event, end)}"),
            code(event.words),
        )
        for at, event in enumerate(story, start=1)
    ]
    heads = ["component", "#record", "#before the violation", "what happened"]
    return table(name, heads, rows, len(rows) - 1)


def _before(event: Event, end: int) -> str:
    return duration(max(end - event.wall_ns, 0) * _NANO)


def timeline(processes: Sequence[ProcessRun], holes: Sequence[Hole]) -> str:
    """Draw when each process wrote its first and its last record, and what is missing between.

    Args:
        processes: At least one.
        holes: Parts that are missing.
    """
    began = min(one.began for one in processes)
    scale = (_WIDTH - 8) / max(max(one.ended for one in processes) - began, 1e-9)
    height = _BAR * len(processes) + 8
    bars = []
    for at, one in enumerate(processes):
        mine = [hole for hole in holes if (hole.run, hole.node) == (one.run, one.node)]
        bars.append(_bar(one, mine, (began, scale), _BAR * at))
    name = "When each process wrote records, and where records are missing"
    return (
        f'<svg class="timeline" role="img" viewBox="0 0 {_WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{name}</title>{"".join(bars)}</svg>\n'
    )


def _bar(process: ProcessRun, holes: Sequence[Hole], axis: tuple[float, float], y: int) -> str:
    began, _ = axis
    span = f"{duration(process.began - began)} to {duration(process.ended - began)}"
    told = f"{process.node}: {span}, {process.records:,} records"
    gaps = "".join(
        f'<g class="hole"><title>{text(hole.reason)}</title>'
        f"{_stretch(hole.began, hole.ended, axis, (y + 18, 18))}</g>"
        for hole in holes
    )
    return (
        f"<g><title>{text(f'{told}, run {process.run}')}</title>"
        f'<text x="4" y="{y + 14}">{text(_short(told, _WIDTH))}</text>'
        f"{_stretch(process.began, process.ended, axis, (y + 22, 10))}</g>{gaps}"
    )


def _stretch(start: float, end: float, axis: tuple[float, float], row: tuple[int, int]) -> str:
    began, scale = axis
    y, height = row
    return (
        f'<rect x="{4 + (start - began) * scale:.1f}" y="{y}" '
        f'width="{max((end - start) * scale, 2):.1f}" height="{height}"/>'
    )
