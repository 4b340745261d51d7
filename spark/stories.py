"""What each entity went through: its records in order, each beside what came before.

One shuffle by entity; everything the claims and figures need is a column afterwards.

How the machines were used: counts and times, small enough to show.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.schemas import ENTITY
from spark.tables import Tables
from specs.trace import Kind, Op

__all__ = ["count_entities", "count_steps", "tell_stories", "time_in_states"]


def count_entities(stories: DataFrame) -> DataFrame:
    """Count the entities of each machine. Returns: machine, entities."""
    each = stories.select(*ENTITY).distinct()
    return each.groupBy("machine").agg(F.count("*").alias("entities"))


def count_steps(stories: DataFrame) -> DataFrame:
    """Count how often each step was made. Returns: machine, old, cause, new, steps."""
    steps = stories.where(F.col("op") == Op.STEP.value)
    return steps.groupBy("machine", "old", "cause", "new").agg(F.count("*").alias("steps"))


def time_in_states(stories: DataFrame) -> DataFrame:
    """Measure how long entities stayed in a state that they left.

    Returns:
        machine, state, stays, and of the seconds: median, p95, longest.
    """
    seconds = F.col("next_t") - F.col("t")
    left = stories.where(F.col("next_t").isNotNull()).withColumn("seconds", seconds)
    return left.groupBy("machine", F.col("new").alias("state")).agg(
        F.count("*").alias("stays"),
        F.percentile_approx("seconds", 0.5).alias("median"),
        F.percentile_approx("seconds", 0.95).alias("p95"),
        F.max("seconds").alias("longest"),
    )


_TOLD: Final = (*ENTITY, "ln", "t", "actor", "op", "old", "cause", "why")


def tell_stories(records: DataFrame, nodes: DataFrame, tables: Tables) -> DataFrame:
    """Put the state records of each entity in order.

    Args:
        records: What `spark.load.records` returns.
        nodes: Rows of NODE.
        tables: The declared machines.

    Returns:
        A row per state record: ENTITY, ln, t, actor, op, old, cause, new, why; `before`
        and `before_ln` of the entity's step before (null: none), `next_t` of the one
        after, `last` (its last step); the `targets` its table's rows lead to (null: no row)
        and the same as `wanted`, `rest` (null: unknown machine), `rests` and
        `before_rests` (whether new and before may end); `ended` (whether the node's trace
        has its end).
    """
    states = records.where(F.col("k") == Kind.STATE.value)
    refused = states.where(F.col("op") == Op.REFUSED.value).select(*_TOLD)
    steps = states.where(F.col("op") == Op.STEP.value).select(*_TOLD, "new")
    resting = steps.join(F.broadcast(tables.ends), on=["machine", "new"], how="left")
    in_order = resting.withColumns(_neighbours()).fillna(
        value=False, subset=["rests", "before_rests"]
    )
    told = in_order.unionByName(refused, allowMissingColumns=True)
    ended = nodes.select("run", "node", "ended")
    return (
        told.join(F.broadcast(tables.machines), on="machine", how="left")
        .join(F.broadcast(tables.transitions), on=["machine", "old", "cause"], how="left")
        .join(F.broadcast(ended), on=["run", "node"], how="left")
    )


def _neighbours() -> dict[str, Column]:
    by_number = [F.col(name).asc_nulls_first() for name in ("ln", "op", "old", "new", "cause")]
    in_order = Window.partitionBy(*ENTITY).orderBy(*by_number)
    return {
        "before": F.lag("new").over(in_order),
        "before_ln": F.lag("ln").over(in_order),
        "before_rests": F.lag("rests").over(in_order),
        "next_t": F.lead("t").over(in_order),
        "last": F.lead("ln").over(in_order).isNull(),
    }
