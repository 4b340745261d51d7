"""Parts of the page as HTML: sections, cards and tables, for every width and for screen readers.

On a narrow screen a row of a table becomes a block of lines, each with the name of its column.
The roles say what the parts of such a table are, since browsers forget it.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from specs.plain_text import visible


def text(told: str) -> str:
    """Return a text of a trace as HTML: no markup, and no mark that reorders what follows."""
    return escape(visible(told))


def anchor(title: str) -> str:
    """Return the id of a section."""
    return title.lower().replace(" ", "-")


def section(title: str, *cards: str) -> str:
    """Return a headline with the cards that belong under it; "" if there are none."""
    body = "".join(f'<div class="card">\n{card}</div>\n' for card in cards if card)
    return body and (
        f'<section aria-labelledby="{anchor(title)}">\n'
        f'<h2 id="{anchor(title)}">{title}</h2>\n{body}</section>\n'
    )


def headed(title: str, identity: str, body: str) -> str:
    """Return a part of a section with a headline and a label of its own.

    Args:
        title: The headline.
        identity: Id of the headline.
        body: HTML.
    """
    return (
        f'<article aria-labelledby="{text(identity)}">\n'
        f'<h3 id="{text(identity)}">{text(title)}</h3>\n{body}</article>\n'
    )


def details(summary: str, body: str) -> str:
    """Return something that is shown when it is asked for.

    Args:
        summary: The line that is always shown.
        body: What is below it, once opened; markup.
    """
    return body and f"<details>\n<summary>{text(summary)}</summary>\n{body}</details>\n"


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], marked: int | None = None
) -> str:
    """Return a table; "" if it has no row.

    Args:
        caption: What it shows.
        heads: Of the columns; one that begins with `#` is of numbers.
        rows: The cells of each row.
        marked: The row that is marked as wrong.
    """
    titles = [head.removeprefix("#") for head in heads]
    body = [
        f'<tr role="row"{_MARKED if at == marked else ""}>{_row(titles, cells)}</tr>\n'
        for at, cells in enumerate(rows)
    ]
    line = "".join(
        f'<th role="columnheader" scope="col"{_NUMBER if head.startswith("#") else ""}>{title}</th>'
        for head, title in zip(heads, titles, strict=True)
    )
    if not body:
        return ""
    return (
        f'<table role="table">\n<caption>{text(caption)}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{line}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{"".join(body)}</tbody>\n</table>\n'
    )


_MARKED: Final = ' class="here"'
_NUMBER: Final = ' class="number"'


def _row(titles: Sequence[str], cells: Sequence[str]) -> str:
    return "".join(
        f'<td role="cell" data-head="{title}"{told.removeprefix("<td")}'
        for title, told in zip(titles, cells, strict=True)
    )


def cell(told: str) -> str:
    """Return a cell with words."""
    return f"<td>{text(told)}</td>"


def code(told: str) -> str:
    """Return a cell with a name that programs use."""
    return f'<td class="key">{text(told)}</td>'


def number(told: str) -> str:
    """Return a cell with a figure."""
    return f'<td class="number">{text(told)}</td>'


def word(verdict: str, told: str) -> str:
    """Return a cell with a verdict.

    Args:
        verdict: The verdict whose colour it has.
        told: The content of the cell.
    """
    return f'<td class="{verdict}"><span class="word">{text(told)}</span></td>'
