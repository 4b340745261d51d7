"""Statistics of a trace for the report: when processes ran, and how fast messages were delivered.

A message uses a direct link if a process wrote it to a link of kind `p2p`, otherwise the node. The
duration of a request is from its submission to its final answer, by the clock of one process.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import reduce
from typing import TYPE_CHECKING, Final

import attrs
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from fsm.judge.trace_files import Missing
from spark.load import small_frame
from spark.schemas import FACT, HOLE
from specs.addresses.address import BACKEND_SCHEMES
from specs.reply_code import FIRST_FINAL
from specs.trace import ABSENT, Kind, Op

if TYPE_CHECKING:
    from specs.jsonvalue import JsonObject


BINS: Final = 60
"""Number of equal intervals into which the time of a trace is divided to count messages."""

QUANTILES: Final = (*(step / 20 for step in range(20)), 0.99, 1.0)
"""Quantiles of the latencies of requests."""

_SHOWN: Final = 40
_SLOWEST: Final = 10
_HOPS: Final = 6
_OTHERS: Final = "all others"
_EXACT: Final = 10_000
_SET_UPS: Final = ("stub_connection", "p2p_connection")
_NANO: Final = 1e-9


class Way(StrEnum):
    """Routes by which a message may leave a process: a direct link, or the node."""

    DIRECT = "direct link"
    NODE = "by the node"


@attrs.frozen
class Hop:
    """Counts of the messages that the processes with one name sent by one route.

    Attributes:
        sender: Name of the processes; those with few messages are combined.
        seconds: Duration of each bin.
        counts: Messages sent in each bin.
    """

    sender: str
    way: Way
    seconds: float
    counts: Sequence[int]

    @property
    def messages(self) -> int:
        """Total number of sent messages."""
        return sum(self.counts)

    @property
    def mean(self) -> float:
        """Messages per second."""
        return self.messages / (self.seconds * len(self.counts))

    @property
    def busiest(self) -> float:
        """Messages per second in the busiest bin."""
        return max(self.counts) / self.seconds


@attrs.frozen
class Traffic:
    """Numbers of messages by their route, each message counted once.

    Attributes:
        direct: Messages that were sent by a direct link, at least once.
        by_node: Messages between runtimes that were sent by the node only.
        services: Messages to or from a service of a domain, which has no direct link.
    """

    direct: int
    by_node: int
    services: int

    @property
    def share(self) -> float | None:
        """The share of the messages between runtimes that went by a direct link."""
        total = self.direct + self.by_node
        return self.direct / total if total else None


@attrs.frozen
class Latency:
    """Latencies of requests between runtimes: seconds from submission to the final answer.

    Attributes:
        quantiles: One for each of QUANTILES.
    """

    requests: int
    quantiles: Sequence[float]

    @property
    def median(self) -> float:
        """Seconds that half of the requests did not exceed."""
        return self.quantiles[QUANTILES.index(0.5)]

    @property
    def p95(self) -> float:
        """Seconds that 95 of 100 requests did not exceed."""
        return self.quantiles[QUANTILES.index(0.95)]


@attrs.frozen(kw_only=True)
class Figures:
    """The statistics of a report; each list has a maximum length.

    Attributes:
        processes: For each process, the times of its first and last record, in seconds since the
            epoch, and the number of records: run, node, began, ended, records.
        others: How many processes there are beyond those shown.
        holes: Parts of traces that are missing, from the time of the record before to that of the
            one after: run, node, began, ended, reason.
        components: For each component, how many records about messages it wrote, by operation:
            actor, op, records.
        set_ups: Seconds from the creation of a connection to its first `live`: machine, key,
            node, seconds.
    """

    processes: Sequence[Row] = ()
    others: int = 0
    holes: Sequence[Row] = ()
    components: Sequence[Row] = ()
    hops: Sequence[Hop] = ()
    traffic: Traffic = Traffic(0, 0, 0)
    latencies: Mapping[Way, Latency] = attrs.field(factory=dict)
    set_ups: Sequence[Row] = ()


def select_records(records: DataFrame) -> DataFrame:
    """Return the records and fields that statistics and histories of violations need.

    Args:
        records: What `spark.load.read_source` found.
    """
    good = records.where(F.col("flaw").isNull())
    return good.select(*FACT.fieldNames(), "t", "kind", "from", "to")


def figures_of(session: SparkSession, good: DataFrame, gaps: Sequence[Missing]) -> Figures:
    """Compute the statistics of a trace.

    Args:
        session: A running Spark.
        good: The records of `select_records`; read several times.
        gaps: The gaps of the traces.
    """
    processes = good.groupBy("run", "node").agg(
        F.min("wall_ns").alias("began"), F.max("wall_ns").alias("ended"), F.count("*").alias("n")
    )
    every = Window.partitionBy()
    totals = (
        F.min("began").over(every).alias("first"), F.max("ended").over(every).alias("last"),
        F.count("*").over(every).alias("total"),
    )  # fmt: skip
    first = processes.select("*", *totals).orderBy("began", "run", "node").limit(_SHOWN).collect()
    messages = good.where(F.col("k") == Kind.MSG.value).fillna("", ["op"])
    components = messages.groupBy("actor", "op").agg(F.count("*").alias("records"))
    sent = _sent_messages(good)
    return Figures(
        processes=[
            Row(
                run=row["run"], node=row["node"], began=row["began"] * _NANO,
                ended=row["ended"] * _NANO, records=row["n"],
            )
            for row in first
        ],
        others=first[0]["total"] - len(first) if first else 0,
        holes=_holes(session, good, gaps),
        components=components.orderBy(F.desc("records"), "actor", "op").limit(_SHOWN).collect(),
        hops=_hops(sent, first[0]["first"], first[0]["last"]) if first else [],
        traffic=_traffic(sent),
        latencies=_latencies(good, sent),
        set_ups=_set_ups(good).collect(),
    )  # fmt: skip


def _holes(session: SparkSession, good: DataFrame, gaps: Sequence[Missing]) -> list[Row]:
    """Return the times of the records before and after each gap."""
    if not gaps:
        return []
    rows: list[JsonObject] = [
        {"run": gap.run, "node": gap.node, "after": gap.ln, "reason": gap.reason} for gap in gaps
    ]
    places = small_frame(session, rows, HOLE)
    by = ("run", "node", "after", "reason")
    told = good.select("run", "node", "ln", "wall_ns").join(
        F.broadcast(places), on=["run", "node"], how="inner"
    )
    wall, ln = F.col("wall_ns"), F.col("ln")
    times = (
        told.where("ln <= after")
        .groupBy(*by)
        .agg(
            F.max_by(F.when(ln < F.col("after"), wall), F.when(ln < F.col("after"), ln)).alias(
                "began"
            ),
            F.max(F.when(ln == F.col("after"), wall)).alias("ended"),
        )
    )
    rows_of_gaps = times.where(F.col("ended").isNotNull()).orderBy(*by).collect()
    return [
        Row(
            run=row["run"], node=row["node"],
            began=(row["ended"] if row["began"] is None else row["began"]) * _NANO,
            ended=row["ended"] * _NANO, reason=row["reason"],
        )
        for row in rows_of_gaps
    ]  # fmt: skip


def _sent_messages(good: DataFrame) -> DataFrame:
    """Return the messages written on links, with `is_direct`."""
    opened = (F.col("k") == Kind.LINK.value) & (F.col("op") == Op.OPEN.value)
    place = ("run", "node", "link")
    direct = good.where(opened & (F.col("kind") == "p2p")).select(*place).distinct()
    sent = good.where((F.col("k") == Kind.MSG.value) & (F.col("op") == Op.XMIT.value))
    marked = direct.withColumn("is_opened", F.lit(True))  # noqa: FBT003 - a column
    joined = sent.join(marked, on=list(place), how="left")
    return joined.withColumn("is_direct", F.col("is_opened").isNotNull()).drop("is_opened")


def _hops(sent: DataFrame, began: int, ended: int) -> list[Hop]:
    width = max((ended - began) // BINS + 1, 1)
    at = F.floor((F.col("wall_ns") - F.lit(began)) / F.lit(width))
    counted = sent.groupBy("node", "is_direct", at.alias("bin")).agg(F.count("*").alias("n"))
    total = F.sum("n").over(Window.partitionBy("node", "is_direct"))
    busiest = Window.orderBy(F.desc("total"), "node", "is_direct")
    ranked = counted.withColumn("total", total).withColumn("rank", F.dense_rank().over(busiest))
    sender = F.when(F.col("rank") <= _HOPS, F.col("node")).otherwise(F.lit(_OTHERS))
    rows = ranked.groupBy(sender.alias("sender"), "is_direct", "bin").agg(F.sum("n").alias("n"))
    counts: dict[tuple[str, Way], list[int]] = {}
    for row in rows.collect():
        way = Way.DIRECT if row["is_direct"] else Way.NODE
        counts.setdefault((row["sender"], way), [0] * BINS)[row["bin"]] += row["n"]
    hops = [Hop(sender, way, width * _NANO, told) for (sender, way), told in counts.items()]
    return sorted(hops, key=lambda hop: (-hop.messages, hop.sender, hop.way))


def _is_service(address: str) -> Column:
    schemes = (
        F.startswith(F.col(address), F.lit(f"{scheme}://")) for scheme in sorted(BACKEND_SCHEMES)
    )
    return F.coalesce(reduce(Column.__or__, schemes), F.lit(False))  # noqa: FBT003 - a column


def _traffic(sent: DataFrame) -> Traffic:
    messages = sent.groupBy("mid").agg(
        F.max("is_direct").alias("is_direct"),
        F.max(_is_service("from") | _is_service("to")).alias("is_service"),
    )
    kind = F.when(F.col("is_direct"), "direct").when(F.col("is_service"), "services")
    counts = messages.groupBy(kind.otherwise("by_node").alias("kind")).agg(F.count("*").alias("n"))
    told = {row["kind"]: row["n"] for row in counts.collect()}
    return Traffic(told.get("direct", 0), told.get("by_node", 0), told.get("services", 0))


def _latencies(good: DataFrame, sent: DataFrame) -> dict[Way, Latency]:
    """Return the latencies of requests between runtimes, by their route."""
    msg = good.where(F.col("k") == Kind.MSG.value)
    asked = F.col("ref").isNull()
    ends = msg.where(
        ((F.col("op") == Op.SUBMIT.value) & asked)
        | ((F.col("op") == Op.CALLBACK.value) & (F.col("code") >= FIRST_FINAL))
    ).select(
        "run", "node", F.coalesce("ref", "mid").alias("request"),
        F.when(asked, F.col("t")).alias("began"), F.when(~asked, F.col("t")).alias("ended"),
        *(F.lit(None).cast("boolean").alias(name) for name in ("is_direct", "is_service")),
    )  # fmt: skip
    ways = sent.where(asked).select(
        "run", "node", F.col("mid").alias("request"),
        *(F.lit(None).cast("double").alias(name) for name in ("began", "ended")),
        "is_direct", (_is_service("from") | _is_service("to")).alias("is_service"),
    )  # fmt: skip
    requests = ends.unionByName(ways).groupBy("run", "node", "request").agg(
        F.min("began").alias("began"), F.min("ended").alias("ended"),
        F.min("is_direct").alias("is_direct"), F.max("is_direct").alias("is_any_direct"),
        F.max("is_service").alias("is_service"),
    )  # fmt: skip
    # A request that was sent by both routes, as its link was lost, counts for neither.
    clear = requests.where("is_direct = is_any_direct and not is_service and ended >= began")
    seconds = F.col("ended") - F.col("began")
    quantiles = F.percentile_approx(seconds, list(QUANTILES), _EXACT)
    told = clear.groupBy("is_direct").agg(F.count("*").alias("n"), quantiles.alias("quantiles"))
    return {
        Way.DIRECT if row["is_direct"] else Way.NODE: Latency(row["n"], row["quantiles"])
        for row in told.orderBy("is_direct").collect()
    }


def _set_ups(records: DataFrame) -> DataFrame:
    """Return the slowest set-ups: first creation to first `live` of each connection."""
    steps = records.where(F.col("machine").isin(*_SET_UPS))
    times = steps.groupBy("machine", "key", "run", "node").agg(
        F.min(F.when(F.col("old") == ABSENT, F.col("t"))).alias("created"),
        F.min(F.when(F.col("new") == "live", F.col("t"))).alias("live"),
    )
    seconds = (F.col("live") - F.col("created")).alias("seconds")
    slowest = times.where("live >= created").select("machine", "key", "node", seconds)
    return slowest.orderBy(F.desc("seconds")).limit(_SLOWEST)
