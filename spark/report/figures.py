"""Figures of a trace beyond its verdict: when processes ran, set-up times, message records."""

from collections.abc import Sequence
from typing import Final, final

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specs.trace import ABSENT, Kind

__all__ = ["Figures", "Hop", "ProcessRun", "SetUp", "figures_of"]

_SHOWN: Final = 40
_SLOWEST: Final = 10
_SET_UPS: Final = ("stub_connection", "p2p_connection")
_NANO: Final = 1e-9


@final
@attrs.frozen
class ProcessRun:
    """When a process wrote its first and its last record, in seconds since the epoch."""

    run: str
    node: str
    began: float
    ended: float
    records: int


@final
@attrs.frozen
class Hop:
    """How many message records of an operation a kind of component wrote."""

    actor: str
    op: str
    records: int


@final
@attrs.frozen
class SetUp:
    """Seconds from the creation of a connection to its first `live`."""

    machine: str
    key: str
    node: str
    seconds: float


@final
@attrs.frozen
class Figures:
    """Each list is bounded: the first processes, the most frequent hops, the slowest set-ups."""

    processes: Sequence[ProcessRun]
    hops: Sequence[Hop]
    set_ups: Sequence[SetUp]


def figures_of(records: DataFrame) -> Figures:
    """Ask for the figures.

    Args:
        records: What `spark.load.read_source` found, with all fields.
    """
    good = records.where(F.col("flaw").isNull())
    processes = good.groupBy("run", "node").agg(
        F.min("wall_ns").alias("began"), F.max("wall_ns").alias("ended"), F.count("*").alias("n")
    )
    hops = (
        good.where(F.col("k") == Kind.MSG.value).groupBy("actor", "op").agg(F.count("*").alias("n"))
    )
    return Figures(
        [
            ProcessRun(
                row["run"], row["node"], row["began"] * _NANO, row["ended"] * _NANO, row["n"]
            )
            for row in processes.orderBy("began").limit(_SHOWN).collect()
        ],
        [
            Hop(row["actor"], row["op"] or "", row["n"])
            for row in hops.orderBy(F.desc("n"), "actor", "op").limit(_SHOWN).collect()
        ],
        [
            SetUp(row["machine"], row["key"], row["node"], row["live"] - row["created"])
            for row in _set_ups(good).collect()
        ],
    )


def _set_ups(records: DataFrame) -> DataFrame:
    """Return the slowest set-ups: first creation to first `live` of each connection."""
    steps = records.where(F.col("machine").isin(*_SET_UPS))
    times = steps.groupBy("machine", "key", "run", "node").agg(
        F.min(F.when(F.col("old") == ABSENT, F.col("t"))).alias("created"),
        F.min(F.when(F.col("new") == "live", F.col("t"))).alias("live"),
    )
    return times.where("live >= created").orderBy(F.desc(F.expr("live - created"))).limit(_SLOWEST)
