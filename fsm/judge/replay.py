"""The reference judge of a trace: what the Spark job says must be the same.

Records are judged per entity (run, node, machine, key) in the order of `ln`; records
with the same `ln`, which an unflawed trace does not have, in the order of k, op, old,
new, cause. What each claim means stands at `fsm.judge.trace_line.Claim`, what makes a trace
incomplete at `Flaw`.

* One record can break several claims: each counts, the first of `CLAIMS` is shown.
* `ends_at_rest` is broken by the last step of the entity.
* A refused record has no place in the order of steps: it moved nothing.
* An entity whose story may end where it is may begin a new one under the same key: then
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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.trace_line import Claim, Flaw, TraceLine, Verdict
from fsm.machine_list import MACHINES
from fsm.table import Table
from specs.trace import ABSENT, Kind

__all__ = ["EntityId", "EntityJudgement", "Judgement", "NodeJudgement", "Violation", "judge"]
__all__ += ["judge_node"]

_NodeId: TypeAlias = tuple[str, str]


@final
@attrs.frozen(slots=True, order=True)
class EntityId:
    """Which entity of which trace."""

    run: str
    node: str
    machine: str
    key: str


@final
@attrs.frozen(slots=True)
class Violation:
    """One claim, broken by one record.

    Attributes:
        entity: Whose record.
        claim: What it breaks.
        ln: Which record of the node's trace.
        expected: What would have kept the claim, as half a sentence.
    """

    entity: EntityId
    claim: Claim
    ln: int
    expected: str


@final
@attrs.frozen(slots=True)
class EntityJudgement:
    """What is judged of one entity.

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


@final
@attrs.frozen(slots=True)
class NodeJudgement:
    """What is judged of one node's trace as a whole.

    Attributes:
        run: Which run of the process.
        node: Which process.
        records: How many records it has.
        flaws: Why it does not tell all; empty: it does.
        holes: The `ln` behind which records are missing.
    """

    run: str
    node: str
    records: int
    flaws: frozenset[Flaw]
    holes: tuple[int, ...] = ()

    def is_whole(self, since: int, until: float = math.inf) -> bool:
        """Whether no record is missing between the records `since` and `until`."""
        if Flaw.DROPPED in self.flaws:
            return False
        return not any(since <= hole < until for hole in self.holes)


