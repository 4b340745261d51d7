"""Write the files of a report: report.html, summary.json and drawings; compare two summaries."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from fsm.drawing.draw import svg
from fsm.machine_list import MACHINES
from spark.errors import FormerReportError
from spark.findings import Broken, Findings, MachineUse, NodeFindings, Row
from spark.report.figures import Figures
from spark.report.page import Extent, made_by, page
from spark.report.words import BY_NOBODY, CLAIM, CLAIM_ID, machine_line, node_line
from specs.jsonvalue import Json, JsonObject

_FIGURES: Final = ("verdict", "events", "entities", "violations", "quarantined")


def read_summary(directory: Path) -> JsonObject:
    """Read the summary of a former report.

    Raises:
        FormerReportError: There is no summary.
    """
    path = directory / "summary.json"
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise FormerReportError(str(path)) from exc
    if not isinstance(summary, dict):
        raise FormerReportError(str(path))
    return summary


def changes(former: JsonObject, summary: JsonObject) -> list[tuple[str, str, str]]:
    """Return the differences between two summaries, as name, former value and new value.

    Args:
        former: Summary of the former report.
        summary: Summary of this report.
    """
    before, now = dict(_flat(former)), dict(_flat(summary))
    names = dict.fromkeys([*before, *now])
    told = ((name, before.get(name, "-"), now.get(name, "-")) for name in names)
    return [part for part in told if part[1] != part[2]]


def _flat(summary: JsonObject) -> Iterator[tuple[str, str]]:
    for name in _FIGURES:
        yield name, str(summary.get(name, "-"))
    for claim, broken in _object(summary.get("by_claim")).items():
        yield f"violations of {claim}", str(broken)
    traffic = _object(summary.get("traffic"))
    yield "part of messages by a direct link", _number(traffic.get("share"))
    for way, requests in _object(summary.get("request_s")).items():
        yield f"median request, {way}, seconds", _number(_object(requests).get("median"))
    machines = summary.get("machines")
    for entry in machines if isinstance(machines, list) else ():
        machine = _object(entry)
        of = machine.get("machine")
        yield f"steps of {of}", str(machine.get("steps"))
        for state, dwell in _object(machine.get("dwell_s")).items():
            median = _number(_object(dwell).get("median"))
            yield f"median dwell in {state} of {of}, seconds", median


def _number(value: Json) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


VERDICT_SCHEMA: Final = "protofly.verdict/1"
"""Name and version of the format of the verdict in JSON."""

VIOLATION_SCHEMA: Final = "protofly.violation/1"
"""Name and version of the format of a violation in JSON."""


@attrs.frozen
class Report:
    """Paths of the files of a report.

    Attributes:
        html: The HTML page.
        summary: The JSON file with the verdict.
        drawings: The drawings of state machines, by name of the machine.
    """

    html: Path
    summary: Path
    drawings: dict[str, Path]


def write_report(findings: Findings, directory: Path, extent: Extent) -> Report:
    """Write all files of the report.

    Args:
        findings: The findings.
        directory: Where the files are written; made if it does not exist.
        extent: Further content of a report.
    """
    directory.mkdir(parents=True, exist_ok=True)
    drawn = dict(_drawings(findings))
    drawings = {name: directory / f"{name}.svg" for name in drawn}
    report = Report(directory / "report.html", directory / "summary.json", drawings)
    for name, path in drawings.items():
        path.write_text(drawn[name], encoding="utf-8")
    summary: JsonObject = verdict_object(findings, report) | {
        "first": [*violation_objects(findings)],
        "made": extent.made,
        "command": extent.command,
        "inputs": list(extent.inputs),
    }
    summary |= _figures_object(extent.figures)
    compared = None if extent.former is None else changes(extent.former, summary)
    html = page(findings, extent, drawn, dict(_illegal(findings)), compared)
    report.html.write_text(html, encoding="utf-8")
    report.summary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return report


def _figures_object(figures: Figures) -> JsonObject:
    return {
        "processes": [process.asDict() for process in figures.processes],
        "missing_parts": [hole.asDict() for hole in figures.holes],
        "components": [component.asDict() for component in figures.components],
        "hops": [
            {"sender": hop.sender, "way": hop.way.value, "messages": hop.messages,
             "mean_per_s": hop.mean, "busiest_per_s": hop.busiest, "bin_s": hop.seconds,
             "counts": list(hop.counts)}
            for hop in figures.hops
        ],
        "traffic": attrs.asdict(figures.traffic) | {"share": figures.traffic.share},
        "request_s": {
            way.value: {"requests": latency.requests, "median": latency.median, "p95": latency.p95,
                        "longest": latency.quantiles[-1]}
            for way, latency in figures.latencies.items()
        },
        "set_ups": [up.asDict() for up in figures.set_ups],
    }  # fmt: skip


def _drawings(findings: Findings) -> Iterator[tuple[str, str]]:
    for machine in findings.machines:
        if table := MACHINES.get(machine.machine):
            weights = {(row.old, row.cause, row.new): times for row, times in machine.used.items()}
            yield machine.machine, svg(table, weights)


def _illegal(findings: Findings) -> Iterator[tuple[tuple[str, Row], str]]:
    """Yield drawings of state machines with an undeclared transition, by machine and transition."""
    steps = [each.step for each in findings.shown if each.step is not None]
    for machine, row in dict.fromkeys(map(made_by, steps)):
        table = MACHINES.get(machine)
        if table is not None and row.new not in table.targets(row.old, row.cause):
            yield (machine, row), svg(table, None, (row.old, row.cause, row.new))


def verdict_object(findings: Findings, report: Report | None = None) -> JsonObject:
    """Return the verdict and the numbers of all findings as one JSON object.

    Args:
        findings: The findings.
        report: The files of the report; None: there is none.
    """
    verdict: JsonObject = {
        "schema": VERDICT_SCHEMA,
        **{name: getattr(findings, name) for name in _FIGURES},
        "by_claim": dict(findings.by_claim),
        "checked": list(findings.by_claim),
        "ids": {**CLAIM_ID, **{claim.name: claim.id for claim in BY_NOBODY}},
        "not_checked": {"by_nobody": [claim.name for claim in BY_NOBODY]},
        "missing": [attrs.asdict(gap) for gap in findings.gaps],
        "nodes": [_node(node) for node in findings.nodes],
        "machines": [_machine(machine) for machine in findings.machines],
    }
    if report is not None:
        drawings: JsonObject = {name: str(path) for name, path in report.drawings.items()}
        verdict["report"] = {"html": str(report.html), "drawings": drawings}
    return verdict


def violation_objects(findings: Findings) -> list[JsonObject]:
    """Return the first violation of each claim, as JSON objects."""
    return [violation_object(broken) for broken in findings.first]


def _node(node: NodeFindings) -> JsonObject:
    return attrs.asdict(node) | {"flaws": sorted(node.flaws), "line": node_line(node)}


def _machine(machine: MachineUse) -> JsonObject:
    return {
        "machine": machine.machine,
        "steps": machine.steps,
        "entities": machine.entities,
        "violations": machine.violations,
        "never": [attrs.asdict(row) for row in machine.never],
        "dwell_s": {
            dwell.state: {"stays": dwell.stays, "median": dwell.median, "p95": dwell.p95}
            for dwell in machine.dwells
        },
        "line": machine_line(machine),
    }


def violation_object(broken: Broken) -> JsonObject:
    """Return a violation as a JSON object."""
    fields: JsonObject = {
        "schema": VIOLATION_SCHEMA,
        "claim": broken.claim,
        "id": CLAIM_ID[broken.claim],
        "text": CLAIM[broken.claim],
        **{name: getattr(broken, name) for name in ("run", "node", "ln", "about", "expected")},
    }
    return fields if broken.step is None else fields | attrs.asdict(broken.step)
