"""Whether the trace of each node tells all, and where it does not."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fsm.judge.trace_line import Flaw
from specs.trace import Kind

__all__ = ["holes", "judge_nodes"]


def judge_nodes(parsed: DataFrame) -> DataFrame:
    """Look at each node's trace as a whole.

    Args:
        parsed: What `spark.load.parse` returns.

    Returns:
        Rows of NODE.
    """
    is_bad = F.col("flaw").isNotNull()
    by_file = parsed.where(is_bad).groupBy("file").agg(F.count("*").alias("bad"))
    records = parsed.where(~is_bad)
    files = records.select("run", "node", "file").distinct()
    quarantined = (
        files.join(F.broadcast(by_file), on="file", how="inner")
        .groupBy("run", "node")
        .agg(F.sum("bad").alias("quarantined"))
    )
    is_dropped = F.col("k") == Kind.DROPPED.value
    told = records.groupBy("run", "node").agg(
        F.count("*").alias("records"),
        F.countDistinct("ln").alias("numbers"),
        F.min("ln").alias("least"),
        F.max("ln").alias("greatest"),
        F.min_by("k", F.struct("ln", "k")).alias("first"),
        F.max_by("k", F.struct("ln", "k")).alias("last"),
        F.count_if(is_dropped).alias("dropped"),
    )
    return told.join(quarantined, on=["run", "node"], how="left").select(
        "run",
        "node",
        "records",
        (F.col("last") == Kind.END.value).alias("ended"),
        (F.col("dropped") > 0).alias("dropped"),
        (F.col("greatest") - F.col("numbers")).alias("missing"),
        (F.col("records") - F.col("numbers")).alias("doubled"),
        F.coalesce("quarantined", F.lit(0)).alias("quarantined"),
        F.array_compact(F.array(*_flaws())).alias("flaws"),
    )


def _flaws() -> list[Column]:
    whole = (F.col("least") == 1) & (F.col("greatest") == F.col("records"))
    broken = {
        Flaw.NO_START: F.col("first") != Kind.START.value,
        Flaw.NO_END: F.col("last") != Kind.END.value,
        Flaw.GAP: ~(whole & (F.col("numbers") == F.col("records"))),
        Flaw.DROPPED: F.col("dropped") > 0,
    }
    return [F.when(found, F.lit(flaw.value)) for flaw, found in broken.items()]


def holes(records: DataFrame, nodes: DataFrame) -> DataFrame:
    """Find where records are missing: there a claim has no evidence.

    Returns:
        run, node, after: the number of the last record before the hole; null: records
        are missing, but nobody knows where.
    """
    suspects = nodes.where((F.col("missing") > 0) | F.col("dropped"))
    in_order = Window.partitionBy("run", "node").orderBy("ln")
    before = F.coalesce(F.lag("ln").over(in_order), F.lit(0)).alias("after")
    gaps = (
        records.join(F.broadcast(suspects), on=["run", "node"], how="left_semi")
        .select("run", "node", "ln", before)
        .where(F.col("ln") > F.col("after") + 1)
        .select("run", "node", "after")
    )
    unknown = F.lit(None).cast("bigint").alias("after")
    return gaps.unionByName(suspects.where("dropped").select("run", "node", unknown))
