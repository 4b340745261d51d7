"""Drawings of time as SVG: the story of a violation, and when processes ran."""

from collections.abc import Sequence
from html import escape
from typing import Final

from spark.report.figures import ProcessRun
from spark.report.stories import Event
from spark.report.words import duration

__all__ = ["sequence", "timeline"]

_LANE: Final = 210
_ROW: Final = 44
_TOP: Final = 52
_LEFT: Final = 110
_SPAN: Final = 340
_BAR: Final = 44
_LABEL: Final = 34
"""Characters of a label; the whole text is its title."""


def sequence(story: Sequence[Event], name: str) -> str:
    """Draw a story; its last record is the violating one.

    Args:
        story: The records, oldest first.
        name: What the drawing shows, for screen readers.
    """
    lanes = {who: at for at, who in enumerate(dict.fromkeys(map(_who, story)))}
    width, height = _LEFT * 2 + _LANE * (len(lanes) - 1), _TOP + _ROW * len(story) + 16
    parts = [_lifeline(who, _x(at), height) for who, at in lanes.items()]
    before: Event | None = None
    for at, event in enumerate(story):
        y = _TOP + _ROW * at + 30
        start = _x(lanes[_who(event if before is None else before)])
        kind = "broken" if at == len(story) - 1 else "told"
        parts.append(_event(event, (start, _x(lanes[_who(event)])), y, kind))
        before = event
    return (
        f'<svg class="sequence" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(name)}</title>{''.join(parts)}</svg>\n"
    )


def _who(event: Event) -> tuple[str, str]:
    return event.node, event.actor


def _x(lane: int) -> int:
    return _LEFT + _LANE * lane


def _short(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 3]}..."


def _lifeline(who: tuple[str, str], x: int, height: int) -> str:
    node, actor = who
    return (
        f'<g class="lifeline"><title>{escape(f"{actor} of {node}")}</title>'
        f'<text x="{x}" y="16">{escape(_short(node))}</text>'
        f'<text x="{x}" y="34">{escape(actor[-26:])}</text>'
        f'<path d="M{x} 42V{height}"/></g>'
    )


def _event(event: Event, along: tuple[int, int], y: int, kind: str) -> str:
    """An arrow from where the story was before, and a dot on the actor's lifeline."""
    start, end = along
    arrow = ""
    if start != end:
        back = end - 12 if end > start else end + 12
        arrow = f'<path d="M{start} {y}H{end}M{back} {y - 5}L{end} {y}L{back} {y + 5}"/>'
    return (
        f'<g class="{kind}"><title>{escape(f"record {event.ln}: {event.words}")}</title>{arrow}'
        f'<circle cx="{end}" cy="{y}" r="4"/>'
        f'<text x="{end}" y="{y - 9}">{escape(_short(event.words))}</text></g>'
    )


def timeline(processes: Sequence[ProcessRun]) -> str:
    """Draw when each process wrote its first and its last record.

    Args:
        processes: At least one.
    """
    began = min(one.began for one in processes)
    scale = _SPAN / max(max(one.ended for one in processes) - began, 1e-9)
    height = _BAR * len(processes) + 8
    bars = "".join(
        _bar(one, (one.began - began, (one.ended - began)), scale, _BAR * at)
        for at, one in enumerate(processes)
    )
    return (
        f'<svg class="timeline" role="img" viewBox="0 0 {_SPAN + 8} {height}" '
        'xmlns="http://www.w3.org/2000/svg"><title>When each process wrote records</title>'
        f"{bars}</svg>\n"
    )


def _bar(process: ProcessRun, span: tuple[float, float], scale: float, y: int) -> str:
    start, end = span
    told = f"{process.node}: {duration(start)} to {duration(end)}, {process.records:,} records"
    return (
        f"<g><title>{escape(f'{told}, run {process.run}')}</title>"
        f'<text x="4" y="{y + 16}">{escape(told)}</text>'
        f'<rect x="{4 + start * scale:.1f}" y="{y + 22}" '
        f'width="{max((end - start) * scale, 2):.1f}" height="10" rx="3"/></g>'
    )