@final
@attrs.frozen(slots=True)
class Judgement:
    """What is judged of a trace.

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
        """How often each claim is broken; those that are kept are left out."""
        return Counter(broken.claim for broken in self.violations)


def judge(
    records: Iterable[TraceLine],
    quarantined: int = 0,
    machines: Mapping[str, Table] = MACHINES,
) -> Judgement:
    """Judge a trace.

    Args:
        records: Of any number of nodes, in any order.
        quarantined: How many lines could not be read.
        machines: What to judge by.
    """
    by_node: defaultdict[_NodeId, list[TraceLine]] = defaultdict(list)
    by_entity: defaultdict[EntityId, list[TraceLine]] = defaultdict(list)
    for record in sorted(records, key=_order):
        by_node[record.run, record.node].append(record)
        if record.is_step or record.is_refused:
            by_entity[_entity_of(record)].append(record)
    nodes = {where: judge_node(told) for where, told in sorted(by_node.items())}
    entities = tuple(
        _judge_entity(_Case(entity, told, nodes[entity.run, entity.node], machines))
        for entity, told in sorted(by_entity.items())
    )
    whole = bool(nodes) and not quarantined and not any(node.flaws for node in nodes.values())
    broken = any(entity.violations for entity in entities)
    verdict = _verdict(violations=broken, whole=whole)
    return Judgement(verdict, entities, tuple(nodes.values()), quarantined)


def _order(record: TraceLine) -> tuple[int, str, str, str, str, str]:
    fields = (record.op, record.old, record.new, record.cause)
    op, old, new, cause = (text or "" for text in fields)
    return record.ln, record.k, op, old, new, cause


def _entity_of(record: TraceLine) -> EntityId:
    return EntityId(record.run, record.node, record.machine or "", record.key or "")


def _verdict(*, violations: bool, whole: bool) -> Verdict:
    if violations:
        return Verdict.VIOLATIONS
    return Verdict.CONFORMANT if whole else Verdict.INCOMPLETE


def judge_node(told: Sequence[TraceLine]) -> NodeJudgement:
    """Say what is missing in the trace of one node; `told` is sorted and not empty."""
    flaws = {
        Flaw.NO_START: told[0].k != Kind.START,
        Flaw.NO_END: told[-1].k != Kind.END,
        Flaw.GAP: any(record.ln != ln for ln, record in enumerate(told, start=1)),
        Flaw.DROPPED: any(record.k == Kind.DROPPED for record in told),
    }
    found = frozenset(flaw for flaw, there in flaws.items() if there)
    numbers = [0, *(record.ln for record in told)]
    holes = tuple(ln for ln, after in pairwise(numbers) if after > ln + 1)
    return NodeJudgement(told[0].run, told[0].node, len(told), found, holes)


@final
@attrs.frozen(slots=True)
class _Case:
    """One entity and all that is judged by."""

    entity: EntityId
    told: Sequence[TraceLine]
    node: NodeJudgement
    machines: Mapping[str, Table]

    @property
    def table(self) -> Table | None:
        return self.machines.get(self.entity.machine)

    @property
    def steps(self) -> Sequence[TraceLine]:
        return [record for record in self.told if record.is_step]

    def broken(self, claim: Claim, record: TraceLine, expected: str) -> Violation:
        return Violation(self.entity, claim, record.ln, expected)


def _judge_entity(case: _Case) -> EntityJudgement:
    found = [*_undeclared(case), *_jumps(case), *_broken_end(case), *_refused(case)]
    if case.table is None:
        unknown = Claim.UNKNOWN_MACHINE
        found += [case.broken(unknown, record, "a declared machine") for record in case.told]
    found.sort(key=lambda broken: (broken.ln, _RANK[broken.claim]))
    verdict = _verdict(violations=bool(found), whole=not case.node.flaws)
    return EntityJudgement(case.entity, verdict, tuple(found), len(case.steps))


_RANK: Final = {claim: rank for rank, claim in enumerate(Claim)}


def _undeclared(case: _Case) -> Iterator[Violation]:
    table = case.table
    if table is None:
        return
    for step in case.steps:
        old, cause = step.old or "", step.cause or ""
        targets = table.targets(old, cause)
        if step.new not in targets:
            said = " or ".join(repr(target.value) for target in targets)
            expected = f"a step to {said}" if said else f"no step by {cause!r} from {old!r}"
            yield case.broken(Claim.DECLARED_STEP, step, expected)


def _jumps(case: _Case) -> Iterator[Violation]:
    steps, node = case.steps, case.node
    rests = frozenset[str]() if case.table is None else case.table.may_end
    if steps and steps[0].old != ABSENT and node.is_whole(0, steps[0].ln):
        yield case.broken(Claim.STARTS_AT_INITIAL, steps[0], f"a first step from {ABSENT!r}")
    for before, step in pairwise(steps):
        reborn = step.old == ABSENT and before.new in rests
        if step.old != before.new and not reborn and node.is_whole(before.ln, step.ln):
            yield case.broken(Claim.NO_GAP_BETWEEN_STEPS, step, f"a step from {before.new!r}")


def _broken_end(case: _Case) -> Iterator[Violation]:
    table, steps, node = case.table, case.steps, case.node
    if table is None or not steps or Flaw.NO_END in node.flaws or not node.is_whole(steps[-1].ln):
        return
    if steps[-1].new not in table.may_end:
        rest = " or ".join(repr(state.value) for state in table.states if state in table.may_end)
        yield case.broken(Claim.ENDS_AT_REST, steps[-1], f"a last step to {rest}")


def _refused(case: _Case) -> Iterator[Violation]:
    for record in case.told:
        if record.is_refused:
            yield case.broken(Claim.REFUSED_STEP, record, f"no {record.cause!r} in this state")
