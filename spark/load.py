"""Read traces into DataFrames; lines that are no valid records are kept apart, in quarantine.

A trace may be a directory of runs, the folder of one run or of one node in it, or one file; on a
disk or behind a URL; JSON Lines as processes write them, or the Parquet files of `convert`.
`fsm.judge.trace_line` reads each line, in Python workers.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Final

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from fsm.judge.trace_files import is_inside
from spark.errors import TraceMissingError
from spark.files import QUARANTINED, SILENT, base_of, is_local, plain
from spark.schemas import DECODED, PLACE, QUARANTINE, READ, REST, WRITER
from spark.workers.folds import decode, iterating
from specs.jsonvalue import Json
from specs.trace import writer_of

_PARQUET: Final = ".parquet"


@attrs.frozen
class Source:
    """The contents of the files of traces, as DataFrames.

    Attributes:
        records: A row for each line: the fields of the record, or the `flaw` and text of an
            invalid line; the file, and the position in the file.
        writers: Runs and nodes whose folder has a file, an empty one too; the run may be
            empty.
        bad: Rows of QUARANTINE, from the conversion of the trace.
    """

    records: DataFrame
    writers: frozenset[tuple[str, str]]
    bad: DataFrame


def read_source(
    session: SparkSession, paths: Sequence[str], *, is_all_read: bool = False
) -> Source:
    """Read the files at all `paths`, each file once.

    Args:
        session: A running Spark.
        paths: Directories of runs, runs, nodes of a run or files.
        is_all_read: Whether to read also the fields that no claim needs.

    Raises:
        TraceMissingError: There is nothing at a path, or no trace.
    """
    seen: set[str] = set()
    frames: list[DataFrame] = []
    aside: list[DataFrame] = []
    writers: set[tuple[str, str]] = set()
    for path in paths:
        text = _text(session, path)
        files_at_path = {plain(file) for file in text.inputFiles()}
        # A report, which may lie among the runs, is Parquet as well, but of no process.
        told = {file for file in files_at_path if not file.endswith(_PARQUET) or writer_of(file)}
        new = {file for file in told - seen if _is_of(path, file)}
        seen |= new
        columns = {file for file in new if file.endswith(_PARQUET)}
        lines = new - columns
        writers.update(writer for file in lines if (writer := writer_of(file)) is not None)
        if lines:
            is_all = len(files_at_path) == len(lines)
            of_lines = text if is_all else _reader(session).text(sorted(lines))
            frames.append(_of_lines(of_lines, is_all_read=is_all_read))
        if columns:
            base = base_of(path)
            frames.append(_of_columns(session, base, sorted(columns), is_all_read=is_all_read))
            aside.append(_aside(session, base, QUARANTINED, QUARANTINE))
            silent = _aside(session, base, SILENT, WRITER).collect()
            writers.update((row["run"], row["node"]) for row in silent)
    if not frames:
        raise TraceMissingError("nowhere", "no path was named")
    bad = reduce(DataFrame.unionByName, aside) if aside else small_frame(session, [], QUARANTINE)
    return Source(reduce(DataFrame.unionByName, frames), frozenset(writers), bad)


def _is_of(path: str, file: str) -> bool:
    """Return whether a file is below a path; symbolic links to other folders do not count."""
    place = Path(plain(path))
    return not (is_local(file) and place.is_dir()) or is_inside(Path(file), place)


_SCHEME: Final = "^file:/+"


def _file() -> Column:
    """Return a column with the name of the file from which each record was read."""
    # A plus sign stands for itself in these URLs, and for a space in a form.
    url = F.regexp_replace(F.col("_metadata.file_path"), "[+]", "%2B")
    return F.regexp_replace(F.url_decode(url), _SCHEME, "/")


def _reader(session: SparkSession) -> DataFrameReader:
    # Else a carriage return within a line would end it. What the folds can read of a packed file
    # that is cut off is read here too.
    return session.read.option("lineSep", "\n").option("ignoreCorruptFiles", "true")


def _text(session: SparkSession, path: str) -> DataFrame:
    reader = _reader(session).option("recursiveFileLookup", "true")
    if not path.rstrip("/").endswith((".jsonl", ".jsonl.gz", _PARQUET)):
        reader = reader.option("pathGlobFilter", "part-*.{jsonl,jsonl.gz,parquet}")
    try:
        text = reader.text(path)
        files = text.inputFiles()
    except AnalysisException as exc:
        raise TraceMissingError(path, "there is nothing") from exc
    if not files:
        raise TraceMissingError(path, "there is no part-*.jsonl under it")
    return text


def _of_lines(text: DataFrame, *, is_all_read: bool) -> DataFrame:
    reading = iterating(decode, DECODED.simpleString())
    lines = text.select(
        F.col("value").cast("binary").alias("line"),
        _file().alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
    )
    line = F.struct("line", F.xxhash64("file", "block").alias("piece"))
    read = lines.withColumn("record", reading(line))
    fields = [F.col(f"record.{name}").alias(name) for name in DECODED.fieldNames()]
    rest = F.from_json(F.col("line").cast("string"), REST)
    more = [rest[name].alias(name) for name in REST.fieldNames()] if is_all_read else []
    return read.select(*fields, "file", "block", *more)


def _of_columns(
    session: SparkSession, base: str, files: Sequence[str], *, is_all_read: bool
) -> DataFrame:
    frame = session.read.option("basePath", base).parquet(*files)
    fields = [F.col(name).cast(DECODED[name].dataType).alias(name) for name in READ]
    more = REST.fieldNames() if is_all_read else []
    no_text, no_number = F.lit(None).cast("string"), F.lit(None).cast("bigint")
    return frame.select(
        *fields, no_text.alias("flaw"), no_text.alias("text"), no_number.alias("position"),
        _file().alias("file"), no_number.alias("block"), *more,
    )  # fmt: skip


def _aside(session: SparkSession, base: str, folder: str, schema: StructType) -> DataFrame:
    """Read one of the additional folders that `convert` writes; empty if missing."""
    try:
        return session.read.schema(schema).json(f"{base}/{folder}")
    except AnalysisException:
        return small_frame(session, [], schema)


def small_frame(
    session: SparkSession, rows: Iterable[Mapping[str, Json]], schema: StructType
) -> DataFrame:
    """Convert a few rows to a DataFrame.

    `createDataFrame` would run a Python process for each task, which takes a second; here the rows
    are part of the query plan.

    Args:
        session: The Spark session.
        rows: The rows.
        schema: Their schema.
    """
    text = json.dumps([dict(row) for row in rows])
    # An array of rows, read by the JVM; one output row per element.
    parsed = F.from_json(F.lit(text), ArrayType(schema))
    return session.range(1).select(F.inline(parsed))


def place_lines(session: SparkSession, bad: Sequence[Mapping[str, Json]]) -> DataFrame:
    """Determine the line numbers, in their files, of lines that are no records.

    A line is numbered within the piece of its file that one task read. The lines of the earlier
    pieces are counted, if there are any.

    Args:
        session: A running Spark.
        bad: Of each bad line: file, block, position, reason, text.

    Returns:
        Rows of QUARANTINE.
    """
    lines = small_frame(session, bad, PLACE)
    split = sorted({str(row["file"]) for row in bad if row["block"]})
    if split:
        lines = lines.join(F.broadcast(_pieces(session, split)), on=["file", "block"], how="left")
    else:
        lines = lines.withColumn("offset", F.lit(0))
    line = F.coalesce("offset", F.lit(0)) + F.col("position") + 1
    return lines.withColumn("line", line).select(*QUARANTINE.fieldNames())


def _pieces(session: SparkSession, files: Sequence[str]) -> DataFrame:
    """Count the lines before each piece of some files; return rows of file, block and offset."""
    earlier = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    pieces = (
        _reader(session)
        .text([*files])
        .select(
            _file().alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
        )
    )
    counted = pieces.groupBy("file", "block").agg(F.count("*").alias("length"))
    offset = F.coalesce(F.sum("length").over(earlier), F.lit(0))
    return counted.select("file", "block", offset.alias("offset"))
