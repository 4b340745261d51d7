"""Findings about traces as small frozen data, and the rule that makes them a verdict."""

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
        files: Files with its records.
        bad: Number of lines in these files that are no records.
        gaps: Number of flaws of its records.
        unanswered: Number of requests without a final answer.
    """

    node: NodeJudgement
    summary: ProcessSummary
    files: Sequence[str]
    bad: int
    gaps: int
    unanswered: int


@attrs.frozen
class Row:
    """A row of the table of a machine, as traces write it."""

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
    """The steps of the entities of a machine.

    Attributes:
        used: How often each declared row was followed, including rows that were never followed.
        dwells: Dwell times in the order of the states of the table.
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
        actor: Component that recorded the step.
        why: Reason that the component gave.
        before: Earlier records of the entity, oldest first.
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
        claim: Name of the claim.
        about: The message, address, link or object; for a step, the key of the entity.
        step: The step, if the claim is about machines.
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
    """The findings about the trace of one node.

    Attributes:
        missing: Number of missing records, by their numbers.
        doubled: Number of records with the number of another record.
        quarantined: Number of lines in its files that are no records.
        skew: Seconds by which its clock is ahead of another clock; None: unknown.
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
    """The findings about all traces.

    Attributes:
        by_claim: Number of violations of each judged claim, also of claims without any.
        shown: The first violations of each violated claim, claim by claim.
        gaps: Gaps of the traces, and participants without a trace.
        bad_lines: The first lines that are no records.
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
        """The first violation of each violated claim."""
        return [*{each.claim: each for each in reversed(self.shown)}.values()][::-1]


def judge_node(node: NodeFindings, *, is_quarantine_allowed: bool) -> Verdict:
    """Judge one node's trace: violations, else what is missing, else conformant.

    Where quarantined lines are allowed, they account for as many missing records.

    Args:
        node: The findings about the trace.
        is_quarantine_allowed: Whether lines that are no records leave the verdict alone.
    """
    if node.violations:
        return Verdict.VIOLATIONS
    flaws = set(node.flaws)
    if is_quarantine_allowed:
        if not node.doubled and node.missing <= node.quarantined:
            flaws.discard(Flaw.GAP)
    elif node.quarantined:
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
        nodes: The findings about each node.
        violations: Number of violations.
        missing: Number of missing answers and participants.
        quarantined: Number of lines that are no records.
        is_quarantine_allowed: Whether such lines leave the verdict alone.
    """
    if violations:
        return Verdict.VIOLATIONS
    counts = missing > 0 or (quarantined > 0 and not is_quarantine_allowed)
    whole = all(node.verdict is Verdict.CONFORMANT for node in nodes)
    return Verdict.CONFORMANT if nodes and whole and not counts else Verdict.INCOMPLETE
