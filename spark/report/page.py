"""The report as one HTML page that opens offline: no script, nothing to fetch."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Final, final

import attrs

from fsm.judge.replay import Told
from fsm.judge.trace_line import Verdict
from fsm.machine_list import MACHINES
from spark.findings import BadLine, Broken, Findings, MachineUse, NodeFindings, Row, Step
from spark.report.figures import Figures, Latency, Way
from spark.report.pictures import (
    SERIES,
    dwell_plot,
    latency_plot,
    legend,
    rate_plot,
    sequence,
    timeline,
)
from spark.report.words import (
    BY_NOBODY,
    CLAIM,
    VERDICT,
    Story,
    anchor,
    cell,
    checked,
    code,
    count,
    details,
    duration,
    headed,
    machine_line,
    node_line,
    number,
    row_name,
    section,
    table,
    text,
    word,
)
from specs.trace import ABSENT

_UNDECLARED: Final = 20
"""Undeclared steps and states shown of each machine."""


@final
@attrs.frozen(kw_only=True)
class Shown:
    """What the page shows beside the findings.

    Attributes:
        drawings: An `<svg>` element per machine.
        illegal: An `<svg>` element with a step that its machine does not have, by machine and step.
        stories: Histories by the place of the violation.
        inputs: The traces.
        command: What was called, as one would type it; "": a program asked for it.
        made: When, in words.
        compared: What changed since a former report; None: there is none.
    """

    drawings: Mapping[str, str]
    illegal: Mapping[tuple[str, Row], str]
    stories: Mapping[tuple[str, str, int], Story]
    figures: Figures
    inputs: Sequence[str]
    command: str
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
    contents = {
        "Compared with the former report": [_compared(shown.compared)],
        "Violations": list(_violations(findings, shown)),
        "Claims that were checked": list(_claims(findings)),
        "Claims that were not checked": [_not_checked()],
        "Run timeline": [_timeline(figures)],
        "Processes": [_nodes(findings.nodes)],
        "What is missing": [_gaps(findings)],
        "Lines that cannot be read": [_bad_lines(findings)],
        "P2P share and its gain": [_share(figures)],
        "Message rates": [_rates(figures)],
        "Slowest set-ups": [_set_ups(figures)],
        "Dwell times": [_dwells(used)],
        "Message records per component": [_components(figures)],
        "Machines": [
            _machine(one, f"machine-{at}", _unique(shown.drawings.get(one.machine, ""), "all"))
            for at, one in enumerate(used)
        ],
        "Machines without a step": [_unused(unused)],
    }
    sections = {title: section(title, *cards) for title, cards in contents.items()}
    links = "".join(
        f'<li><a href="#{anchor(title)}">{title}</a></li>\n'
        for title, body in sections.items()
        if body
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{findings.verdict} - Protofly trace report</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n{_head(findings, shown)}"
        f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>\n'
        f"<main>\n{''.join(sections.values())}</main>\n</body>\n</html>\n"
    )


def _unique(drawing: str, prefix: str) -> str:
    """Prefix the ids of a drawing, as a page may show a machine several times."""
    return re.sub(r'(<g [^>]*?id=")', rf"\g<1>{anchor(prefix)}-", drawing)


def _head(findings: Findings, shown: Shown) -> str:
    figures = {
        "events": findings.events,
        "entities": findings.entities,
        "violations": findings.violations,
        "lines quarantined": findings.quarantined,
    }
    boxes = "".join(f"<div><b>{total:,}</b>{name}</div>" for name, total in figures.items())
    by = f" by <code>{text(shown.command)}</code>" if shown.command else ""
    inputs = "".join(f"<li><code>{text(one)}</code></li>\n" for one in shown.inputs)
    return (
        f'<header class="card {findings.verdict}">\n<p class="muted">Protofly trace report</p>\n'
        f'<h1 class="word">{findings.verdict}</h1>\n<p>{VERDICT[findings.verdict]}</p>\n'
        f'<p class="muted">{"; ".join(checked(findings))}.</p>\n'
        f'<p class="muted">Made {text(shown.made)}{by}</p>\n'
        f'<p class="muted">Inputs:</p>\n<ul class="lanes">\n{inputs}</ul>\n'
        f'<div class="figures">{boxes}</div>\n</header>\n'
    )


def _compared(compared: Sequence[tuple[str, str, str]] | None) -> str:
    if compared is None:
        return ""
    if not compared:
        return "<p>Nothing changed.</p>\n"
    rows = (tuple(map(cell, change)) for change in compared)
    return table("What changed", ["figure", "former report", "this report"], rows)


def _claims(findings: Findings) -> Iterator[str]:
    heads = ["claim", "what it says", "result", "#violations"]
    by_claim = findings.by_claim.items()
    broken = [(name, times) for name, times in by_claim if times]
    kept = [(name, times) for name, times in by_claim if not times]
    yield table("Broken claims", heads, (_claim(name, times) for name, times in broken))
    told = table("Kept claims", heads, (_claim(name, times) for name, times in kept))
    yield details(f"{count(len(kept), 'claim')} kept", told)


def _claim(name: str, broken: int) -> Sequence[str]:
    verdict, state = (Verdict.VIOLATIONS, "broken") if broken else (Verdict.CONFORMANT, "kept")
    return code(name), cell(CLAIM[name]), word(verdict, state), number(f"{broken:,}")


def _not_checked() -> str:
    rows = ((code(one.name), cell(one.text)) for one in BY_NOBODY)
    told = table("No trace can decide these", ["claim", "what it says"], rows)
    return details(f"No trace can decide these {len(BY_NOBODY)}", told)


def _timeline(figures: Figures) -> str:
    if not figures.processes:
        return ""
    more = f"<p>and {count(figures.others, 'more process')}</p>\n" if figures.others else ""
    red = "<p>Red: records are missing.</p>\n" if figures.holes else ""
    return timeline(figures.processes, figures.holes) + red + more


def _nodes(nodes: Sequence[NodeFindings]) -> str:
    rows = (
        (cell(one.node), code(one.run), word(one.verdict, one.verdict), number(f"{one.records:,}"),
         cell(node_line(one)))
        for one in nodes
    )  # fmt: skip
    return table("Traces by process", ["process", "run", "verdict", "#records", "remark"], rows)


def _gaps(findings: Findings) -> str:
    rows = ((cell(one.node), number(f"{one.ln:,}"), cell(one.reason)) for one in findings.gaps)
    return table("Gaps", ["process", "#record", "what"], rows)


def _bad_lines(findings: Findings) -> str:
    bad = findings.bad_lines
    more = findings.quarantined - len(bad)
    note = f'<p class="muted">and {count(more, "more line")}</p>\n' if bad and more > 0 else ""
    return table("Unreadable lines", ["file", "#line", "reason", "text"], map(_bad, bad)) + note


def _bad(bad: BadLine) -> Sequence[str]:
    name = "/".join(bad.file.rsplit("/", 2)[-2:])
    return code(name), number(f"{bad.line:,}"), cell(bad.reason), code(bad.text[:120])


def _share(figures: Figures) -> str:
    traffic, latencies = figures.traffic, figures.latencies
    if traffic.share is None:
        return ""
    ways = [("direct link", traffic.direct), ("by the node", traffic.by_node),
            ("to and from services of a domain", traffic.services)]  # fmt: skip
    sent = table("Messages that left a process, each counted once", ["way", "#messages"],
                 ((cell(way), number(f"{times:,}")) for way, times in ways))  # fmt: skip
    total = count(traffic.direct + traffic.by_node, "message")
    said = (
        f"<p>{traffic.share:.0%} of {total} between runtimes went by a direct link. "
        f"{_gain(latencies)}</p>\n"
    )
    if not latencies:
        return said + sent
    rows = (
        (cell(way), number(f"{one.requests:,}"), number(duration(one.median)),
         number(duration(one.p95)), number(duration(one.quantiles[-1])))
        for way, one in latencies.items()
    )  # fmt: skip
    times = table("Requests between runtimes, from submission to final answer",
                  ["way", "#requests", "#median", "#p95", "#longest"], rows)  # fmt: skip
    return f"{said}{latency_plot(latencies)}{legend([*latencies])}{times}{sent}"


def _gain(latencies: Mapping[Way, Latency]) -> str:
    direct, node = latencies.get(Way.DIRECT), latencies.get(Way.NODE)
    if direct is None or node is None or not node.median:
        return "There is nothing to compare their latency with."
    gain = node.median - direct.median
    word = "less" if gain >= 0 else "more"
    return (
        f"The median request took {duration(direct.median)} by a direct link and "
        f"{duration(node.median)} by the node: {abs(gain) / node.median:.0%} {word}."
    )


def _rates(figures: Figures) -> str:
    hops = figures.hops
    if not hops:
        return ""
    names = [f"{hop.sender}, {hop.way}" for hop in hops]
    rows = (
        (cell(hop.sender), cell(hop.way), number(f"{hop.messages:,}"), number(f"{hop.mean:,.1f}"),
         number(f"{hop.busiest:,.1f}"))
        for hop in hops
    )  # fmt: skip
    caption = f"Messages sent on links; busiest: in the busiest {duration(hops[0].seconds)}"
    heads = ["sender", "way", "#messages", "#mean per second", "#busiest per second"]
    told = table(caption, heads, rows)
    return f"{rate_plot(hops)}{legend(names[:SERIES])}{told}"


def _set_ups(figures: Figures) -> str:
    rows = (
        (cell(one.machine), code(one.key), cell(one.node), number(duration(one.seconds)))
        for one in figures.set_ups
    )
    heads = ["machine", "connection", "process", "#creation to live"]
    return table("Longest time from creation to live", heads, rows)


def _dwells(machines: Sequence[MachineUse]) -> str:
    if not any(one.dwells for one in machines):
        return ""
    lines = "Dot: median; thick line: to the 95th percentile; thin line: to the longest stay."
    return f"{dwell_plot(machines)}<p>{lines}</p>\n"


def _components(figures: Figures) -> str:
    rows = [
        (cell(one.actor), code(one.op), number(f"{one.records:,}")) for one in figures.components
    ]
    heads = ["component", "operation", "#records"]
    told = table("Message records by component and operation", heads, rows)
    return details("Records of each component and operation", told)


def _violations(findings: Findings, shown: Shown) -> Iterator[str]:
    """Yield a card for each broken claim: its first violation, and the next ones to be opened."""
    claims: dict[str, list[Broken]] = {}
    for one in findings.shown:
        claims.setdefault(one.claim, []).append(one)
    drawn: dict[tuple[str, Row], str] = {}
    for claim, (first, *others) in claims.items():
        body = f'<p><span class="muted">claim</span> {text(CLAIM[claim])}</p>\n'
        body += _broken(first, f"violation of {claim}", shown, drawn)
        for at, one in enumerate(others, start=2):
            name = f"violation {at} of {claim}"
            body += details(_title(one), _broken(one, name, shown, drawn))
        body += _others(findings.by_claim[claim] - len(claims[claim]))
        yield headed(claim, f"broken-{anchor(claim)}", body)


def _title(broken: Broken) -> str:
    return f"Record {broken.ln:,} of {broken.node}: {broken.about}"


def _others(more: int) -> str:
    """Return the note about the violations that are not shown."""
    if more <= 0:
        return ""
    return (
        f"<p>And {count(more, 'more violation')}: all are in <code>violations.parquet</code>, the "
        "records before each in <code>stories.parquet</code>. The option <code>--diagrams</code> "
        "shows more of each claim.</p>\n"
    )


def _broken(broken: Broken, name: str, shown: Shown, drawn: dict[tuple[str, Row], str]) -> str:
    """Show a violation.

    Args:
        broken: The violation.
        name: What it is called, for screen readers.
        shown: What the page shows.
        drawn: Ids of the steps that are drawn already.
    """
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
        f'<p><span class="muted">{fact}</span> <span class="key">{text(told)}</span></p>\n'
        for fact, told in facts
    )
    steps = "" if step is None else _steps(step)
    story = shown.stories.get((broken.run, broken.node, broken.ln), ())
    history = sequence(story, f"Records before the {name}") if story else ""
    return said + history + steps + _illegal(step, shown, drawn)


def _illegal(step: Step | None, shown: Shown, drawn: dict[tuple[str, Row], str]) -> str:
    """Draw a step that its machine does not have, once on the page."""
    if step is None or (made := made_by(step)) not in shown.illegal:
        return ""
    if made in drawn:
        return f'<p><a href="#{drawn[made]}">This step in the drawing of its machine</a></p>\n'
    drawn[made] = f"step-{len(drawn) + 1}"
    drawing = _unique(shown.illegal[made], drawn[made])
    return f'<div class="drawing" id="{drawn[made]}">{drawing}</div>\n'


def made_by(step: Step) -> tuple[str, Row]:
    """Return the machine of a step, and the row that its table would need."""
    record = step.record
    old = record.old or ABSENT
    return step.machine, Row(old, record.cause, record.new or old)


def _steps(step: Step) -> str:
    began = step.before[0].t if step.before else step.record.t
    rows = [_told(told, began) for told in (*step.before, step.record)]
    heads = ["#record", "#after", "left", "because", "entered"]
    return table("Steps of the entity", heads, rows, len(rows) - 1)


def _told(told: Told, began: float) -> Sequence[str]:
    after = "+" + duration(max(told.t - began, 0.0))
    states = cell(told.old or ""), code(told.cause), cell(told.new or "refused")
    return number(f"{told.ln:,}"), number(after), *states


def _machine(machine: MachineUse, identity: str, drawing: str) -> str:
    dwells = (
        (cell(one.state), number(f"{one.stays:,}"), number(duration(one.median)),
         number(duration(one.p95)), number(duration(one.longest)))
        for one in machine.dwells
    )  # fmt: skip
    states = _undeclared_states(machine)
    tables = [
        table("Declared transitions", ["transition", "#used"], _counted(machine.used.items())),
        table("States that the machine does not have", ["state", "#entered or left"],
              ((cell(state), number(f"{times:,}")) for state, times in states.items())),
        table("Steps that the machine does not have", ["step", "#made"],
              _counted([*machine.undeclared.items()][:_UNDECLARED])),
        table("Dwell times", ["state left", "#stays", "#median", "#p95", "#longest"], dwells),
    ]  # fmt: skip
    used, *strange, stays = tables
    columns = "".join(f"<div>{one}</div>" for one in strange if one)
    figures = "".join(f"<div>{one}</div>" for one in (used, stays) if one)
    shown = details("How often each transition was used, and dwell times", figures)
    body = (
        f"<p>{text(machine_line(machine))}</p>\n"
        f'<div class="drawing">{drawing}</div>\n<div class="columns">{columns}</div>\n'
        f"{shown}"
    )
    return headed(machine.machine, identity, body)


def _counted(rows: Iterable[tuple[Row, int]]) -> Iterator[Sequence[str]]:
    return ((cell(row_name(row)), number(f"{times:,}")) for row, times in rows)


def _undeclared_states(machine: MachineUse) -> Mapping[str, int]:
    """Return how many undeclared steps enter or leave each state that is not declared."""
    declared = MACHINES.get(machine.machine)
    known = {ABSENT, *(state.value for state in (declared.states if declared else ()))}
    times: dict[str, int] = {}
    for row, made in machine.undeclared.items():
        for state in {row.old, row.new} - known:
            times[state] = times.get(state, 0) + made
    return dict(sorted(times.items(), key=lambda one: (-one[1], one[0]))[:_UNDECLARED])


def _unused(machines: Sequence[MachineUse]) -> str:
    rows = ((code(one.machine), number(f"{len(one.used):,}")) for one in machines)
    return table("Declared machines of which there is no record",
                 ["machine", "#declared transitions"], rows)  # fmt: skip
