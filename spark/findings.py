"""What was found, as small frozen data; and the rule that makes it a verdict."""

from collections.abc import Mapping, Sequence
from enum import Enum, unique
from typing import final

import attrs

from fsm.judge.trace_line import Flaw, Verdict

__all__ = [
    "BadLine", "Broken", "Dwell", "Findings", "MachineUse", "NodeFindings", "Quarantine", "Row",
    "Told", "judge_node", "judge_run",
]  # fmt: skip


@unique
class Quarantine(Enum):
    """Whether lines that are no records make a trace incomplete."""

    COUNTS = "counts"
    ALLOWED = "allowed"


@final
@attrs.frozen
class Row:
    """A row of a machine's table, as traces write it."""

    old: str
    cause: str
    new: str


@final
@attrs.frozen
class Dwell:
    """How long entities stayed in a state; times in seconds."""

    state: str
    stays: int
    median: float
    p95: float
    longest: float


@final
@attrs.frozen(kw_only=True)
class MachineUse:
    """What a machine's entities did.

    Attributes:
        used: How often each declared row was followed, those never followed too.
        dwells: In the order of the table's states.
    """

    machine: str
    steps: int
    entities: int
    violations: int
    used: Mapping[Row, int]
    dwells: Sequence[Dwell]

    @property
    def never(self) -> list[Row]:
        """Declared rows that nobody followed."""
        return [row for row, times in self.used.items() if times == 0]


@final
@attrs.frozen
class Told:
    """A state record, as a timeline shows it."""

    ln: int
    t: float
    old: str | None
    cause: str
    new: str | None


@final
@attrs.frozen(kw_only=True)
class Broken:
    """The first record that breaks a claim, and the entity's records before it."""

    claim: str
    run: str
    node: str
    machine: str
    key: str
    actor: str
    expected: str
    why: str | None
    record: Told
    before: Sequence[Told]


@final
@attrs.frozen
class BadLine:
    """A line that is no record."""

    file: str
    line: int
    reason: str
    text: str


@final
@attrs.frozen(kw_only=True)
class NodeFindings:
    """What was found in the trace of one node.

    Attributes:
        missing: Records that its numbers say there were.
        doubled: Records that have the number of another.
        quarantined: Lines in its files that are no records.
    """

    run: str
    node: str
    verdict: Verdict
    records: int
    missing: int
    doubled: int
    quarantined: int
    violations: int
    flaws: frozenset[Flaw]


@final
@attrs.frozen(kw_only=True)
class Findings:
    """What was found in all traces.

    Attributes:
        by_claim: How often each claim is broken, those that are kept too.
        first: The first violation of each claim that is broken.
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
    first: Sequence[Broken]
    bad_lines: Sequence[BadLine]


def judge_node(found: NodeFindings, quarantine: Quarantine) -> Verdict:
    """Judge one node's trace: violations, else what is missing, else conformant.

    Where quarantined lines are allowed, they account for as many missing records.
    """
    if found.violations:
        return Verdict.VIOLATIONS
    flaws = set(found.flaws)
    if quarantine is Quarantine.ALLOWED:
        if not found.doubled and found.missing <= found.quarantined:
            flaws.discard(Flaw.GAP)
    elif found.quarantined:
        return Verdict.INCOMPLETE
    return Verdict.INCOMPLETE if flaws else Verdict.CONFORMANT


def judge_run(
    nodes: Sequence[NodeFindings], violations: int, quarantined: int, quarantine: Quarantine
) -> Verdict:
    """Judge all nodes together: the worst of them."""
    if violations:
        return Verdict.VIOLATIONS
    counts = quarantine is Quarantine.COUNTS and quarantined > 0
    whole = all(node.verdict is Verdict.CONFORMANT for node in nodes)
    return Verdict.CONFORMANT if nodes and whole and not counts else Verdict.INCOMPLETE
