"""The claims on the steps of declared machines: one function each.

Each takes stories (`spark.stories`) and returns the records that break it. Their meaning
stands at `fsm.judge.trace_line.Claim`; `fsm.judge.replay` judges the same, one entity at a time.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fsm.judge.trace_line import CLAIMS, Claim
from spark.schemas import ENTITY, STEP
from specs.trace import ABSENT, Op

__all__ = ["CHECKS", "declared_step", "ends_at_rest", "find_violations", "no_gap_between_steps"]
__all__ += ["refused_step", "starts_at_initial", "unknown_machine", "with_records_before"]

WINDOW: Final = 5
"""Records shown before a violation."""


def declared_step(stories: DataFrame) -> DataFrame:
    """Keep steps that no row of their machine's table has."""
    none = F.concat(F.lit("no step by '"), "cause", F.lit("' from '"), "old", F.lit("'"))
    known = _steps(stories).where(F.col("rest").isNotNull())
    declared = F.coalesce(F.array_contains("targets", F.col("new")), F.lit(False))  # noqa: FBT003
    undeclared = known.where(~declared)
    wanted = F.concat(F.lit("a step to "), "wanted")
    return _broken(undeclared, F.coalesce(wanted, none))


def starts_at_initial(stories: DataFrame) -> DataFrame:
    """Keep first steps of entities that were said to be there already."""
    first = _steps(stories).where(F.col("before").isNull())
    late = first.where(F.col("old") != ABSENT)
    return _broken(late, F.lit(f"a first step from '{ABSENT}'"), since=F.lit(0), until=F.col("ln"))


def no_gap_between_steps(stories: DataFrame) -> DataFrame:
    """Keep steps that leave another state than the step before entered.

    An entity whose story may end there may begin a new one.
    """
    reborn = (F.col("old") == ABSENT) & F.col("before_rests")
    jumped = _steps(stories).where((F.col("old") != F.col("before")) & ~reborn)
    expected = F.concat(F.lit("a step from "), _quoted("before"))
    return _broken(jumped, expected, since=F.col("before_ln"), until=F.col("ln"))


def ends_at_rest(stories: DataFrame) -> DataFrame:
    """Keep last steps to a state that may not end, if the trace has its end."""
    last = _steps(stories).where(F.col("last") & F.col("ended") & F.col("rest").isNotNull())
    expected = F.concat(F.lit("a last step to "), "rest")
    return _broken(last.where(~F.col("rests")), expected, since=F.col("ln"))


def refused_step(stories: DataFrame) -> DataFrame:
    """Keep what was asked of an entity against its table, and refused."""
    refused = stories.where(F.col("op") == Op.REFUSED.value)
    return _broken(refused, F.concat(F.lit("no "), _quoted("cause"), F.lit(" in this state")))


def unknown_machine(stories: DataFrame) -> DataFrame:
    """Keep records of machines that nobody declared."""
    return _broken(stories.where(F.col("rest").isNull()), F.lit("a declared machine"))


CHECKS: Final[Mapping[Claim, Callable[[DataFrame], DataFrame]]] = MappingProxyType(
    {
        Claim.DECLARED_STEP: declared_step,
        Claim.STARTS_AT_INITIAL: starts_at_initial,
        Claim.NO_GAP_BETWEEN_STEPS: no_gap_between_steps,
        Claim.ENDS_AT_REST: ends_at_rest,
        Claim.REFUSED_STEP: refused_step,
        Claim.UNKNOWN_MACHINE: unknown_machine,
    }
)
"""The check of each claim."""


def find_violations(stories: DataFrame, holes: DataFrame) -> DataFrame:
    """Check all claims.

    A missing record is no proof of a wrong step: where the evidence of a claim has a
    hole, the claim is not judged (the trace is incomplete anyway).

    Returns:
        Rows of VIOLATION but for `before`; and rank, the claim's place in their order.
    """
    found = [
        CHECKS[claim](stories).withColumns({"claim": F.lit(claim.value), "rank": F.lit(rank)})
        for rank, claim in enumerate(CLAIMS)
    ]
    candidates = reduce(DataFrame.unionByName, found)
    in_hole = _in_evidence(candidates, holes)
    proven = candidates.join(F.broadcast(holes), on=in_hole, how="left_anti")
    return proven.drop("since", "until")


def with_records_before(violations: DataFrame, stories: DataFrame) -> DataFrame:
    """Add what led to each violation: the entity's records `before` it, oldest first."""
    entities = violations.select(*ENTITY).distinct()
    recent = Window.partitionBy(*ENTITY).orderBy("ln").rowsBetween(-WINDOW, -1)
    step = F.struct(*STEP.fieldNames())
    timelines = (
        stories.join(entities, on=list(ENTITY), how="left_semi")
        .withColumn("before", F.collect_list(step).over(recent))
        .select(*ENTITY, "ln", "before")
        .dropDuplicates([*ENTITY, "ln"])
    )
    return violations.join(timelines, on=[*ENTITY, "ln"], how="inner")


def _in_evidence(candidates: DataFrame, holes: DataFrame) -> Column:
    after, since, until = holes["after"], candidates["since"], candidates["until"]
    return (
        (candidates["run"] == holes["run"])
        & (candidates["node"] == holes["node"])
        & since.isNotNull()
        & (after.isNull() | ((after >= since) & (until.isNull() | (after < until))))
    )


def _steps(stories: DataFrame) -> DataFrame:
    return stories.where(F.col("op") == Op.STEP.value)


def _quoted(name: str) -> Column:
    return F.concat(F.lit("'"), name, F.lit("'"))


def _broken(
    rows: DataFrame, expected: Column, since: Column | None = None, until: Column | None = None
) -> DataFrame:
    """Say what was expected, and between which records the evidence lies (null: here)."""
    nowhere = F.lit(None)
    return rows.select(
        *ENTITY, "ln", "t", "actor", "old", "cause", "new", "why",
        expected.alias("expected"),
        (nowhere if since is None else since).cast("bigint").alias("since"),
        (nowhere if until is None else until).cast("bigint").alias("until"),
    )  # fmt: skip
