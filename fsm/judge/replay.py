"""The reference judge of a trace: what the Spark job says must be the same.

Records are judged per entity (run, node, machine, key) in the order of `ln`; records
with the same `ln`, which an unflawed trace does not have, in the order of k, op, old,
new, cause. What each claim means stands at `fsm.judge.trace_line.Claim`, what makes a trace
incomplete at `Flaw`.

* One record can break several claims: each counts, the first of `CLAIMS` is shown.
* `ends_at_rest` is broken by the last step of the entity.
* A refused record has no place in the order of steps: it moved nothing.
* An entity whose history may end where it is may begin a new one under the same key: then
  a step that leaves `[*]` is no gap.
* A missing record is no proof of a wrong step. Where records are missing (a hole in the
  `ln`; the whole trace, if some were dropped), what rests on their absence is not judged:
  `starts_at_initial` with a hole before, `no_gap_between_steps` with one between,
  `ends_at_rest` with one after. The trace is incomplete anyway.
* A trace is `violations` if any claim is broken; else `incomplete` if a node's trace
  has a flaw, a line had to be quarantined, or there is no record at all; else
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
"""Records of an entity that are kept before a violation."""


@attrs.frozen(slots=True, order=True)
class EntityId:
    """An entity of a trace."""

    run: str
    node: str
    machine: str
    key: str


@attrs.frozen
class TimelineStep:
    """A state record, as a timeline shows it."""

    ln: int
    t: float
    old: str | None
    cause: str
    new: str | None


@attrs.frozen(slots=True)
class Violation:
    """One claim, broken by one record.

    Attributes:
        entity: Whose record.
        claim: What it breaks.
        ln: Which record of the node's trace.
        expected: What would have kept the claim, as half a sentence.
        record: The record.
        actor: Which component wrote it.
        why: What the component said to it.
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
    """The judgement of one entity.

    Attributes:
        entity: Which one.
        verdict: Its own violations before its node's flaws.
        violations: All of them, by `ln`, then by the order of the claims.
        steps: How often it moved.
    """

    entity: EntityId
    verdict: Verdict
    violations: tuple[Violation, ...]
    steps: int

    @property
    def first(self) -> Violation | None:
        """The first violation; None: there is none."""
        return self.violations[0] if self.violations else None


@attrs.frozen(slots=True)
class NodeJudgement:
    """The judgement of one node's trace as a whole.

    Attributes:
        run: Which run of the process.
        node: Which process.
        records: How many records it has.
        flaws: Why it is incomplete; empty: it is complete.
        holes: The `ln` behind which records are missing.
        missing: How many that are, by their numbers.
        doubled: How many records have the number of another.
    """

    run: str
    node: str
    records: int
    flaws: frozenset[Flaw]
    holes: tuple[int, ...] = ()
    missing: int = attrs.field(default=0, eq=False)
    doubled: int = attrs.field(default=0, eq=False)

    def is_whole(self, since: int) -> bool:
        """Return whether no record is missing behind a record, given by its number."""
        return Flaw.DROPPED not in self.flaws and all(hole < since for hole in self.holes)


