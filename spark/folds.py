"""The folds of the claims, run by Spark: per process, then per key for what needs several.

The records of a process are brought together and in order by one shuffle, and folded in a
Python worker by the code that `fsm judge` runs (`fsm.judge.process`). What processes hand over
for claims across them is a small part of the records; it is brought together by its keys.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.schemas import READ, SAID, What
from spark.worker import iterating, judging, judging_keys

__all__ = ["judge_across", "judge_processes"]

_ORDER: Final = ("run", "node", "ln", "k", "op", "old", "new", "cause")
_SAID: Final = f"array<{SAID.simpleString()}>"
_KEY: Final = ("claim", "key")
_BYTES: Final = 64 * 1024 * 1024
"""Of JSON Lines, for each partition."""


def judge_processes(
    session: SparkSession, records: DataFrame, homes: Mapping[tuple[str, str], str], size: int = 0
) -> DataFrame:
    """Judge each process by itself.

    Args:
        session: A running Spark.
        records: What `spark.load.read_source` found.
        homes: Addresses of runtimes, as far as they are known before.
        size: Bytes of the source, if they are known.

    Returns:
        Rows of SAID.
    """
    fold = iterating(judging(homes), _SAID)
    row = F.struct(*READ, "flaw", "file", "block", "position", "text")
    in_order = (
        # A line that is no record stays with those of its file.
        records.repartition(_parts(session, size), F.coalesce("run", "file"), "node")
        .sortWithinPartitions(*_ORDER)
    )  # fmt: skip
    return in_order.select(fold(row).alias("said")).select(F.inline("said"))


def judge_across(
    session: SparkSession, said: DataFrame, whole: AbstractSet[str | None]
) -> DataFrame:
    """Judge what processes handed over, key by key.

    Args:
        session: A running Spark.
        said: What `judge_processes` returned.
        whole: Runtimes of whose lives nothing is missing.

    Returns:
        Rows of SAID: findings.
    """
    fold = iterating(judging_keys(whole), _SAID)
    evidence = said.where(F.col("what") == What.EVIDENCE.value)
    in_order = (
        evidence.repartition(_parts(session, 0), *_KEY)
        .sortWithinPartitions(*_KEY, "run", "node", "ln", "place")
    )  # fmt: skip
    row = F.struct(*SAID.fieldNames())
    return in_order.select(fold(row).alias("said")).select(F.inline("said"))


def _parts(session: SparkSession, size: int) -> int:
    """Return how many partitions there are: work for each core, and not too much at once."""
    return max(session.sparkContext.defaultParallelism, size // _BYTES)
