"""Findings in words that people read: in the report, on the terminal."""

from typing import Final

from fsm.judge.claims.catalogue import CLAIMS_JUDGED, NOT_JUDGED
from fsm.judge.crossings import clock_lines
from fsm.judge.trace_line import STEP_TEXTS, Flaw, Verdict
from spark.findings import Broken, Findings, MachineUse, NodeFindings, Row
from specs.claims import CLAIMS
from specs.plain_text import visible

CLAIM: Final = {claim.value: text for claim, text in STEP_TEXTS.items()} | {
    CLAIMS[claim].name: CLAIMS[claim].text for claim in CLAIMS_JUDGED
}
"""What each claim says, by its name."""

CLAIM_ID: Final = {claim.value: claim.value for claim in STEP_TEXTS} | {
    CLAIMS[claim].name: claim for claim in CLAIMS_JUDGED
}
"""The id of each claim, by its name; those on steps of machines have no other."""

BY_NOBODY: Final = tuple(CLAIMS[name] for name in NOT_JUDGED)
"""Claims that no trace can decide: not checked at all."""

VERDICT: Final = {
    Verdict.CONFORMANT: "Every record keeps every claim that was checked, and none is missing.",
    Verdict.OPEN: "No record so far breaks a claim; processes still write.",
    Verdict.VIOLATIONS: "At least one record breaks a claim that was checked.",
    Verdict.INCOMPLETE: "No record breaks a checked claim, but the traces are incomplete.",
}
"""What each verdict means."""

_FLAW: Final = {
    Flaw.NO_START: "does not begin with its start",
    Flaw.NO_END: "has no end: the process was killed, or still runs",
    Flaw.DROPPED: "had to drop records",
}

_MINUTE: Final = 60.0
_SECOND: Final = 1.0


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1,200 steps`.

    Args:
        number: The number.
        noun: The noun, in the singular.
    """
    end = noun[-1]
    plural = noun[:-1] + "ies" if end == "y" else noun + ("es" if end == "s" else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it: `3.2 ms`, `1.50 s`, `2 min 5 s`."""
    if seconds < _SECOND:
        return f"{seconds * 1000:.1f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.2f} s"
    return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"


def row_name(row: Row) -> str:
    """A row of a table on one line."""
    return f"{row.old} -> {row.new} ({row.cause})"


def node_line(node: NodeFindings) -> str:
    """What is wrong with a node's trace, or how long it is."""
    if not node.records:
        return "has no record at all"
    flaws = [_FLAW[flaw] for flaw in Flaw if flaw in node.flaws and flaw in _FLAW]
    if node.missing:
        flaws.append(f"lacks {count(node.missing, 'record')}")
    if node.doubled:
        flaws.append(f"has {count(node.doubled, 'record')} twice")
    if node.quarantined:
        flaws.append(f"has {count(node.quarantined, 'line')} that cannot be read")
    if node.violations:
        flaws.append(f"has {count(node.violations, 'violation')}")
    return "; ".join(flaws) or "no record is missing"


def machine_line(machine: MachineUse) -> str:
    """How much a machine was used, and what of it never."""
    used = f"{count(machine.steps, 'step')} of {count(machine.entities, 'entity')}"
    never = [row_name(row) for row in machine.never]
    if not machine.used:
        return f"{used}; it is not declared"
    if not never:
        return f"{used}; every declared transition was exercised"
    return f"{used}; never exercised: {', '.join(never)}"


def checked(findings: Findings) -> list[str]:
    """Say which claims were checked, and which were not, as half sentences."""
    others = len(CLAIMS_JUDGED) - (len(findings.by_claim) - len(STEP_TEXTS))
    told = f"checked: {len(STEP_TEXTS)} claims on the steps of machines"
    if others:
        told += " only"
    else:
        told += f", {len(CLAIMS_JUDGED)} on messages, tables and links"
    left = [f"{others} claims on messages, tables and links"] if others else []
    left.append(f"{len(BY_NOBODY)} claims that no trace can decide")
    return [told, f"not checked: {', '.join(left)}"]


def summary(findings: Findings) -> list[str]:
    """Findings as lines for a terminal, the verdict first."""
    found = findings
    figures = [
        count(found.events, "event"),
        count(found.entities, "entity"),
        count(found.violations, "violation"),
        count(found.quarantined, "line") + " quarantined",
    ]
    lines = [f"{found.verdict}: {', '.join(figures)}"]
    lines += checked(findings)
    lines += [f"node {node.node}: {node.verdict}, {node_line(node)}" for node in found.nodes]
    lines += clock_lines(
        {(one.run, one.node): one.skew for one in found.nodes if one.skew is not None}
    )
    lines += [f"machine {one.machine}: {machine_line(one)}" for one in found.machines]
    lines += [f"first {claim_label(broken.claim)}: {broken_line(broken)}" for broken in found.first]
    lines += [f"missing at record {gap.ln} of {gap.node}: {gap.reason}" for gap in found.gaps]
    lines += [f"quarantined {bad.file}:{bad.line}: {bad.reason}" for bad in found.bad_lines]
    return [visible(line) for line in lines]


def claim_label(name: str) -> str:
    """Return the id and the name of a claim: `I-T2 one final`; both may be the same."""
    return " ".join(dict.fromkeys((CLAIM_ID[name], name)))


def broken_line(broken: Broken) -> str:
    """Which record breaks a claim, and what would have kept it."""
    where, expected = f"record {broken.ln} of {broken.node}", f"expected {broken.expected}"
    step = broken.step
    if step is None:
        return f"{where}, {broken.about}: {expected}"
    made = f"{step.record.old} -> {step.record.new} by {step.record.cause}"
    return f"{where}, {step.machine} {step.key}: {made}, {expected}"