@attrs.frozen(slots=True)
class Judgement:
    """The judgement of a trace.

    Attributes:
        verdict: Overall.
        entities: By their identity.
        nodes: By run and node.
        quarantined: Lines that could not be read.
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
        """Violations of each broken claim."""
        return Counter(broken.claim for broken in self.violations)


def judgement_of(
    nodes: Sequence[NodeJudgement], entities: Sequence[EntityJudgement], quarantined: int
) -> Judgement:
    """Judge all processes together.

    Args:
        nodes: The judgements of the traces.
        entities: The judgements of the entities.
        quarantined: Number of lines that are no records.
    """
    whole = bool(nodes) and not quarantined and not any(node.flaws for node in nodes)
    broken = any(entity.violations for entity in entities)
    in_order = tuple(sorted(entities, key=lambda one: one.entity))
    verdict = verdict_of(violations=broken, whole=whole)
    return Judgement(verdict, in_order, tuple(nodes), quarantined)


def order_of(record: TraceLine) -> tuple[str, str, int, str, str, str, str, str]:
    """Return the place of a record among all; numbers that are there twice are in some order."""
    fields = (record.op, record.old, record.new, record.cause)
    op, old, new, cause = (text or "" for text in fields)
    return record.run, record.node, record.ln, record.k, op, old, new, cause


_RANK: Final = {claim: rank for rank, claim in enumerate(Claim)}


def verdict_of(*, violations: bool, whole: bool) -> Verdict:
    """Return the verdict: violations before incomplete before conformant.

    Args:
        violations: Whether a claim is broken.
        whole: Whether no record is missing.
    """
    if violations:
        return Verdict.VIOLATIONS
    return Verdict.CONFORMANT if whole else Verdict.INCOMPLETE


class Machines:
    """Judges the steps of all entities of one process while its records are read.

    Attributes:
        used: How often each step was made: machine, state left, trigger, state entered.
        stays: How often entities stayed in a state until they left it: machine, state, and for
            how long, as `stay_of` counts it.
        counts: How many entities each machine has had.
        kept: Entities that are remembered at least; of older ones that are over, nothing is left.
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
        """Note that records are missing behind the last one: which they are is unclear."""
        self._hole = self._last

    def take(self, record: TraceLine) -> None:
        """Take the next record, of any kind."""
        if record.ln > self._last + 1:
            self._hole = self._last
        self._last = record.ln
        if record.k == Kind.STATE and record.op in _MOVES:
            self.take_step(record)

    def take_step(self, record: TraceLine) -> None:
        """Take the next record of a step, made or refused; no other record is missing."""
        at = record.machine, record.key
        entity = self._entities.get(at)
        if entity is None:
            identity = EntityId(self._run, self._node, record.machine or "", record.key or "")
            table = self._machines.get(identity.machine)
            if len(self._entities) >= self._look_at:
                self._forget()
            entity = self._entities[at] = _Entity(identity, table)
            self.counts[identity.machine] += 1
        before = entity.before
        entity.take(record, self._hole)
        if record.op == Op.STEP:
            machine, new = record.machine or "", record.new or ""
            self.used[machine, record.old or "", record.cause or "", new] += 1
            if before is not None:
                self.stays[machine, before.new or "", stay_of(record.t - before.t)] += 1

    def _forget(self) -> None:
        """Forget the older entities that are over, and of which nothing is to be said."""
        for at, entity in list(islice(self._entities.items(), len(self._entities) - self.kept)):
            if entity.is_over:
                del self._entities[at]
        self._look_at = max(2 * self.kept, 2 * len(self._entities))

    def end(self, node: NodeJudgement) -> tuple[EntityJudgement, ...]:
        """Judge each entity, in order; nothing more comes."""
        judged = [entity.end(node) for entity in self._entities.values()]
        return tuple(sorted(judged, key=lambda one: one.entity))


STEPS_OF_A_STAY: Final = 50
"""Classes of times, for each factor e."""

SHORTEST: Final = 1e-9
"""Seconds; shorter times are of the same class."""


def stay_of(seconds: float) -> int:
    """Return the class of a time, so that few numbers describe many times, each to 2 %."""
    return round(math.log(max(seconds, SHORTEST)) * STEPS_OF_A_STAY)


def seconds_of(stay: int) -> float:
    """Return about how long the times of a class are."""
    return math.exp(stay / STEPS_OF_A_STAY)


_MOVES: Final = frozenset({Op.STEP, Op.REFUSED})


class _Entity:
    """One entity, as far as its records were read.

    A claim that rests on the absence of records is doubted (`_doubted`) until it is known that
    the process dropped none.
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
        """Take the next record of the entity.

        Args:
            record: It.
            hole: The number of the last record behind which records are missing; -1: none are.
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
                said = " or ".join(repr(target.value) for target in targets)
                expected = f"a step to {said}" if said else f"no step by {cause!r} from {old!r}"
                self._report_break(Claim.DECLARED_STEP, step, expected)
        if before is None:
            if step.old not in self._begins and hole < 0:
                expected = f"a first step from {ABSENT!r}"
                self._doubt(Claim.STARTS_AT_INITIAL, step, expected)
        elif (
            step.old != before.new
            and hole < before.ln
            # An entity that might end where it was may begin anew under the same key.
            and (step.old != ABSENT or before.new not in self._rests)
        ):
            self._doubt(Claim.NO_GAP_BETWEEN_STEPS, step, f"a step from {before.new!r}")

    @property
    def is_over(self) -> bool:
        """Whether it is right so far, and its machine has no step from where it is."""
        table, last = self._table, self.before
        if table is None or last is None or self._found or self._doubted:
            return False
        return last.new in self._rests and all(row.old != last.new for row in table.rows)

    def end(self, node: NodeJudgement) -> EntityJudgement:
        """Judge the entity; nothing more comes."""
        last, table = self.before, self._table
        found = self._found
        if Flaw.DROPPED not in node.flaws:
            found = found + self._doubted
        is_ended = last is not None and Flaw.NO_END not in node.flaws and node.is_whole(last.ln)
        if table is not None and last is not None and is_ended and last.new not in self._rests:
            rest = " or ".join(
                repr(state.value) for state in table.states if state in table.may_end
            )
            found = [*found, self._violation(Claim.ENDS_AT_REST, last, f"a last step to {rest}")]
        found = sorted(found, key=lambda broken: (broken.ln, _RANK[broken.claim]))
        verdict = verdict_of(violations=bool(found), whole=not node.flaws)
        return EntityJudgement(self._entity, verdict, tuple(found), self._steps)

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
