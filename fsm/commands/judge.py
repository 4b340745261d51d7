"""`python -m fsm judge`: what traces say of machines, messages, tables and links."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, final

import attrs
import click

from fsm.commands.progress import progress_of_reading
from fsm.commands.shared import UsageError, counted, echo, json_option, print_json
from fsm.judge.claims.catalogue import CLAIMS_JUDGED
from fsm.judge.claims.fold import Finding
from fsm.judge.crossings import clock_lines
from fsm.judge.manifest import ManifestError, read_manifest
from fsm.judge.missing import Missing
from fsm.judge.process import ProcessJudgement
from fsm.judge.replay import Violation
from fsm.judge.trace_files import Reading, TraceFileError, folders_of, parts_in, silent
from fsm.judge.trace_line import STEP_TEXTS, Claim, Verdict
from fsm.judge.verdict import RunJudgement, combined, judge_folders
from specs.claims import CLAIMS
from specs.jsonvalue import JsonObject
from specs.plain_text import one_line

_JUDGED: Final = len(CLAIMS_JUDGED) + len(STEP_TEXTS)

_NO_TRACE: Final = 3
"""Exit status of a path without a trace, as Spark's command has it."""


@final
class _NoTraceError(click.ClickException):
    """One sentence about a path."""

    exit_code = _NO_TRACE


@click.command(name="judge", short_help="Judge TRACE...: machines, messages, tables and links.")
@click.argument(
    "traces", nargs=-1, required=True, metavar="TRACE...", type=click.Path(path_type=Path)
)
@click.option(
    "--untraced",
    metavar="NAME",
    multiple=True,
    help="An address or a domain of which no trace is expected; may be given several times.",
)
@click.option(
    "--manifest",
    "place",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Participants of the run, as JSON; see docs/traces.md.",
)
@json_option
@click.pass_context
def judge_traces(
    ctx: click.Context,
    traces: tuple[Path, ...],
    *,
    untraced: tuple[str, ...],
    place: Path | None,
    wants_json: bool,
) -> None:
    """Judge the traces at TRACE...: directories of runs, runs, nodes of a run, or files.

    Name all that belong together: much is seen only from both ends, and a participant
    without a trace makes the verdict incomplete. Exits with 0 if the traces are
    conformant, with 1 if they are not or are incomplete, with 3 if there is no trace.
    """
    try:
        manifest = None if place is None else read_manifest(place)
        with progress_of_reading("traces", parts_in(traces)) as parts:
            folders = judge_folders(folders_of(parts))
    except TraceFileError as exc:
        raise _NoTraceError(one_line(str(exc))) from exc
    except ManifestError as exc:
        raise UsageError(one_line(str(exc))) from exc
    found = _Found([folder.reading for folder in folders])
    processes = sorted((one for folder in folders for one in folder.processes), key=_name)
    judged = combined(processes, len(found.bad), untraced, manifest)
    flaws = list(_flaws(judged, found))
    verdict = judged.verdict
    if flaws and verdict is Verdict.CONFORMANT:
        verdict = Verdict.INCOMPLETE
    if wants_json:
        print_json(*_as_json(judged, found, flaws, verdict))
    else:
        for line in _as_text(judged, found, flaws, verdict):
            echo(one_line(line))
    ctx.exit(0 if verdict is Verdict.CONFORMANT else 1)


def _name(judged: ProcessJudgement) -> tuple[str, str]:
    return judged.node.run, judged.node.node


