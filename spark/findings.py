"""What was found, as small frozen data; and the rule that makes it a verdict."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from fsm.judge.crossings import Skew
from fsm.judge.replay import NodeJudgement, TimelineStep
from fsm.judge.trace_files import BadLine, Missing, ProcessSummary
from fsm.judge.trace_line import Flaw, Verdict

DIAGRAMS: Final = 10
"""Violations of each claim that a report draws by default."""


@attrs.frozen
class Account:
    """The judgement of a process that a worker hands to the driver.

    Attributes:
        files: Those that have records of it.
        bad: Lines in them that are no records.
        gaps: How many flaws its records have.
        unanswered: How many requests have no final answer.
    """

    node: NodeJudgement
    summary: ProcessSummary
    files: Sequence[str]
    bad: int
    gaps: int
    unanswered: int


@attrs.frozen
class Row:
    """A row of a machine's table, as traces write it."""

    old: str
    cause: str
    new: str


@attrs.frozen
class Dwell:
    """How long entities stayed in a state; times in seconds."""

    state: str
    stays: int
    median: float
    p95: float
    longest: float


@attrs.frozen(kw_only=True)
class MachineUse:
    """What a machine's entities did.

    Attributes:
        used: How often each declared row was followed, those never followed too.
        dwells: In the order of the table's states.
        undeclared: How often each step was made that is no row of the table.
    """

    machine: str
    steps: int
    entities: int
    violations: int
    used: Mapping[Row, int]
    dwells: Sequence[Dwell]
    undeclared: Mapping[Row, int]

    @property
    def never(self) -> list[Row]:
        """Declared rows that no entity followed."""
        return [row for row, times in self.used.items() if times == 0]


@attrs.frozen(kw_only=True)
class Step:
    """The step of an entity that breaks a claim.

    Attributes:
        actor: Which component recorded it.
        why: What the component said to it.
        before: The entity's records before it, oldest first.
    """

    machine: str
    key: str
    actor: str
    why: str | None
    record: TimelineStep
    before: Sequence[TimelineStep]


@attrs.frozen(kw_only=True)
class Broken:
    """A record that breaks a claim.

    Attributes:
        claim: Its name.
        about: Which message, address, link or object; of a step, the key of the entity.
        step: The step, if the claim is one on machines.
    """

    claim: str
    run: str
    node: str
    ln: int
    about: str
    expected: str
    step: Step | None = None


@attrs.frozen(kw_only=True)
class NodeFindings:
    """What was found in the trace of one node.

    Attributes:
        missing: Records that its numbers say there were.
        doubled: Records that have the number of another.
        quarantined: Lines in its files that are no records.
        skew: By how much its clock is ahead of another one's; None: it is not known.
    """

    node: str
    run: str
    verdict: Verdict
    records: int
    missing: int
    doubled: int
    quarantined: int
    violations: int
    flaws: frozenset[Flaw]
    skew: Skew | None = None


@attrs.frozen(kw_only=True)
class Findings:
    """What was found in all traces.

    Attributes:
        by_claim: How often each claim that was judged is broken, those that are kept too.
        shown: The first violations of each claim that is broken, claim by claim.
        gaps: What is missing in the traces, and participants without one.
        bad_lines: The first of the lines that are no records.
    """

    verdict: Verdict
    events: int
    entities: int
    violations: int
    quarantined: int
    by_claim: Mapping[str, int]
    nodes: Sequence[NodeFindings]
    machines: Sequence[MachineUse]
    shown: Sequence[Broken]
    gaps: Sequence[Missing]
    bad_lines: Sequence[BadLine]

    @property
    def first(self) -> list[Broken]:
        """The first violation of each claim that is broken."""
        return [*{each.claim: each for each in reversed(self.shown)}.values()][::-1]


def judge_node(found: NodeFindings, *, is_quarantine_allowed: bool) -> Verdict:
    """Judge one node's trace: violations, else what is missing, else conformant.

    Where quarantined lines are allowed, they account for as many missing records.

    Args:
        found: The findings of the trace.
        is_quarantine_allowed: Whether lines that are no records leave the verdict alone.
    """
    if found.violations:
        return Verdict.VIOLATIONS
    flaws = set(found.flaws)
    if is_quarantine_allowed:
        if not found.doubled and found.missing <= found.quarantined:
            flaws.discard(Flaw.GAP)
    elif found.quarantined:
        return Verdict.INCOMPLETE
    return Verdict.INCOMPLETE if flaws else Verdict.CONFORMANT


def judge_run(
    nodes: Sequence[NodeFindings],
    violations: int,
    missing: int,
    quarantined: int,
    *,
    is_quarantine_allowed: bool,
) -> Verdict:
    """Judge all nodes together: the worst of them.

    Args:
        nodes: What was found of each.
        violations: How often a claim is broken.
        missing: How many answers and participants are missing.
        quarantined: How many lines are no records.
        is_quarantine_allowed: Whether these leave the verdict alone.
    """
    if violations:
        return Verdict.VIOLATIONS
    counts = missing > 0 or (quarantined > 0 and not is_quarantine_allowed)
    whole = all(node.verdict is Verdict.CONFORMANT for node in nodes)
    return Verdict.CONFORMANT if nodes and whole and not counts else Verdict.INCOMPLETE
