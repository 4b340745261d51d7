"""The message of a failed test: the first violation of each claim, with the trace before it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import attrs

from fsm.judge.missing import Missing
from fsm.judge.trace_line import TraceLine
from fsm.judge.verdict import RunJudgement
from specs.claims.all import CLAIMS

__all__ = ["complaint"]

_BEFORE: Final = 8
"""Trace records that are shown before the one that violates a claim (ours)."""


@final
@attrs.frozen
class _Fault:
    """The first violation of one claim."""

    claim: str
    node: str
    ln: int
    about: str
    expected: str


def complaint(lines: Sequence[TraceLine], judged: RunJudgement, running: frozenset[str]) -> str:
    """Describe what is wrong with a run.

    Args:
        lines: The trace of the run.
        judged: The judgement of that trace.
        running: Names of the processes that still run; their traces need no end.

    Returns:
        The description, of several lines; empty if the run is conformant.
    """
    if not lines:
        return "nothing was recorded, so nothing is proved: pass `trace=` a process's tracer"
    faults = [*_faults(judged)]
    said = [_told(fault, lines) for fault in _firsts(faults)]
    said += [f"\n{one.node}: {one.reason}" for one in judged.missing if not _runs(one, running)]
    if not said:
        return ""
    head = f"the run is not conformant; violations: {len(faults)}"
    return "\n".join([head if faults else "the trace of the run does not tell all", *said])


def _faults(judged: RunJudgement) -> Iterator[_Fault]:
    for broken in judged.machines.violations:
        entity = broken.entity
        about = f"{entity.machine} {entity.key}"
        claim = f"machines: {broken.claim.replace('_', ' ')}"
        yield _Fault(claim, entity.node, broken.ln, about, broken.expected)
    for found in judged.findings:
        claim = CLAIMS[found.claim].text
        yield _Fault(claim, found.nodes[0], found.ln, found.about, found.expected)


def _firsts(faults: Iterable[_Fault]) -> Iterator[_Fault]:
    """Yield the first fault of each claim."""
    seen: set[str] = set()
    for fault in faults:
        if fault.claim not in seen:
            seen.add(fault.claim)
            yield fault


def _runs(one: Missing, running: frozenset[str]) -> bool:
    """Whether only the end of the trace is missing, and its process still runs."""
    return one.is_end and one.node in running


def _told(fault: _Fault, lines: Sequence[TraceLine]) -> str:
    window = [
        line
        for line in lines
        if line.node == fault.node and fault.ln - _BEFORE <= line.ln <= fault.ln
    ]
    head = f"\nbroken: {fault.claim}\n  by {fault.about}\n  expected {fault.expected}"
    return "\n".join([head, f"  record {fault.ln} of {fault.node}:", *map(_shown, window)])


def _shown(line: TraceLine) -> str:
    what = line.op or line.k
    match line.k:
        case "state":
            told = f"{line.machine} {line.key}: {line.old} -> {line.new} by {line.cause}"
        case "msg":
            told = f"{line.type or ''} {line.from_} -> {line.to} {line.code or ''}".strip()
        case _:
            told = " ".join(filter(None, (line.table, line.key, line.val, line.why)))
    return f"    {line.ln:>5} {line.t:>9.3f} s  {line.actor}: {what} {told}"
