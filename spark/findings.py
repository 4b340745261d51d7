"""Results of the check of traces, as small frozen classes, and the rules for the verdict."""

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
    """Summary of the check of one process, which a Spark worker returns to the driver.

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
    """A transition of a state machine: old state, trigger, new state, as traces write them."""

    old: str
    cause: str
    new: str


@attrs.frozen
class Dwell:
    """Statistics of how long entities stayed in one state of a state machine, in seconds."""

    state: str
    stays: int
    median: float
    p95: float
    longest: float


@attrs.frozen(kw_only=True)
class MachineUse:
    """Statistics of the recorded transitions of one state machine.

    Attributes:
        used: How often each declared transition occurred, including those that never did.
        dwells: Times spent in the states, in the order of the states of the table.
        undeclared: How often each transition occurred that the table does not declare.
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
        """Declared transitions that never occurred."""
        return [row for row, times in self.used.items() if times == 0]


@attrs.frozen(kw_only=True)
class Step:
    """The transition of an entity's state machine that violates a claim.

    Attributes:
        actor: Component that recorded the transition.
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
    """A violation: a record of a trace that violates a claim.

    Attributes:
        claim: Name of the claim.
        about: The message, address, link or object; for a transition, the key of the entity.
        step: The transition, if the claim is about state machines.
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
    """The findings about the trace of one process (node).

    Attributes:
        missing: Number of records that are missing in the numbering.
        doubled: Number of records with the number of another record.
        quarantined: Number of lines in its files that are no records.
        skew: Seconds by which the clock of the process is ahead of others; None: unknown.
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
    """Return the verdict on one node's trace: violated, else incomplete, else conformant.

    Where quarantined lines are allowed, they count as missing records that were found.

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
    """Return the verdict on all traces together: the worst verdict on a node.

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
