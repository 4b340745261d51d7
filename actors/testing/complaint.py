"""What a failed test says: which claims are broken, the first time each, and what came before."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import attrs

from fsm.replay import NodeJudgement
from fsm.trace_line import Flaw, TraceLine
from fsm.verdict import RunJudgement
from specs.claims import CLAIMS

__all__ = ["complaint"]

_BEFORE: Final = 8
"""Records shown before one that breaks a claim (ours)."""

_FLAWS: Final = {
    Flaw.NO_START: "its beginning is missing",
    Flaw.NO_END: "it ended in disorder: it was cancelled, or crashed",
    Flaw.GAP: "records are missing",
    Flaw.DROPPED: "records were dropped",
}


@final
@attrs.frozen
class _Fault:
    """One claim that is broken, where it first is."""

    claim: str
    node: str
    ln: int
    about: str
    expected: str


def complaint(lines: Sequence[TraceLine], judged: RunJudgement, running: frozenset[str]) -> str:
    """Say what is wrong with a run; empty: nothing.

    Args:
        lines: What was recorded.
        judged: What was judged of it.
        running: The processes that have not left yet.
    """
    if not lines:
        return "nothing was recorded, so nothing is proved: pass `trace=` a process's tracer"
    faults = [*_faults(judged)]
    said = [_told(fault, lines) for fault in _firsts(faults)]
    said += [text for node in judged.machines.nodes for text in _flaws(node, running)]
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


def _flaws(node: NodeJudgement, running: frozenset[str]) -> Iterator[str]:
    for flaw in sorted(node.flaws):
        if flaw is not Flaw.NO_END or node.node not in running:
            yield f"\n{node.node}: {_FLAWS[flaw]}"


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
