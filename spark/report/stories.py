"""The history of a violation: earlier records of the same message, key or link.

These records may be of any process: those of one message, else of one key, else of one link.
All violations shown are looked up together, in two Spark jobs.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from spark.findings import Broken
from spark.load import small_frame
from spark.schemas import FACT, STORY, TOPIC
from specs.trace import Kind

if TYPE_CHECKING:
    from specs.jsonvalue import JsonObject

__all__ = ["Event", "Story", "told_of", "write_stories"]

_LENGTH: Final = 11
"""Records of a history, the violating one included."""

_Place: TypeAlias = tuple[str, str, int]


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


def told_of(
    session: SparkSession, good: DataFrame, violations: Sequence[Broken]
) -> Mapping[_Place, Story]:
    """Return the history of each violation, by its place.

    Args:
        session: A running Spark.
        good: Records, with at least the fields of FACT.
        violations: The violations shown.
    """
    places: list[JsonObject] = [
        {"run": one.run, "node": one.node, "ln": one.ln} for one in violations
    ]
    if not places:
        return {}
    facts = good.select(*FACT.fieldNames())
    wanted = F.broadcast(small_frame(session, places, TOPIC).select("run", "node", "ln"))
    heads = facts.join(wanted, on=["run", "node", "ln"], how="inner").distinct().collect()
    topics: list[JsonObject] = [
        {"run": row["run"], "node": row["node"], "ln": row["ln"],
         "until": row["wall_ns"], "topic": topic}
        for row in heads
        for topic in _topics(row)
    ]  # fmt: skip
    stories: defaultdict[_Place, dict[_Place, Event]] = defaultdict(dict)
    for row in heads:
        head = Event(**row.asDict())
        stories[head.place][head.place] = head
    if topics:
        for row in _before(facts, small_frame(session, topics, TOPIC)).collect():
            fields = row.asDict()
            of = fields.pop("of_run"), fields.pop("of_node"), fields.pop("of_ln")
            event = Event(**fields)
            stories[of][event.place] = event
    return {place: list(_in_order(place, story)) for place, story in stories.items()}


def _topics(row: SparkRow) -> list[str]:
    """Return what a record belongs to: a message and its answers, else an entity, else a link."""
    messages = [f"message {one}" for one in (row["mid"], row["ref"]) if one]
    if messages:
        return messages
    if row["key"]:
        return [f"key {row['machine'] or ''} {row['key']}"]
    return [f"link {row['link']}"] if row["link"] else []


def _before(records: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the last records of each topic until its violation."""
    belongs = F.array(
        _topic("message", F.col("mid")), _topic("message", F.col("ref")),
        _topic("key", F.coalesce("machine", F.lit("")), F.lit(" "), F.col("key")),
        _topic("link", F.col("link")),
    )  # fmt: skip
    of = topics.select(
        F.col("run").alias("of_run"), F.col("node").alias("of_node"),
        F.col("ln").alias("of_ln"), "until", "topic",
    )  # fmt: skip
    told = records.withColumn("topic", F.explode(F.array_compact(belongs)))
    found = told.join(F.broadcast(of), on="topic", how="inner").where("wall_ns <= until")
    by = ("of_run", "of_node", "of_ln")
    once = found.drop("topic", "until").dropDuplicates([*by, "run", "node", "ln"])
    latest = Window.partitionBy(*by).orderBy(F.desc("wall_ns"), F.desc("ln"))
    ranked = once.withColumn("rank", F.row_number().over(latest))
    return ranked.where(F.col("rank") <= _LENGTH).drop("rank")


def _topic(noun: str, *fields: Column) -> Column:
    return F.concat(F.lit(f"{noun} "), *fields)


def _in_order(place: _Place, story: Mapping[_Place, Event]) -> Iterator[Event]:
    """Yield the records before a violation by their times, then the violating one."""
    before = [event for at, event in story.items() if at != place]
    yield from sorted(before, key=lambda event: (event.wall_ns, event.place))[1 - _LENGTH :]
    yield story[place]


def write_stories(
    session: SparkSession,
    violations: Sequence[Broken],
    stories: Mapping[_Place, Story],
    directory: Path,
) -> None:
    """Write `stories.parquet`: a row for each record of a history.

    Args:
        session: A running Spark.
        violations: The violations shown.
        stories: The history of each, by its place.
        directory: Directory of the report.
    """
    rows: list[JsonObject] = []
    for one in violations:
        story = stories.get((one.run, one.node, one.ln), ())
        for at, event in enumerate(story, start=1):
            rows.append({"claim": one.claim, "at": at, **attrs.asdict(event)})
    frame = small_frame(session, rows, STORY).coalesce(1)
    frame.write.mode("overwrite").parquet(str(directory / "stories.parquet"))