@final
class _Found:
    """The findings in all files."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings
        self.count = sum(reading.count for reading in readings)
        self.bad = [bad for reading in readings for bad in reading.bad]
        self.silent = silent(readings)

    def place(self, one: Missing) -> tuple[str, int] | None:
        """Return the file and the line of what lacks something; None: there is none."""
        places = (reading.place(one.run, one.node, one.ln) for reading in self._readings)
        return next((place for place in places if place is not None), None)


def _flaws(judged: RunJudgement, found: _Found) -> Iterator[JsonObject]:
    """Yield what is missing in the traces, each with its place."""
    for one in judged.missing:
        yield _flaw(one, found)
    for bad in found.bad:
        reason = f"the line cannot be read: {bad.reason}"
        yield {"file": bad.file, "line": bad.line, "reason": reason}
    for (run, node), file in found.silent.items():
        yield {"run": run, "node": node, "file": file, "reason": "no record is in this trace"}


def _flaw(one: Missing, found: _Found) -> JsonObject:
    shown: JsonObject = {"run": one.run, "node": one.node, "ln": one.ln, "reason": one.reason}
    place = found.place(one)
    return shown if place is None else shown | {"file": place[0], "line": place[1]}


def _flaw_line(flaw: JsonObject) -> str:
    """Return what is missing, on one line: where, of which process, what."""
    where = ":".join(str(flaw[name]) for name in ("file", "line") if name in flaw)
    whose = f"trace of {flaw['node']}: " if flaw.get("node") else ""
    return f"incomplete: {where + ': ' if where else ''}{whose}{flaw['reason']}"


def _as_text(
    judged: RunJudgement, found: _Found, flaws: list[JsonObject], verdict: Verdict
) -> Iterator[str]:
    for claim, first in _firsts(judged.findings).items():
        times = counted(judged.by_claim[claim], "time")
        yield f"{claim} broken {times}: {CLAIMS[claim].text}"
        where = " and ".join(first.nodes)
        yield f"  first at {where}, record {first.ln}: {first.about}: expected {first.expected}"
    for broken, number in _first_steps(judged):
        times = counted(number, "time")
        text = STEP_TEXTS[broken.claim]
        yield f"{broken.claim} broken {times} by machine {broken.entity.machine}: {text}"
        where, key = broken.entity.node, broken.entity.key
        yield f"  first at {where}, record {broken.ln}: {key}: expected {broken.expected}"
    yield from map(_flaw_line, flaws)
    yield from clock_lines(judged.skews)
    shown = counted(found.count, "record")
    judges = counted(_JUDGED, "claim")
    broken_claims = len(judged.by_claim) + len({step.claim for step in judged.machines.violations})
    yield f"{verdict.value}: {shown}, {judges} judged, {broken_claims} broken"


def _as_json(
    judged: RunJudgement, found: _Found, flaws: list[JsonObject], verdict: Verdict
) -> Iterator[JsonObject]:
    for first in _firsts(judged.findings).values():
        claim = CLAIMS[first.claim]
        yield {
            "schema": "protofly.broken-claim/1",
            "claim": claim.name,
            "id": claim.id,
            "text": claim.text,
            "times": judged.by_claim[first.claim],
            "run": first.run,
            "nodes": list(first.nodes),
            "ln": first.ln,
            "about": first.about,
            "expected": first.expected,
        }
    for step, times in _first_steps(judged):
        yield {
            "schema": "protofly.broken-claim/1",
            "claim": step.claim.value,
            "id": step.claim.value,
            "text": STEP_TEXTS[step.claim],
            "times": times,
            "run": step.entity.run,
            "nodes": [step.entity.node],
            "ln": step.ln,
            "about": step.entity.key,
            "machine": step.entity.machine,
            "expected": step.expected,
        }
    for flaw in flaws:
        yield {"schema": "protofly.flaw/1", **flaw}
    for (run, node), skew in sorted(judged.skews.items()):
        yield {"schema": "protofly.skew/1", "run": run, "node": node, **attrs.asdict(skew)}
    yield {
        "schema": "protofly.judgement/1",
        "verdict": verdict.value,
        "records": found.count,
        "quarantined": len(found.bad),
        "claims": _JUDGED,
        "findings": len(judged.findings),
        "steps_broken": len(judged.machines.violations),
        "flaws": {
            node.node: [flaw.value for flaw in sorted(node.flaws)]
            for node in judged.machines.nodes
            if node.flaws
        },
        "missing": len(flaws),
    }


def _firsts(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    """Return the first finding of each claim, in the order of the claims."""
    firsts: dict[str, Finding] = {}
    for finding in findings:
        firsts.setdefault(finding.claim, finding)
    return firsts


def _first_steps(judged: RunJudgement) -> list[tuple[Violation, int]]:
    """Return the first violation of each claim by each machine, and how many there are."""
    firsts: dict[tuple[str, Claim], Violation] = {}
    times: Counter[tuple[str, Claim]] = Counter()
    for broken in judged.machines.violations:
        at = broken.entity.machine, broken.claim
        firsts.setdefault(at, broken)
        times[at] += 1
    return [(first, times[at]) for at, first in firsts.items()]
