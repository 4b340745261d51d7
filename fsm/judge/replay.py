"""Reference judge of the state machine transitions in traces; the Spark job must agree with it.

Records are judged per entity (run, node, machine, key) in the order of `ln`, their number. Records
with equal `ln`, which occur in faulty traces only, are ordered by k, op, old, new, cause. The
claims are explained at `fsm.judge.trace_line.Claim`, the reasons for an incomplete trace at `Flaw`.

* One record can violate several claims: each counts, and the first one in the order of
  `CLAIMS` is displayed.
* `ends_at_rest` is violated by the last transition of the entity.
* A refused trigger is not part of the sequence of transitions: it changed no state.
* An entity whose state may be the last one may begin again under the same key: then a
  transition from `[*]` is no gap.
* A missing record does not prove a wrong transition. Where records are missing (a hole in
  the `ln`; the whole trace, if some were dropped), the claims that depend on their absence are
  not judged: `starts_at_initial` with a hole before, `no_gap_between_steps` with a hole between,
  `ends_at_rest` with a hole after. The trace is incomplete in any case.
* A trace is `violations` if any claim is violated; else `incomplete` if a node's trace
  has a flaw, a line had to be quarantined, or the trace has no record at all; else
  `conformant`. An entity is judged likewise, by its own records and its node's flaws.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import ClassVar, Final

import attrs

from fsm.judge.trace_line import Claim, Flaw, TraceLine, Verdict
from fsm.table import Table
from specs.trace import ABSENT, Kind, Op

WINDOW: Final = 5
"""Number of an entity's earlier records that are displayed with a violation."""


@attrs.frozen(slots=True, order=True)
class EntityId:
    """Identity of a state machine entity in a trace."""

    run: str
    node: str
    machine: str
    key: str


@attrs.frozen
class TimelineStep:
    """Record of a state machine transition, as a timeline displays it."""

    ln: int
    t: float
    old: str | None
    cause: str
    new: str | None


@attrs.frozen(slots=True)
class Violation:
    """Violation of a claim on state machines by one record.

    Attributes:
        entity: The entity that the record is about.
        claim: The claim that the record violates.
        ln: Number of the record in the node's trace.
        expected: The expected record, as half a sentence.
        record: The record.
        actor: The component that wrote it.
        why: The component's reason for the transition.
        before: The entity's records before it, oldest first.
    """

    entity: EntityId
    claim: Claim
    ln: int
    expected: str
    record: TimelineStep = attrs.field(eq=False)
    actor: str = attrs.field(default="", eq=False)
    why: str | None = attrs.field(default=None, eq=False)
    before: Sequence[TimelineStep] = attrs.field(default=(), eq=False)


@attrs.frozen(slots=True)
class EntityJudgement:
    """Verdict on one entity, with its violations.

    Attributes:
        entity: The entity.
        verdict: The verdict; the entity's violations take precedence over its node's flaws.
        violations: All of them, by `ln`, then by the order of the claims.
        steps: Number of its transitions.
    """

    entity: EntityId
    verdict: Verdict
    violations: tuple[Violation, ...]
    steps: int

    @property
    def first(self) -> Violation | None:
        """The first violation; None: no claim is violated."""
        return self.violations[0] if self.violations else None


@attrs.frozen(slots=True)
class NodeJudgement:
    """Completeness of the trace of one process.

    Attributes:
        run: Run of the process.
        node: Name of the process.
        records: Number of its records.
        flaws: The reasons why the trace is incomplete; empty: it is complete.
        holes: The `ln` after which records are missing.
        missing: Number of missing records.
        doubled: Number of records whose number another record has, too.
    """

    run: str
    node: str
    records: int
    flaws: frozenset[Flaw]
    holes: tuple[int, ...] = ()
    missing: int = attrs.field(default=0, eq=False)
    doubled: int = attrs.field(default=0, eq=False)

    def is_whole(self, since: int) -> bool:
        """Return whether no record is missing after the record with a given number."""
        return Flaw.DROPPED not in self.flaws and all(hole < since for hole in self.holes)


