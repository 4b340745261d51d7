"""`python -m fsm judge`: what traces say of machines, messages, tables and links."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

import attrs
import click

from fsm.claims import Finding
from fsm.claims.catalogue import CLAIMS_JUDGED
from fsm.commands_shared import counted, json_option, print_json
from fsm.replay import Violation
from fsm.trace_line import BadTraceLineError, TraceLine, Verdict, read_line
from fsm.verdict import RunJudgement, judge_run
from specs.claims import CLAIMS
from specs.jsonvalue import JsonObject

__all__ = ["judge_traces"]

_NO_TRACE: Final = 3
"""Exit status of a path without a trace, as Spark's command has it."""


@final
class _NoTraceError(click.ClickException):
    """One sentence about a path."""

    exit_code = _NO_TRACE


@final
@attrs.define
class _Reading:
    """What was read: records, and how many lines were none."""

    records: list[TraceLine] = attrs.field(factory=list)
    quarantined: int = 0


@click.command(name="judge", short_help="Judge TRACE...: machines, messages, tables and links.")
@click.argument(
    "traces", nargs=-1, required=True, metavar="TRACE...", type=click.Path(path_type=Path)
)
@json_option
@click.pass_context
def judge_traces(ctx: click.Context, traces: tuple[Path, ...], *, wants_json: bool) -> None:
    """Judge the traces at TRACE...: run directories, node directories or files.

    Name all that belong together: much is seen only from both ends. Exits with 0 if they
    are conformant, with 1 if they are not or do not tell all, with 3 if there is no trace.
    """
    reading = _Reading()
    for file in [file for trace in traces for file in _files(trace)]:
        _read(file, reading)
    judged = judge_run(reading.records, reading.quarantined)
    if wants_json:
        print_json(*_as_json(judged, reading))
    else:
        for line in _as_text(judged, reading):
            click.echo(line)
    ctx.exit(0 if judged.verdict is Verdict.CONFORMANT else 1)


def _files(trace: Path) -> list[Path]:
    if trace.is_file():
        return [trace]
    if not trace.is_dir():
        raise _NoTraceError(f"no trace at {trace}: there is nothing; name what --trace wrote to")
    files = sorted(trace.rglob("part-*.jsonl")) + sorted(trace.rglob("part-*.jsonl.gz"))
    if not files:
        raise _NoTraceError(f"no trace at {trace}: there is no part-*.jsonl under it")
    return files


def _read(file: Path, into: _Reading) -> None:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            for line in lines:
                _take(line, into)
    except (OSError, EOFError) as exc:
        raise _NoTraceError(f"cannot read {file}: {exc}; copy it anew or leave it out") from exc


def _take(line: bytes, into: _Reading) -> None:
    try:
        into.records.append(read_line(line))
    except BadTraceLineError:
        into.quarantined += 1


def _as_text(judged: RunJudgement, reading: _Reading) -> Iterator[str]:
    for claim, first in _firsts(judged.findings).items():
        times = counted(judged.by_claim[claim], "time")
        yield f"broken {times}: {CLAIMS[claim].text}"
        where = " and ".join(first.nodes)
        yield f"  first at {where}, record {first.ln}: {first.about}: expected {first.expected}"
    for machine, broken in _first_steps(judged).items():
        times = counted(sum(one.entity.machine == machine for one in _steps(judged)), "time")
        yield f"machine {machine} broken {times}: {broken.claim.replace('_', ' ')}"
        where, key = broken.entity.node, broken.entity.key
        yield f"  first at {where}, record {broken.ln}: {key}: expected {broken.expected}"
    for node in judged.machines.nodes:
        flaws = ", ".join(sorted(flaw.value.replace("_", " ") for flaw in node.flaws))
        if flaws:
            yield f"{node.node} does not tell all: {flaws}"
    if reading.quarantined:
        yield f"{counted(reading.quarantined, 'line')} cannot be read"
    told = counted(len(reading.records), "record")
    judges = counted(len(CLAIMS_JUDGED), "claim")
    yield f"{judged.verdict.value}: {told}, {judges} judged, {len(judged.by_claim)} broken"


def _as_json(judged: RunJudgement, reading: _Reading) -> Iterator[JsonObject]:
    for first in _firsts(judged.findings).values():
        claim = CLAIMS[first.claim]
        yield {
            "schema": "protofly.broken-claim/1",
            "claim": claim.name,
            "text": claim.text,
            "times": judged.by_claim[first.claim],
            "run": first.run,
            "nodes": list(first.nodes),
            "ln": first.ln,
            "about": first.about,
            "expected": first.expected,
        }
    yield {
        "schema": "protofly.judgement/1",
        "verdict": judged.verdict.value,
        "records": len(reading.records),
        "quarantined": reading.quarantined,
        "claims": len(CLAIMS_JUDGED),
        "findings": len(judged.findings),
        "steps_broken": len(judged.machines.violations),
        "flaws": _flaws(judged),
    }


def _flaws(judged: RunJudgement) -> JsonObject:
    return {
        node.node: [flaw.value for flaw in sorted(node.flaws)]
        for node in judged.machines.nodes
        if node.flaws
    }


def _firsts(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    """Return the first finding of each claim, in the order of the claims."""
    firsts: dict[str, Finding] = {}
    for finding in findings:
        firsts.setdefault(finding.claim, finding)
    return firsts


def _steps(judged: RunJudgement) -> tuple[Violation, ...]:
    return judged.machines.violations


def _first_steps(judged: RunJudgement) -> dict[str, Violation]:
    """Return the first violation of each machine."""
    firsts: dict[str, Violation] = {}
    for broken in _steps(judged):
        firsts.setdefault(broken.entity.machine, broken)
    return firsts
