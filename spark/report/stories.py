"""The history of a violation: earlier records of the same message, key or link.

These records may be of any process: those of one message, else of one key, else of one link.
Spark writes the histories of all violations, for which it sorts the records of each message, key
and link once. Only the histories that the page shows are read into this process.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark.findings import Broken
from spark.load import small_frame
from spark.schemas import FACT, PLACED, STORY
from specs.trace import Kind

if TYPE_CHECKING:
    from specs.jsonvalue import JsonObject


_LENGTH: Final = 11
"""Records of a history, the violating one included."""

_Place: TypeAlias = tuple[str, str, int]
_PLACE: Final = ("run", "node", "ln")
_OF: Final = tuple(f"of_{name}" for name in _PLACE)
_IN_ORDER: Final = ("wall_ns", *_PLACE)


@final
@attrs.frozen(kw_only=True)
class Event:
    """A record as a history shows it; the fields are those of `specs.trace`."""

    run: str
    node: str
    ln: int
    wall_ns: int
    actor: str
    k: str
    op: str | None
    machine: str | None
    key: str | None
    old: str | None
    new: str | None
    cause: str | None
    type: str | None
    mid: str | None
    ref: str | None
    code: int | None
    link: str | None

    @property
    def place(self) -> _Place:
        """Run, node and number."""
        return self.run, self.node, self.ln

    @property
    def words(self) -> str:
        """What happened, on one line."""
        if self.k == Kind.STATE:
            return f"{self.machine}: {self.old or ''} -> {self.new or 'refused'} ({self.cause})"
        kind = None if self.k == Kind.MSG else self.k
        facts = (kind, self.op, self.type, self.code, self.link and f"by {self.link}")
        return " ".join(str(fact) for fact in facts if fact is not None)


Story: TypeAlias = Sequence[Event]
"""Records in the order of their times; the last is the violating one."""


def write_stories(good: DataFrame, violations: DataFrame, target: str) -> None:
    """Write the history of each violation: rows of STORY.

    Args:
        good: Records, with at least the fields of FACT.
        violations: Rows of VIOLATION.
        target: The directory that is written.
    """
    broken = violations.select("claim", *_PLACE).distinct()
    heads = broken.select(*_PLACE).distinct().withColumn("is_head", F.lit(True))  # noqa: FBT003
    records = good.select(*FACT.fieldNames()).join(heads, on=[*_PLACE], how="left")
    stories = _stories(records).join(broken, on=[*_PLACE], how="inner")
    of = (F.col(name).alias(told) for name, told in zip(_PLACE, _OF, strict=True))
    told = stories.select("claim", *of, F.posexplode("story").alias("before", "record"))
    rows = told.select("claim", *_OF, (F.col("before") + 1).cast("bigint").alias("at"), "record.*")
    rows.select(*STORY.fieldNames()).write.mode("overwrite").parquet(target)


def _stories(records: DataFrame) -> DataFrame:
    """Return run, node and number of each head, and its story: the last records until it."""
    topics = (
        _topic("message", F.col("mid")), _topic("message", F.col("ref")),
        _topic("key", F.coalesce("machine", F.lit("")), F.lit(" "), F.col("key")),
        _topic("link", F.col("link")),
    )  # fmt: skip
    itself = _topic("record", F.concat_ws(" ", *_PLACE))
    message, key, link = F.array_compact(F.array(*topics[:2])), *map(F.array, topics[2:])
    own = (
        F.when(F.size(message) > 0, message)
        .when(F.col("key").isNotNull(), key)
        .when(F.col("link").isNotNull(), link)
        .otherwise(F.array(itself))
    )
    told = records.withColumn("own", F.when(F.col("is_head"), own))
    wanted = told.where("is_head").select(F.explode("own").alias("topic")).distinct()
    every = F.array_compact(F.array(*topics, F.when(F.col("is_head"), itself)))
    belongs = told.withColumn("topic", F.explode(F.array_distinct(every)))
    of_topics = belongs.join(wanted, on="topic", how="left_semi")
    fields = dict.fromkeys([*_IN_ORDER, *FACT.fieldNames()])
    until = Window.partitionBy("topic").orderBy(*_IN_ORDER).rowsBetween(1 - _LENGTH, 0)
    latest = F.collect_list(F.struct(*fields)).over(until)
    found = of_topics.withColumn("latest", latest).where("is_head and array_contains(own, topic)")
    together = F.array_distinct(F.flatten(F.collect_list("latest")))
    story = F.reverse(F.slice(F.sort_array(together, asc=False), 1, _LENGTH))
    return found.groupBy(*_PLACE).agg(story.alias("story"))


def _topic(noun: str, *fields: Column) -> Column:
    return F.concat(F.lit(f"{noun} "), *fields)


def stories_of(
    session: SparkSession, written: str, violations: Sequence[Broken]
) -> Mapping[_Place, Story]:
    """Read the histories of some violations, by their places.

    Args:
        session: A running Spark.
        written: The directory that `write_stories` wrote.
        violations: The violations that are shown.
    """
    places: list[JsonObject] = [
        {"of_run": one.run, "of_node": one.node, "of_ln": one.ln} for one in violations
    ]
    shown = F.broadcast(small_frame(session, places, PLACED).distinct())
    told = session.read.schema(STORY).parquet(written).join(shown, on=[*_OF], how="left_semi")
    stories: defaultdict[_Place, dict[int, Event]] = defaultdict(dict)
    for row in told.drop("claim").distinct().collect():
        fields = row.asDict()
        run, node, ln, at = (fields.pop(name) for name in (*_OF, "at"))
        stories[run, node, ln][at] = Event(**fields)
    return {place: [story[at] for at in sorted(story)] for place, story in stories.items()}
