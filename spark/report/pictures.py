"""Draw the SVG pictures of the report: plots of statistics, histories of violations, processes.

A plot contains no text of a trace: names are in the legend, which is HTML. Each picture is drawn
twice, for telephones and for wider pages; the style sheet shows one of them, as wide as the page.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import Row

from spark.findings import MachineUse
from spark.report import words
from spark.report.figures import QUANTILES, Hop, Latency, Way
from spark.report.words import duration
from specs.jsonvalue import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SERIES: Final = 6
"""Maximal number of lines of a plot; each has its own colour and dashes in the style sheet."""

_INK: Final = "#010101"
_COLOURS: Final = tuple(f"#0202{number:02x}" for number in range(1, SERIES + 1))
_DASHES: Final = ("-", "--", ":", "-.", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
_Draw: TypeAlias = Callable[["Axes", str], None]
"""Draws the content of a plot for a size."""

_INCH: Final = 100
_SIZES: Final = {"narrow": 348, "wide": 720}
"""Widths for which pictures are drawn, by the class in the style sheet that shows them."""

_DWELLS: Final = 16
_MILLI: Final = 1000
_NO_DATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_SERIES_COLOUR: Final = re.compile("#0202([0-9a-f]{2})")
_PAGES: Final = re.compile("<style.*?</style>| font-family: [^;]*;", re.DOTALL)
"""Styles in the output of the plotting library that the page replaces by its own."""

_ID: Final = re.compile(r'(\bid="|url\(#|href="#)')


def _text(value: str) -> str:
    """Return a text of a trace as markup, without elements and reordering characters."""
    return escape(visible(value))


def rate_plot(hops: Sequence[Hop]) -> str:
    """Draw the messages per second of each sender and route, over the time of the trace.

    Args:
        hops: Counts of messages, at least one; the first SERIES are drawn.
    """
    longest = hops[0].seconds * len(hops[0].counts)

    def draw(axes: "Axes", _size: str) -> None:
        for at, hop in enumerate(hops[:SERIES]):
            times = [hop.seconds * number for number in range(len(hop.counts) + 1)]
            rates = [count / hop.seconds for count in hop.counts]
            axes.stairs(rates, times, baseline=None, color=_COLOURS[at], linestyle=_DASHES[at])
        axes.set_xlabel("seconds since the first record")
        axes.set_ylabel("messages per second")
        axes.set_xlim(0, longest)
        axes.set_ylim(bottom=0)

    what = "A line for each hop; the table below has the mean and the busiest time of each."
    return _plot("rates", ("Messages per second over time", what), 2.3, draw)


def latency_plot(latencies: Mapping[Way, Latency]) -> str:
    """Draw which part of the requests was answered within which time.

    Args:
        latencies: Latencies of at least one route.
    """

    def draw(axes: "Axes", _size: str) -> None:
        for at, latency in enumerate(latencies.values()):
            times = [max(seconds * _MILLI, 1e-3) for seconds in latency.quantiles]
            shares = [100 * share for share in QUANTILES]
            axes.plot(times, shares, color=_COLOURS[at], linestyle=_DASHES[at])
        _decades(axes)
        axes.set_xlabel("ms (log scale)")
        axes.set_ylabel("% of requests answered")
        axes.set_ylim(0, 100)

    what = "A line for each route; the table below has medians and 95th percentiles."
    return _plot("latencies", ("Time from request to final answer", what), 2.3, draw)


def dwell_plot(machines: Sequence[MachineUse]) -> str:
    """Draw how long entities stayed in states: from the median to the longest stay.

    Args:
        machines: At least one of them has a dwell time.
    """
    stays = [
        (f"{machine.machine}: {dwell.state}", dwell)
        for machine in machines
        for dwell in machine.dwells
    ]
    most = sorted(stays, key=lambda stay: -stay[1].stays)[:_DWELLS]
    most.sort(key=lambda stay: stay[1].median)

    def draw(axes: "Axes", size: str) -> None:
        labels = [name for name, _ in most] if size == "wide" else []
        for at, (name, dwell) in enumerate(most):
            median, p95, longest = (
                max(each * _MILLI, 1e-3) for each in (dwell.median, dwell.p95, dwell.longest)
            )
            axes.plot([median, longest], [at, at], color=_COLOURS[0], linewidth=1)
            axes.plot([median, p95], [at, at], color=_COLOURS[0], linewidth=4)
            axes.plot([median], [at], color=_COLOURS[1], marker="o", markersize=5)
            if not labels:
                axes.text(0.01, at + 0.28, name, transform=axes.get_yaxis_transform(), fontsize=8)
        _decades(axes)
        axes.set_xlabel("ms (log scale)")
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(-0.6, len(most))

    medians = (f"{name}: median {duration(dwell.median)}" for name, dwell in most)
    what = f"{'; '.join(medians)}. The tables of the machines have all figures."
    return _plot("dwells", ("Time in each state, the most frequent ones", what),
                 0.7 + 0.27 * len(most), draw)  # fmt: skip


def _decades(axes: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: PLC0415 - as in `_plot`

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _style() -> AbstractContextManager[None]:
    from matplotlib import rc_context  # noqa: PLC0415 - as in `_plot`

    return rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "protofly",
            "text.parse_math": False,
            "font.size": 9,
            "text.color": _INK,
            "axes.labelcolor": _INK,
            "axes.edgecolor": _INK,
            "xtick.color": _INK,
            "ytick.color": _INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": _INK,
            "grid.alpha": 0.2,
            "grid.linewidth": 0.5,
            "lines.linewidth": 1.6,
            "xtick.labelsize": 8,
            "ytick.labelsize": 8,
        }
    )


def _plot(name: str, text: tuple[str, str], height: float, draw: _Draw) -> str:
    """Return an `<svg>` element for each size; their ids begin with `name`."""
    return _in_sizes(lambda size, width: _draw_plot(name, text, (size, width, height), draw))


def _in_sizes(draw: Callable[[str, int], str]) -> str:
    return "".join(draw(size, width) for size, width in _SIZES.items())


def _draw_plot(name: str, text: tuple[str, str], form: tuple[str, int, float], draw: _Draw) -> str:
    # It takes a second to import: only reports need it.
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    size, width, height = form
    prefix = f"{name}-{size}"
    with _style():
        figure = Figure(figsize=(width / _INCH, height), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        draw(axes, size)
        file = StringIO()
        figure.savefig(file, format="svg", metadata=_NO_DATA)
    drawn = file.getvalue()
    drawn = _ID.sub(rf"\g<1>{prefix}-", drawn[drawn.index("<svg") :])
    drawn = _SERIES_COLOUR.sub(lambda match: f"var(--series-{int(match[1], 16)})", drawn)
    drawn = _PAGES.sub("", drawn.replace(_INK, "currentColor"))
    title, what = text
    end = drawn.index(">")
    labels = f'role="img" aria-labelledby="{prefix}-title {prefix}-what"'
    box = re.sub(r'\b(?:width|height)="[^"]*" ?', "", drawn[4:end])
    return (
        f'<svg class="plot {size}" {labels}{box}>\n'
        f'<title id="{prefix}-title">{_text(title)}</title>\n'
        f'<desc id="{prefix}-what">{_text(what)}</desc>{drawn[end + 1 :]}'
    )


_ROW: Final = 34
_TOP: Final = 24
_SIDE: Final = 14
_BAR: Final = 44
_LETTER: Final = 6.2
"""Width of a letter; the table beside the drawing has the full text of a cut label."""

_Lanes = Mapping[tuple[str, str], int]


def sequence(story: Sequence[Row], name: str) -> str:
    """Draw the history of a violation as a sequence diagram; the last record violates the claim.

    Each component has a lifeline with a letter.

    Args:
        story: The records, oldest first; at least one.
        name: Title of the drawing, for screen readers.
    """
    return _in_sizes(lambda size, width: _draw_sequence(story, name, size, width))


def _draw_sequence(story: Sequence[Row], name: str, size: str, width: int) -> str:
    lanes = words.lanes(story)
    height = _TOP + _ROW * len(story) + 8
    parts = [_lifeline(at, _x(at, lanes, width), height) for at in lanes.values()]
    before = story[0]
    for at, event in enumerate(story):
        along = (
            _x(lanes[before.node, before.actor], lanes, width),
            _x(lanes[event.node, event.actor], lanes, width),
        )
        kind = "broken" if at == len(story) - 1 else "told"
        parts.append(_event(event, along, _TOP + _ROW * at + 26, kind, width))
        before = event
    return (
        f'<svg class="sequence {size}" role="img" viewBox="0 0 {width} {height}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{_text(name)}</title>{"".join(parts)}</svg>\n'
    )


def _x(lane: int, lanes: _Lanes, width: int) -> int:
    return _SIDE + (width - 2 * _SIDE) * lane // max(len(lanes) - 1, 1)


def _short(text: str, room: int) -> str:
    letters = int(room / _LETTER)
    return text if len(text) <= letters else f"{text[: letters - 3]}..."


def _lifeline(lane: int, x: int, height: int) -> str:
    return (
        f'<g class="lifeline"><text x="{x}" y="14">{words.letter(lane)}</text>'
        f'<path d="M{x} 20V{height}"/></g>'
    )


def _event(event: Row, along: tuple[int, int], y: int, kind: str, width: int) -> str:
    """Return an arrow from the previous record, and a dot on the lifeline of the component."""
    start, end = along
    arrow = ""
    if start != end:
        back = end - 10 if end > start else end + 10
        arrow = f'<path d="M{start} {y}H{end}M{back} {y - 4}L{end} {y}L{back} {y + 4}"/>'
    room = max(end, width - end) - 7
    anchored = ("start", end + 7) if end <= width / 2 else ("end", end - 7)
    return (
        f'<g class="{kind}">{arrow}<circle cx="{end}" cy="{y}" r="4"/>'
        f'<text text-anchor="{anchored[0]}" x="{anchored[1]}" y="{y - 6}">'
        f"{_text(_short(words.event_words(event), room))}</text></g>"
    )


def timeline(processes: Sequence[Row], holes: Sequence[Row]) -> str:
    """Draw the first and last record of each process, and the gaps between.

    Args:
        processes: At least one.
        holes: The gaps.
    """
    return _in_sizes(lambda size, width: _draw_timeline(processes, holes, size, width))


def _draw_timeline(processes: Sequence[Row], holes: Sequence[Row], size: str, width: int) -> str:
    began = min(process.began for process in processes)
    scale = (width - 8) / max(max(process.ended for process in processes) - began, 1e-9)
    height = _BAR * len(processes) + 8
    bars = []
    for at, process in enumerate(processes):
        own_holes = [hole for hole in holes if (hole.run, hole.node) == (process.run, process.node)]
        bars.append(_bar(process, own_holes, (began, scale), _BAR * at, width))
    name = "When each process wrote records, and where records are missing"
    return (
        f'<svg class="timeline {size}" role="img" viewBox="0 0 {width} {height}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{name}</title>{"".join(bars)}</svg>\n'
    )


def _bar(process: Row, holes: Sequence[Row], axis: tuple[float, float], y: int, width: int) -> str:
    began, _ = axis
    span = f"{duration(process.began - began)} to {duration(process.ended - began)}"
    told = f"{process.node}: {span}, {process.records:,} records"
    gaps = "".join(
        f'<g class="hole"><title>{_text(hole.reason)}</title>'
        f"{_stretch(hole.began, hole.ended, axis, (y + 18, 18))}</g>"
        for hole in holes
    )
    return (
        f"<g><title>{_text(f'{told}, run {process.run}')}</title>"
        f'<text x="4" y="{y + 14}">{_text(_short(told, width))}</text>'
        f"{_stretch(process.began, process.ended, axis, (y + 22, 10))}</g>{gaps}"
    )


def _stretch(start: float, end: float, axis: tuple[float, float], row: tuple[int, int]) -> str:
    began, scale = axis
    y, height = row
    return (
        f'<rect x="{4 + (start - began) * scale:.1f}" y="{y}" '
        f'width="{max((end - start) * scale, 2):.1f}" height="{height}"/>'
    )
