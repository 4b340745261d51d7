"""The report as one HTML page that opens offline: no script, nothing to fetch."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Final, final

import attrs

from fsm.judge.replay import Told
from fsm.judge.trace_line import Verdict
from spark.findings import BadLine, Broken, Findings, MachineUse, NodeFindings, Step
from spark.report.figures import Figures
from spark.report.sequence import sequence, timeline
from spark.report.stories import Story
from spark.report.words import (
    BY_NOBODY,
    CLAIM,
    VERDICT,
    checked,
    count,
    duration,
    machine_line,
    node_line,
    row_name,
)
from specs.claims import claim

__all__ = ["Shown", "page"]

_UNDECLARED: Final = 20
"""Undeclared steps shown of each machine."""


@final
@attrs.frozen(kw_only=True)
class Shown:
    """What the page shows beside the findings.

    Attributes:
        drawings: An `<svg>` element per machine.
        illegal: An `<svg>` element with the step that breaks a claim, by claim.
        stories: By the place of the violation.
        inputs: The traces.
        made: When, in words.
        compared: What changed since a former report; None: there is none.
    """

    drawings: Mapping[str, str]
    illegal: Mapping[str, str]
    stories: Mapping[tuple[str, str, int], Story]
    figures: Figures
    inputs: Sequence[str]
    made: str
    compared: Sequence[tuple[str, str, str]] | None


def page(findings: Findings, shown: Shown) -> str:
    """Write the page.

    Args:
        findings: What was found.
        shown: What the page shows beside that.
    """
    style = (files("spark.report") / "report.css").read_text()
    used = [machine for machine in findings.machines if machine.steps or machine.violations]
    unused = [machine for machine in findings.machines if machine not in used]
    figures = shown.figures
    sections = {
        "Compared with the former report": [_compared(shown.compared)],
        "First violation of each claim": [_broken(one, shown) for one in findings.first],
        "Claims that were checked": [_claims(findings)],
        "Claims that were not checked": _not_checked(),
        "Run timeline": [timeline(figures.processes) if figures.processes else ""],
        "Nodes": [_nodes(findings.nodes)],
        "What is missing": [_gaps(findings)],
        "Lines that cannot be read": _bad_lines(findings),
        "Slowest set-ups": [_set_ups(figures)],
        "Message records per component": [_hops(figures)],
        "Machines": [
            _machine(one, _unique(shown.drawings.get(one.machine, ""), "all")) for one in used
        ],
        "Machines without a step": [_unused(one) for one in unused],
    }
    there = {title: cards for title, cards in sections.items() if any(cards)}
    links = "".join(f'<li><a href="#{_anchor(title)}">{title}</a></li>' for title in there)
    body = "".join(_section(title, *cards) for title, cards in there.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{findings.verdict} - Protofly trace report</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n{_head(findings, shown)}"
        f'<nav aria-label="Contents">\n<ul>{links}</ul>\n</nav>\n<main>\n{body}</main>\n'
        "</body>\n</html>\n"
    )


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _unique(drawing: str, prefix: str) -> str:
    """Prefix the ids of a drawing, as a page may show a machine several times."""
    return re.sub(r'(<g [^>]*?id=")', rf"\g<1>{prefix}-", drawing)


def _compared(compared: Sequence[tuple[str, str, str]] | None) -> str:
    if compared is None:
        return ""
    if not compared:
        return "<p>Nothing changed.</p>\n"
    rows = (_row(*map(_cell, change)) for change in compared)
    return _table("What changed", ["figure", "former report", "this report"], rows)


def _set_ups(figures: Figures) -> str:
    rows = [
        _row(_cell(one.machine), _code(one.key), _cell(one.node), _number(duration(one.seconds)))
        for one in figures.set_ups
    ]
    heads = ["machine", "connection", "process", "#creation to live"]
    return _table("Longest time from creation to live", heads, rows) if rows else ""


def _hops(figures: Figures) -> str:
    rows = [
        _row(_cell(one.actor), _code(one.op), _number(f"{one.records:,}")) for one in figures.hops
    ]
    heads = ["component", "operation", "#records"]
    return _table("Message records by component and operation", heads, rows) if rows else ""


def _head(findings: Findings, shown: Shown) -> str:
    figures = {
        "events": findings.events,
        "entities": findings.entities,
        "violations": findings.violations,
        "lines quarantined": findings.quarantined,
    }
    boxes = "".join(f"<div><b>{number:,}</b>{name}</div>" for name, number in figures.items())
    command = f"python -m spark validate {shlex.join(shown.inputs)}"
    return (
        f'<header class="card {findings.verdict}">\n<p class="muted">Protofly trace report</p>\n'
        f'<h1 class="word">{findings.verdict}</h1>\n<p>{VERDICT[findings.verdict]}</p>\n'
        f'<p class="muted">{"; ".join(checked(findings)).capitalize()}.</p>\n'
        f'<p class="muted">Made {escape(shown.made)} by <code>{escape(command)}</code></p>\n'
        f'<div class="figures">{boxes}</div>\n</header>\n'
    )


def _section(title: str, *cards: str) -> str:
    """A headline with what belongs under it; cards scroll, so the keyboard must reach them."""
    body = "".join(
        f'<div class="card" tabindex="0" role="region" aria-label="{title}">\n{card}</div>\n'
        for card in cards
        if card
    )
    return (
        f'<section aria-labelledby="{_anchor(title)}">\n'
        f'<h2 id="{_anchor(title)}">{title}</h2>\n{body}</section>\n'
    )


def _table(caption: str, heads: Sequence[str], rows: Iterable[str]) -> str:
    """A table; a head that begins with `#` is of a column of numbers."""
    cells = "".join(
        f'<th scope="col" class="number">{head[1:]}</th>'
        if head.startswith("#")
        else f'<th scope="col">{head}</th>'
        for head in heads
    )
    title = f"<caption>{escape(caption)}</caption>"
    return f"<table>\n{title}\n<tr>{cells}</tr>\n{''.join(rows)}</table>\n"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(cells)}</tr>\n"


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def _code(text: str) -> str:
    return f'<td class="key">{escape(text)}</td>'


def _number(text: str) -> str:
    return f'<td class="number">{text}</td>'


def _word(verdict: Verdict) -> str:
    return f'<td class="{verdict}"><span class="word">{verdict}</span></td>'


def _claims(findings: Findings) -> str:
    rows = []
    for name, broken in findings.by_claim.items():
        verdict = Verdict.VIOLATIONS if broken else Verdict.CONFORMANT
        state = (
            f'<td class="{verdict}"><span class="word">{"broken" if broken else "kept"}</span></td>'
        )
        rows.append(_row(_code(name), _cell(CLAIM[name]), state, _number(f"{broken:,}")))
    return _table("Claims", ["claim", "what it says", "result", "#violations"], rows)


def _not_checked() -> list[str]:
    return [
        _listed("No trace can decide", BY_NOBODY),
    ]


def _listed(title: str, claims: Sequence[claim.Claim]) -> str:
    rows = (_row(_code(one.name), _cell(one.text)) for one in claims)
    summary = f"<summary>{title} these {len(claims)}</summary>"
    return f"<details>\n{summary}\n{_table(title, ['claim', 'what it says'], rows)}</details>\n"


def _broken(broken: Broken, shown: Shown) -> str:
    step = broken.step
    facts = [
        ("about", broken.about if step is None else f"{step.machine} {step.key}"),
        ("record", f"{broken.ln:,} of {broken.node} (run {broken.run})"),
        ("expected", broken.expected),
    ]
    if step is not None:
        facts.append(("by", step.actor))
    if step is not None and step.why:
        facts.append(("why", step.why))
    said = "".join(
        f'<p><span class="muted">{name}</span> <span class="key">{escape(text)}</span></p>\n'
        for name, text in facts
    )
    steps = "" if step is None else _timeline(step)
    story = shown.stories.get((broken.run, broken.node, broken.ln), ())
    drawn = sequence(story, f"Records before the violation of {broken.claim}") if story else ""
    illegal = _unique(shown.illegal.get(broken.claim, ""), broken.claim)
    return (
        f"<h3><code>{broken.claim}</code></h3>\n{said}"
        f'<div class="wide">{drawn}</div>\n{steps}<div class="drawing">{illegal}</div>\n'
    )


def _timeline(step: Step) -> str:
    began = step.before[0].t if step.before else step.record.t
    rows = [_told(told, began, "<tr>") for told in step.before]
    rows.append(_told(step.record, began, '<tr class="here">'))
    return _table("Steps of the entity", ["#record", "#after", "left", "because", "entered"], rows)


def _gaps(findings: Findings) -> str:
    rows = [
        _row(_cell(one.node), _number(f"{one.ln:,}"), _cell(one.reason)) for one in findings.gaps
    ]
    return _table("Gaps", ["node", "#record", "what"], rows) if rows else ""


def _told(told: Told, began: float, tag: str) -> str:
    after = "+" + duration(max(told.t - began, 0.0))
    states = _cell(told.old or ""), _code(told.cause), _cell(told.new or "refused")
    return f"{tag}{_number(f'{told.ln:,}')}{_number(after)}{''.join(states)}</tr>\n"


def _nodes(nodes: Sequence[NodeFindings]) -> str:
    rows = [
        _row(_cell(one.node), _code(one.run), _word(one.verdict), _number(f"{one.records:,}"),
             _cell(node_line(one)))
        for one in nodes
    ]  # fmt: skip
    return _table("Processes", ["node", "run", "verdict", "#records", "remark"], rows)


def _bad_lines(findings: Findings) -> list[str]:
    bad = findings.bad_lines
    if not bad:
        return []
    more = findings.quarantined - len(bad)
    note = f'<p class="muted">and {count(more, "more line")}</p>\n' if more > 0 else ""
    return [
        _table("Unreadable lines", ["file", "#line", "reason", "text"], map(_bad_line, bad)) + note
    ]


def _bad_line(bad: BadLine) -> str:
    name = "/".join(bad.file.rsplit("/", 2)[-2:])
    return _row(_code(name), _number(f"{bad.line:,}"), _cell(bad.reason), _code(bad.text[:120]))


def _machine(machine: MachineUse, drawing: str) -> str:
    dwells = [
        _row(_cell(one.state), _number(f"{one.stays:,}"), _number(duration(one.median)),
             _number(duration(one.p95)), _number(duration(one.longest)))
        for one in machine.dwells
    ]  # fmt: skip
    used = [_row(_cell(row_name(row)), _number(f"{n:,}")) for row, n in machine.used.items()]
    stays = _table("Dwell times", ["state left", "#stays", "#median", "#p95", "#longest"], dwells)
    undeclared = [
        _row(_cell(row_name(row)), _number(f"{n:,}"))
        for row, n in list(machine.undeclared.items())[:_UNDECLARED]
    ]
    found = _table("Steps that the table does not have", ["step", "#made"], undeclared)
    tables = [
        _table("Declared transitions", ["transition", "#used"], used),
        found if undeclared else "",
        stays if dwells else "",
    ]
    columns = "".join(f"<div>{table}</div>" for table in tables)
    return (
        f"<h3>{escape(machine.machine)}</h3>\n<p>{escape(machine_line(machine))}</p>\n"
        f'<div class="drawing">{drawing}</div>\n<div class="columns">{columns}</div>\n'
    )


def _unused(machine: MachineUse) -> str:
    return f"<h3>{machine.machine}</h3>\n<p>{count(len(machine.used), 'declared transition')}</p>\n"
