"""How the machines were used: counts and times, small enough to show."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.schemas import ENTITY
from specs.trace import Op

__all__ = ["count_entities", "count_steps", "time_in_states"]


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
