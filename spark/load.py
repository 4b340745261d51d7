"""Traces in: every line becomes a record or goes to quarantine, none is lost.

A trace is whatever Spark reads: a directory of runs, the folder of one run or of one node
in it, one file; on a disk or behind a URL. The rules of a good line are those of
`fsm.judge.trace_line`.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spark.errors import TraceMissingError
from spark.schemas import ENTITY, QUARANTINE, REQUIRED, TRACE
from specs.trace import Kind, Op, writer_of

__all__ = ["Source", "parse", "quarantine", "read_lines", "records"]

_JUDGED: Final = (*ENTITY, "ln", "t", "actor", "k", "op", "old", "cause", "new", "why")
"""The fields of a record that a claim or a figure needs; all of them are checked."""

_CORRUPT: Final = "_corrupt"
_PARSED: Final = StructType([*TRACE.fields, StructField(_CORRUPT, StringType())])
_TEXTS: Final = "|".join(f.name for f in TRACE.fields if isinstance(f.dataType, StringType))
_NO_TEXT: Final = rf'"({_TEXTS})"\s*:\s*[^"n\s]'
"""A text field followed by something else than text or null. Within a JSON string the
quotes are escaped, so that this matches only where a field stands."""


@attrs.frozen
class Source:
    """What was found at the paths.

    Attributes:
        lines: A row per line: text, file, and where it stood.
        nodes: Runs and nodes whose folder has a file, an empty one too; the run may be
            empty.
    """

    lines: DataFrame
    nodes: frozenset[tuple[str, str]]


def read_lines(session: SparkSession, paths: Sequence[str]) -> Source:
    """Find the files of all `paths`; one that several of them lead to is read once.

    Raises:
        TraceMissingError: There is nothing at a path, or no trace.
    """
    found: DataFrame | None = None
    files: set[str] = set()
    for path in paths:
        text = _read_text(session, path)
        # Spark tells paths as parts of URLs.
        now = {unquote(file) for file in text.inputFiles()}
        if now <= files:
            continue
        if now & files:
            text = session.read.text(sorted(now - files))
        files |= now
        lines = text.select(
            F.col("value").alias("text"),
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            F.monotonically_increasing_id().alias("position"),
        )
        found = lines if found is None else found.unionByName(lines)
    if found is None:
        raise TraceMissingError("nowhere", "no path was named")
    writers = {writer_of(file) for file in files}
    return Source(found, frozenset(writer for writer in writers if writer is not None))


def _read_text(session: SparkSession, path: str) -> DataFrame:
    reader = session.read.option("recursiveFileLookup", "true")
    if not path.rstrip("/").endswith((".jsonl", ".jsonl.gz")):
        reader = reader.option("pathGlobFilter", "part-*.jsonl*")
    try:
        text = reader.text(path)
        files = text.inputFiles()
    except AnalysisException as exc:
        raise TraceMissingError(path, "there is nothing") from exc
    if not files:
        raise TraceMissingError(path, "there is no part-*.jsonl under it")
    return text


def parse(lines: DataFrame) -> DataFrame:
    """Read each line as a record, strictly.

    Returns:
        Rows of lines: where it stood, the fields that are judged, and `flaw`: why it is
        no record, or null; only then its text.
    """
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    record = F.from_json("text", _PARSED, options)
    read = lines.withColumn("record", record).withColumn("flaw", _reason())
    kept = F.when(F.col("flaw").isNotNull(), F.col("text")).alias("text")
    fields = [F.col(f"record.{name}") for name in _JUDGED]
    return read.select("file", "block", "position", "flaw", kept, *fields)


def records(parsed: DataFrame) -> DataFrame:
    """Keep the good lines: the fields that are judged, and the file each stood in."""
    return parsed.where(F.col("flaw").isNull()).select(*_JUDGED, "file")


def quarantine(parsed: DataFrame) -> DataFrame:
    """Keep the lines that are no records.

    Spark numbers rows only within the piece of a file that one task read, so the lines
    of the pieces before it are added.

    Returns:
        Rows of QUARANTINE.
    """
    earlier = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    pieces = (
        parsed.groupBy("file", "block")
        .agg(F.count("*").alias("length"), F.min("position").alias("first"))
        .withColumn("offset", F.coalesce(F.sum("length").over(earlier), F.lit(0)))
    )
    line = F.col("offset") + F.col("position") - F.col("first") + 1
    bad = parsed.where(F.col("flaw").isNotNull())
    placed = bad.join(F.broadcast(pieces), on=["file", "block"], how="inner")
    named = placed.withColumnRenamed("flaw", "reason").withColumn("line", line)
    return named.select(*QUARANTINE.fieldNames())


def _reason() -> Column:
    kind, op = F.col("record.k"), F.col("record.op")
    is_state = kind == Kind.STATE.value
    unread = F.col("record").isNull() | F.col(f"record.{_CORRUPT}").isNotNull()
    no_text = F.regexp_extract("text", _NO_TEXT, 1)
    checks = [
        (unread & F.try_parse_json("text").isNull(), "no JSON"),
        (unread & ~F.ltrim("text").startswith("{"), "no JSON object"),
        (unread, "a field that is a number holds something else"),
        (F.col("text").rlike(_NO_TEXT), F.concat(no_text, F.lit(" is no text"))),
        *((F.col(f"record.{name}").isNull(), f"{name} is missing") for name in REQUIRED),
        (~kind.isin([kind.value for kind in Kind]), "k is no kind of record"),
        (
            is_state & (op.isNull() | ~op.isin(_STATE_OPS)),
            "op is neither step nor refused",
        ),
        *(
            (is_state & F.col(f"record.{name}").isNull(), f"{name} is missing")
            for name in ("machine", "key", "cause")
        ),
        *(
            (
                is_state & (op == Op.STEP.value) & F.col(f"record.{name}").isNull(),
                f"{name} is missing",
            )
            for name in ("old", "new")
        ),
    ]
    reason = F.lit(None).cast("string")
    for broken, words in reversed(checks):
        said = F.lit(words) if isinstance(words, str) else words
        reason = F.when(broken, said).otherwise(reason)
    return reason


_STATE_OPS: Final = [Op.STEP.value, Op.REFUSED.value]
