"""Make the report as one HTML page that works offline, from the template `report.html.jinja`."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, ParamSpec

import attrs
import jinja2
from markupsafe import Markup

from fsm.judge.replay import TimelineStep
from fsm.judge.trace_files import BadLine
from fsm.judge.trace_line import Verdict
from fsm.machine_list import MACHINES
from spark.findings import Broken, Findings, MachineUse, Row, Step
from spark.report import pictures, words
from spark.report.figures import Figures, Latency, Way
from specs.jsonvalue import JsonObject, visible
from specs.trace import ABSENT

_P = ParamSpec("_P")

_UNDECLARED: Final = 20
"""Maximal number of shown undeclared steps and states of each machine."""


@attrs.frozen(kw_only=True)
class Extent:
    """The content of a report in addition to the findings.

    Attributes:
        inputs: The paths of the traces.
        command: Command line of the check; empty: a program called the function.
        made: Time of the report, in words.
        stories: Histories of violations, by run, node and number of the violating record.
        former: Summary of the report to compare with; None: there is none.
    """

    inputs: Sequence[str]
    command: str
    made: str
    figures: Figures
    stories: Mapping[tuple[str, str, int], words.Story]
    former: JsonObject | None


def page(
    findings: Findings,
    extent: Extent,
    drawings: Mapping[str, str],
    illegal: Mapping[tuple[str, Row], str],
    compared: Sequence[tuple[str, str, str]] | None,
) -> str:
    """Return the HTML text of the report.

    Args:
        findings: The findings.
        extent: Further content of the page.
        drawings: An `<svg>` element for each state machine.
        illegal: An `<svg>` element for each undeclared transition, by machine and transition.
        compared: Changes since a former report; None: there is no former report.
    """
    template = _environment().get_template("report.html.jinja")
    used = [machine for machine in findings.machines if machine.steps or machine.violations]
    by_claim: dict[str, list[Broken]] = {}
    for each in findings.shown:
        by_claim.setdefault(each.claim, []).append(each)
    latencies = [
        (way, latency.requests, latency.median, latency.p95, latency.quantiles[-1])
        for way, latency in extent.figures.latencies.items()
    ]
    return template.render(
        findings=findings,
        input=extent,
        drawings=drawings,
        illegal=illegal,
        compared=compared,
        shown_by_claim=by_claim,
        used=used,
        unused=[machine for machine in findings.machines if machine not in used],
        latencies=latencies,
    )


def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("spark", "report")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_readable,
        extensions=["jinja2.ext.do"],
    )
    environment.filters |= {"anchor": words.anchor, "count": words.count, "letter": words.letter}
    environment.globals |= {
        name: _drawn_by(getattr(pictures, name))
        for name in ("rate_plot", "latency_plot", "dwell_plot", "sequence", "timeline")
    }
    environment.globals |= {
        "style": Markup(loader.get_source(environment, "report.css")[0]),  # noqa: S704 - our own
        "numbers": {
            "count": "{:,}".format,
            "rate": "{:,.1f}".format,
            "seconds": words.duration,
            "text": str,
        },
        "claim_text": words.CLAIM,
        "verdict_text": words.VERDICT,
        "not_checked": words.BY_NOBODY,
        "checked": words.describe_checked,
        "node_line": words.node_line,
        "machine_line": words.machine_line,
        "lanes": words.lanes,
        "drawing": _drawing,
        "facts": _facts,
        "gain": _gain,
        "made_by": made_by,
        "event_words": words.event_words,
        "undeclared_states": _undeclared_states,
        "claim_label": words.claim_label,
        "label_of_claim": lambda broken: words.claim_label(broken[0]),
        "label_of_unchecked": lambda claim: f"{claim.id} {claim.name}",
        "text_of_claim": lambda one: words.CLAIM[one[0]],
        "claim_result": _claim_result,
        "verdict_of": lambda node: (node.verdict, node.verdict),
        "short_file": _short_file,
        "short_text": lambda bad: bad.text[:120],
        "hop_names": lambda hops: [f"{hop.sender}, {hop.way}" for hop in hops[: pictures.SERIES]],
        "transitions_of": lambda machine: len(machine.used),
        "steps_used": lambda machine: _name_rows(machine.used),
        "undeclared_steps": lambda machine: _name_rows(machine.undeclared)[:_UNDECLARED],
        "state_entered": lambda step: step.new or "refused",
        "time_after": lambda step: partial(_time_after, step),
        "time_before": lambda story: partial(words.time_before, story),
        "component_in": lambda story: partial(words.component_in, story),
    }
    return environment


def _readable(value: object) -> object:
    """Return a value for the template, with invisible and text-reordering characters escaped."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _drawn_by(draw: Callable[_P, str]) -> Callable[_P, Markup]:
    def drawn(*args: _P.args, **named: _P.kwargs) -> Markup:
        return Markup(draw(*args, **named))  # noqa: S704 - pictures escape what they are given

    return drawn


def _drawing(svg: str, prefix: str) -> Markup:
    """Add a prefix to the ids in a drawing, as a page may show a state machine several times."""
    drawn = re.sub(r'(<g [^>]*?id=")', rf"\g<1>{words.anchor(prefix)}-", svg)
    return Markup(drawn)  # noqa: S704 - drawings escape what they are given


def _claim_result(claim: tuple[str, int]) -> tuple[Verdict, str]:
    return (Verdict.VIOLATIONS, "broken") if claim[1] else (Verdict.CONFORMANT, "kept")


def _short_file(bad: BadLine) -> str:
    return "/".join(bad.file.rsplit("/", 2)[-2:])


def _gain(latencies: Mapping[Way, Latency]) -> str:
    direct, node = latencies.get(Way.DIRECT), latencies.get(Way.NODE)
    if direct is None or node is None or not node.median:
        return "There is nothing to compare their latency with."
    gain = node.median - direct.median
    word = "less" if gain >= 0 else "more"
    return (
        f"The median request took {words.duration(direct.median)} by a direct link and "
        f"{words.duration(node.median)} by the node: {abs(gain) / node.median:.0%} {word}."
    )


def _facts(broken: Broken) -> list[tuple[str, str]]:
    """Return the details of a violation for the page, as pairs of label and text."""
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
    return facts


def made_by(step: Step) -> tuple[str, Row]:
    """Return the state machine of a violating transition, and the transition itself."""
    record = step.record
    old = record.old or ABSENT
    return step.machine, Row(old, record.cause, record.new or old)


def _time_after(step: Step, told: TimelineStep) -> str:
    began = step.before[0].t if step.before else step.record.t
    return "+" + words.duration(max(told.t - began, 0.0))


def _name_rows(rows: Mapping[Row, int]) -> list[tuple[str, int]]:
    return [(words.row_name(row), times) for row, times in rows.items()]


def _undeclared_states(machine: MachineUse) -> list[tuple[str, int]]:
    """Return the states that a machine does not declare, with the number of their transitions."""
    declared = MACHINES.get(machine.machine)
    known = {ABSENT, *(state.value for state in (declared.states if declared else ()))}
    times: dict[str, int] = {}
    for row, made in machine.undeclared.items():
        for state in {row.old, row.new} - known:
            times[state] = times.get(state, 0) + made
    return sorted(times.items(), key=lambda one: (-one[1], one[0]))[:_UNDECLARED]
