"""The report as one HTML page that opens offline: no script, nothing to fetch."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from fsm.judge.replay import Told
from fsm.judge.trace_line import Verdict
from spark.findings import BadLine, Broken, Findings, MachineUse, NodeFindings, Step
from spark.report.words import (
    BY_NOBODY,
    CHECKED,
    CLAIM,
    NOT_CHECKED,
    VERDICT,
    count,
    duration,
    machine_line,
    node_line,
    row_name,
)
from specs.claims import claim

__all__ = ["page"]


def page(findings: Findings, drawings: Mapping[str, str]) -> str:
    """Write the page.

    Args:
        findings: What was found.
        drawings: An `<svg>` element per machine.
    """
    style = (files("spark.report") / "report.css").read_text()
    used = [machine for machine in findings.machines if machine.steps or machine.violations]
    unused = [machine for machine in findings.machines if machine not in used]
    parts = [
        _head(findings),
        _section("Claims that were checked", _claims(findings)),
        _section("Claims that were not checked", *_not_checked()),
        _section("First violation of each claim", *map(_broken, findings.first)),
        _section("Nodes", _nodes(findings.nodes)),
        _section("What is missing", _gaps(findings)),
        _section("Lines that cannot be read", *_bad_lines(findings)),
        _section("Machines", *(_machine(one, drawings.get(one.machine, "")) for one in used)),
        _section("Machines that nobody used", *(_unused(one) for one in unused)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{findings.verdict} - Protofly trace report</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n{''.join(parts)}</body>\n</html>\n"
    )


def _head(findings: Findings) -> str:
    figures = {
        "events": findings.events,
        "entities": findings.entities,
        "violations": findings.violations,
        "lines quarantined": findings.quarantined,
    }
    shown = "".join(f"<div><b>{number:,}</b>{name}</div>" for name, number in figures.items())
    return (
        f'<header class="card {findings.verdict}">\n<p class="muted">Protofly trace report</p>\n'
        f'<h1 class="word">{findings.verdict}</h1>\n<p>{VERDICT[findings.verdict]}</p>\n'
        f'<p class="muted">Checked: {CHECKED}; {NOT_CHECKED}.</p>\n'
        f'<div class="figures">{shown}</div>\n</header>\n'
    )


def _section(title: str, *cards: str) -> str:
    """A headline with what belongs under it; nothing if there is nothing."""
    body = "".join(f'<div class="card">\n{card}</div>\n' for card in cards if card)
    return f"<h2>{title}</h2>\n{body}" if body else ""


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    """A table; a head that begins with `#` is of a column of numbers."""
    cells = "".join(
        f'<th class="number">{head[1:]}</th>' if head.startswith("#") else f"<th>{head}</th>"
        for head in heads
    )
    return f"<table>\n<tr>{cells}</tr>\n{''.join(rows)}</table>\n"


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
    return _table(["claim", "what it says", "", "#violations"], rows)


def _not_checked() -> list[str]:
    return [
        _listed("No trace can decide", BY_NOBODY),
    ]


def _listed(title: str, claims: Sequence[claim.Claim]) -> str:
    rows = (_row(_code(one.name), _cell(one.text)) for one in claims)
    summary = f"<summary>{title} these {len(claims)}</summary>"
    return f"<details>\n{summary}\n{_table(['claim', 'what it says'], rows)}</details>\n"


def _broken(broken: Broken) -> str:
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
    timeline = "" if step is None else _timeline(step)
    return f"<h3><code>{broken.claim}</code></h3>\n{said}{timeline}"


def _timeline(step: Step) -> str:
    began = step.before[0].t if step.before else step.record.t
    rows = [_told(told, began, "<tr>") for told in step.before]
    rows.append(_told(step.record, began, '<tr class="here">'))
    return _table(["#record", "#after", "left", "because", "entered"], rows)


def _gaps(findings: Findings) -> str:
    rows = [
        _row(_cell(one.node), _number(f"{one.ln:,}"), _cell(one.reason)) for one in findings.gaps
    ]
    return _table(["node", "#record", ""], rows) if rows else ""


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
    return _table(["node", "run", "verdict", "#records", ""], rows)


def _bad_lines(findings: Findings) -> list[str]:
    bad = findings.bad_lines
    if not bad:
        return []
    more = findings.quarantined - len(bad)
    note = f'<p class="muted">and {count(more, "more line")}</p>\n' if more > 0 else ""
    return [_table(["file", "#line", "reason", "text"], map(_bad_line, bad)) + note]


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
    stays = _table(["state left", "#stays", "#median", "#p95", "#longest"], dwells)
    tables = [_table(["transition", "#used"], used), stays if dwells else ""]
    columns = "".join(f"<div>{table}</div>" for table in tables)
    return (
        f"<h3>{escape(machine.machine)}</h3>\n<p>{escape(machine_line(machine))}</p>\n"
        f'<div class="drawing">{drawing}</div>\n<div class="columns">{columns}</div>\n'
    )


def _unused(machine: MachineUse) -> str:
    return f"<h3>{machine.machine}</h3>\n<p>{count(len(machine.used), 'declared transition')}</p>\n"
