"""Traces as Parquet: the columns of all records, a folder for each run and node.

Beside the records stand the lines that are none, with their places, and the writers whose files
have no record: what is judged of the result is what is judged of the source.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from spark.files import QUARANTINED, SILENT
from spark.load import place_lines, read_source, small_frame
from spark.schemas import QUARANTINE, READ, REST, WRITER

__all__ = ["convert"]


def convert(session: SparkSession, paths: Sequence[str], target: str) -> int:
    """Write the records of traces as Parquet; return how many lines are none.

    Args:
        session: A running Spark.
        paths: Directories of runs, runs, nodes of a run or files; every form that Spark reads.
        target: A directory that is not there yet.

    Raises:
        TraceMissingError: There is no trace at a path.
        AnalysisException: The directory is there.
    """
    source = read_source(session, paths, is_all_read=True)
    lines = source.records.persist(StorageLevel.DISK_ONLY)
    try:
        records = lines.where(F.col("flaw").isNull()).select(*READ, *REST.fieldNames())
        in_order = records.repartition("run", "node").sortWithinPartitions("run", "node", "ln")
        in_order.write.partitionBy("run", "node").parquet(target)
        bad = _bad(session, lines).unionByName(source.bad)
        count = bad.count()
        if count:
            bad.coalesce(1).write.json(f"{target}/{QUARANTINED}")
        writers = records.select("run", "node").distinct().collect()
    finally:
        lines.unpersist()
    told = {(run, row["node"]) for row in writers for run in (row["run"], "")}
    silent = [{"run": run, "node": node} for run, node in source.writers if (run, node) not in told]
    if silent:
        small_frame(session, silent, WRITER).coalesce(1).write.json(f"{target}/{SILENT}")
    return count


def _bad(session: SparkSession, lines: DataFrame) -> DataFrame:
    fields = ("file", "block", "position", F.col("flaw").alias("reason"), "text")
    rows = lines.where(F.col("flaw").isNotNull()).select(*fields).collect()
    if not rows:
        return small_frame(session, [], QUARANTINE)
    return place_lines(session, [row.asDict() for row in rows])