@attrs.frozen(slots=True)
class Judgement:
    """Verdict on a whole trace, with the verdicts on its entities and processes.

    Attributes:
        verdict: The overall verdict.
        entities: The judgements of the entities, sorted by entity.
        nodes: The judgements of the processes, sorted by run and node.
        quarantined: Number of lines that could not be read.
    """

    verdict: Verdict
    entities: tuple[EntityJudgement, ...]
    nodes: tuple[NodeJudgement, ...]
    quarantined: int

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All violations, entity by entity."""
        return tuple(broken for entity in self.entities for broken in entity.violations)

    @property
    def by_claim(self) -> Mapping[Claim, int]:
        """Number of violations of each violated claim."""
        return Counter(broken.claim for broken in self.violations)


def judgement_of(
    nodes: Sequence[NodeJudgement], entities: Sequence[EntityJudgement], quarantined: int
) -> Judgement:
    """Combine the judgements of processes and entities into one judgement of the trace.

    Args:
        nodes: The judgements of the traces.
        entities: The judgements of the entities.
        quarantined: Number of lines that are no records.
    """
    whole = bool(nodes) and not quarantined and not any(node.flaws for node in nodes)
    broken = any(entity.violations for entity in entities)
    in_order = tuple(sorted(entities, key=lambda each: each.entity))
    verdict = verdict_of(violations=broken, whole=whole)
    return Judgement(verdict, in_order, tuple(nodes), quarantined)


def order_of(record: TraceLine) -> tuple[str, str, int, str, str, str, str, str]:
    """Return the key by which records are sorted, also if two have the same number."""
    fields = (record.op, record.old, record.new, record.cause)
    op, old, new, cause = (text or "" for text in fields)
    return record.run, record.node, record.ln, record.k, op, old, new, cause


_RANK: Final = {claim: rank for rank, claim in enumerate(Claim)}


def verdict_of(*, violations: bool, whole: bool) -> Verdict:
    """Return the verdict for a trace or an entity: violations take precedence over missing records.

    Args:
        violations: Whether a claim is broken.
        whole: Whether no record is missing.
    """
    if violations:
        return Verdict.VIOLATIONS
    return Verdict.CONFORMANT if whole else Verdict.INCOMPLETE


class Machines:
    """Judge of the transitions of all entities of one process, fed record by record.

    Attributes:
        used: Number of transitions of each kind: machine, old state, trigger, new state.
        stays: How often entities stayed in a state for a time before they left it: machine, state,
            and class of the time, as `stay_of` returns it.
        counts: Number of entities of each machine so far.
        kept: Minimum number of entities that are remembered; older ones that are finished are
            forgotten.
    """

    kept: ClassVar[int] = 20_000

    def __init__(self, run: str, node: str, machines: Mapping[str, Table]) -> None:
        self.used: Counter[tuple[str, str, str, str]] = Counter()
        self.stays: Counter[tuple[str, str, int]] = Counter()
        self.counts: Counter[str] = Counter()
        self._run = run
        self._node = node
        self._machines = machines
        self._entities: dict[tuple[str | None, str | None], _Entity] = {}
        self._look_at = 2 * self.kept
        self._last = 0
        self._hole = -1

    def doubt(self) -> None:
        """Remember that an unknown number of records is missing after the last one."""
        self._hole = self._last

    def take(self, record: TraceLine) -> None:
        """Process the next record, of any kind."""
        if record.ln > self._last + 1:
            self._hole = self._last
        self._last = record.ln
        if record.k == Kind.STATE and record.op in _MOVES:
            self.take_step(record)

    def take_step(self, record: TraceLine) -> None:
        """Process the next transition, made or refused, without a check for missing records."""
        key = record.machine, record.key
        entity = self._entities.get(key)
        if entity is None:
            identity = EntityId(self._run, self._node, record.machine or "", record.key or "")
            table = self._machines.get(identity.machine)
            if len(self._entities) >= self._look_at:
                self._forget()
            entity = self._entities[key] = _Entity(identity, table)
            self.counts[identity.machine] += 1
        before = entity.before
        entity.take(record, self._hole)
        if record.op == Op.STEP:
            machine, new = record.machine or "", record.new or ""
            self.used[machine, record.old or "", record.cause or "", new] += 1
            if before is not None:
                self.stays[machine, before.new or "", stay_of(record.t - before.t)] += 1

    def _forget(self) -> None:
        """Forget the older entities that are finished and have no violation."""
        for key, entity in list(islice(self._entities.items(), len(self._entities) - self.kept)):
            if entity.is_over:
                del self._entities[key]
        self._look_at = max(2 * self.kept, 2 * len(self._entities))

    def end(self, node: NodeJudgement) -> tuple[EntityJudgement, ...]:
        """Return the judgements of all entities, sorted; no more records follow."""
        judged = [entity.end(node) for entity in self._entities.values()]
        return tuple(sorted(judged, key=lambda each: each.entity))


STEPS_OF_A_STAY: Final = 50
"""Number of classes of durations for each factor of e."""

SHORTEST: Final = 1e-9
"""Upper bound of the class of the shortest durations, in seconds."""


def stay_of(seconds: float) -> int:
    """Return the class of a duration on a logarithmic scale; its error is at most 2 %."""
    return round(math.log(max(seconds, SHORTEST)) * STEPS_OF_A_STAY)


def seconds_of(stay: int) -> float:
    """Return the middle of a class of durations, in seconds."""
    return math.exp(stay / STEPS_OF_A_STAY)


_MOVES: Final = frozenset({Op.STEP, Op.REFUSED})


class _Entity:
    """Judge of one entity while its records are read.

    A violation that depends on the absence of records is uncertain (`_doubted`) until it is known
    that the process dropped none.
    """

    __slots__ = (
        "_before",
        "_begins",
        "_doubted",
        "_entity",
        "_found",
        "_recent",
        "_rests",
        "_steps",
        "_table",
        "before",
    )

    def __init__(self, entity: EntityId, table: Table | None) -> None:
        self._entity = entity
        self._table = table
        begins: AbstractSet[str] = frozenset() if table is None else table.may_begin
        self._begins = {ABSENT, *begins}
        self._rests: AbstractSet[str] = frozenset() if table is None else table.may_end
        self._found: list[Violation] = []
        self._doubted: list[Violation] = []
        self._recent: deque[TimelineStep] = deque(maxlen=WINDOW)
        self.before: TraceLine | None = None
        self._steps = 0

    def take(self, record: TraceLine, hole: int) -> None:
        """Check the next record of the entity against the table.

        Args:
            record: The record.
            hole: Number of the last record after which records are missing; -1: none are missing.
        """
        if self._table is None:
            self._report_break(Claim.UNKNOWN_MACHINE, record, "a declared machine")
        if record.op == Op.STEP:
            self._take_step(record, hole)
            self.before = record
            self._steps += 1
        else:
            self._report_break(Claim.REFUSED_STEP, record, f"no {record.cause!r} in this state")
        step = TimelineStep(record.ln, record.t, record.old, record.cause or "", record.new)
        self._recent.append(step)

    def _take_step(self, step: TraceLine, hole: int) -> None:
        before, table, old, cause = self.before, self._table, step.old or "", step.cause or ""
        if table is not None:
            targets = table.targets(old, cause)
            if step.new not in targets:
                states = " or ".join(repr(target.value) for target in targets)
                expected = f"a step to {states}" if states else f"no step by {cause!r} from {old!r}"
                self._report_break(Claim.DECLARED_STEP, step, expected)
        if before is None:
            if step.old not in self._begins and hole < 0:
                expected = f"a first step from {ABSENT!r}"
                self._doubt(Claim.STARTS_AT_INITIAL, step, expected)
        elif (
            step.old != before.new
            and hole < before.ln
            # An entity whose former state may be the last may begin again under the same key.
            and (step.old != ABSENT or before.new not in self._rests)
        ):
            self._doubt(Claim.NO_GAP_BETWEEN_STEPS, step, f"a step from {before.new!r}")

    @property
    def is_over(self) -> bool:
        """True if no violation was found and the entity's state is final in its machine."""
        table, last = self._table, self.before
        if table is None or last is None or self._found or self._doubted:
            return False
        return last.new in self._rests and all(row.old != last.new for row in table.rows)

    def end(self, node: NodeJudgement) -> EntityJudgement:
        """Return the judgement of the entity; no more records follow."""
        last, table = self.before, self._table
        broken = self._found
        if Flaw.DROPPED not in node.flaws:
            broken = broken + self._doubted
        is_ended = last is not None and Flaw.NO_END not in node.flaws and node.is_whole(last.ln)
        if table is not None and last is not None and is_ended and last.new not in self._rests:
            rest = " or ".join(
                repr(state.value) for state in table.states if state in table.may_end
            )
            broken = [*broken, self._violation(Claim.ENDS_AT_REST, last, f"a last step to {rest}")]
        broken = sorted(broken, key=lambda each: (each.ln, _RANK[each.claim]))
        verdict = verdict_of(violations=bool(broken), whole=not node.flaws)
        return EntityJudgement(self._entity, verdict, tuple(broken), self._steps)

    def _report_break(self, claim: Claim, record: TraceLine, expected: str) -> None:
        self._found.append(self._violation(claim, record, expected))

    def _doubt(self, claim: Claim, record: TraceLine, expected: str) -> None:
        self._doubted.append(self._violation(claim, record, expected))

    def _violation(self, claim: Claim, record: TraceLine, expected: str) -> Violation:
        step = TimelineStep(record.ln, record.t, record.old, record.cause or "", record.new)
        before = tuple(each for each in self._recent if each.ln < record.ln)
        return Violation(
            self._entity, claim, record.ln, expected, step, record.actor, record.why, before
        )
