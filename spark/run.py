"""The commands as functions: start Spark, then check, convert or export traces.

`convert` writes traces as Parquet files, with a folder for each run and node, and additional
folders for the lines that are no records, and for the processes without a record. A check of the
result has the same verdict as a check of the source.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from fsm.judge.trace_line import Verdict
from spark.errors import ReportPlaceError, report_failures
from spark.files import QUARANTINED, SILENT
from spark.findings import DIAGRAMS, Findings
from spark.load import place_lines, read_source, small_frame
from spark.pipeline import Question, validate
from spark.report import files
from spark.report.export import write_otlp, write_xes
from spark.report.figures import figures_of, select_records
from spark.report.page import Extent
from spark.report.words import Story, count, stories_of, summary, write_stories
from spark.schemas import QUARANTINE, READ, REST, STORY, VIOLATION, WRITER
from spark.session import open_session


def convert(session: SparkSession, paths: Sequence[str], target: str) -> int:
    """Write the records of traces as Parquet; return the number of lines that are no records.

    Args:
        session: A running Spark.
        paths: Directories of runs, runs, nodes of a run or files; every form that Spark reads.
        target: A directory that does not exist yet.

    Raises:
        TraceMissingError: There is no trace at a path.
        AnalysisException: The directory exists.
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


_SMALL_BYTES: Final = 64 * 1024 * 1024
"""Size of traces below which Java's optimising compiler costs more than it saves (250,000 records).
"""


@attrs.frozen(kw_only=True)
class Order:
    """A check of traces to perform, with its options and its output.

    Attributes:
        question: The traces and the options.
        report: Directory of the report; None: no report.
        settings: Spark settings of the user.
        against: Directory of a former report that this one is compared with.
        command: Command line for the report.
        diagrams: Maximal number of drawn violations of each claim.
    """

    question: Question
    report: Path | None = None
    settings: Mapping[str, str] = attrs.field(factory=dict)
    against: Path | None = None
    command: str = ""
    diagrams: int = DIAGRAMS


@attrs.frozen
class Outcome:
    """The result of a check: the findings and the report."""

    findings: Findings
    report: files.Report | None

    @property
    def is_conformant(self) -> bool:
        """Whether every claim is kept and the traces are complete."""
        return self.findings.verdict is Verdict.CONFORMANT

    def as_text(self) -> list[str]:
        """Return the result as lines of text for people."""
        lines = summary(self.findings)
        if self.report is not None:
            lines.append(f"report {self.report.html}")
            count, place = len(self.report.drawings), self.report.html.parent
            lines.append(f"{count} drawings, one per machine: {place}/*.svg")
        return lines

    def as_json(self) -> list[str]:
        """Return the result as lines of JSON: first violations of claims, then the verdict."""
        told = [
            *files.violation_objects(self.findings),
            files.verdict_object(self.findings, self.report),
        ]
        return [json.dumps(part, separators=(",", ":")) for part in told]


def run(order: Order) -> Outcome:
    """Start Spark, and perform a check.

    Raises:
        JavaMissingError: There is no Java that Spark supports.
        TraceMissingError: There is no trace at a path.
        ReportPlaceError: The report cannot be written where it is wanted.
        SparkFailedError: Spark did not start, or a trace is damaged as a file.
        LayoutError: A report is wanted, and the program for the layout of drawings is missing.
    """
    if order.report is not None:
        _make(order.report)
    if order.against is not None:
        files.read_summary(order.against)
    with open_session(order.settings, is_short=is_short(order.question.traces)) as session:
        return carry_out(session, order)


def carry_out(session: SparkSession, order: Order) -> Outcome:
    """Perform a check with a running Spark; the `settings` of the order are ignored.

    Args:
        session: The Spark session.
        order: The check to perform.

    Raises:
        TraceMissingError: There is no trace at a path.
        SparkFailedError: A trace is damaged as a file.
        LayoutError: A report is wanted, and the program for the layout of drawings is missing.
    """
    with report_failures("Spark could not finish"):
        drawn = 1 if order.report is None else order.diagrams
        findings = validate(session, order.question, order.report, drawn)
        if order.report is None:
            return Outcome(findings, None)
        extent = _extent(session, order, findings, order.report)
    return Outcome(findings, files.write_report(findings, order.report, extent))


def _extent(session: SparkSession, order: Order, findings: Findings, report: Path) -> Extent:
    """Compute the content that only a report has."""
    former = None if order.against is None else files.read_summary(order.against)
    traces = order.question.traces
    records = select_records(read_source(session, traces).records)
    # Each line is decoded once, by Python, for all questions.
    records.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        stories = _stories(session, records, findings, report)
        figures = figures_of(session, records, findings.gaps)
    finally:
        records.unpersist()
    return Extent(
        inputs=traces,
        command=order.command,
        made=datetime.now(UTC).isoformat(sep=" ", timespec="seconds"),
        figures=figures,
        stories=stories,
        former=former,
    )


def _stories(
    session: SparkSession, records: DataFrame, findings: Findings, report: Path
) -> Mapping[tuple[str, str, int], Story]:
    """Write the histories of all violations, and return those that the report shows."""
    target = str(report / "stories.parquet")
    if not findings.violations:
        small_frame(session, [], STORY).write.mode("overwrite").parquet(target)
        return {}
    violations = session.read.schema(VIOLATION).parquet(str(report / "violations.parquet"))
    write_stories(records, violations, target)
    return stories_of(session, target, findings.shown)


def convert_traces(traces: tuple[str, ...], target: str, settings: Mapping[str, str]) -> int:
    """Write traces as Parquet; return the number of lines that are no records.

    Args:
        traces: Paths of the traces.
        target: The directory, which must not exist.
        settings: Spark settings of the user.

    Raises:
        JavaMissingError: There is no Java that Spark supports.
        TraceMissingError: There is no trace at a path.
        SparkFailedError: Spark did not start, a trace is damaged as a file, or the target
            exists already.
    """
    with (
        open_session(settings, is_short=is_short(traces)) as session,
        report_failures("Spark could not convert"),
    ):
        return convert(session, traces, target)


_WRITERS: Final = {"otlp": (write_otlp, "span"), "xes": (write_xes, "step")}
"""Formats of exports: their writers, and the counted unit."""

_PIECES: Final = 256
"""Number of pieces of a large trace in exports, so that each fits into the driver's memory."""


def export(traces: tuple[str, ...], form: str, target: Path, settings: Mapping[str, str]) -> str:
    """Write traces in another format; return how much was written, in words.

    Args:
        traces: Paths of the traces.
        form: `otlp` (OpenTelemetry spans) or `xes` (IEEE 1849).
        target: The file.
        settings: Spark settings of the user.

    Raises:
        JavaMissingError: There is no Java that Spark supports.
        TraceMissingError: There is no trace at a path.
        ReportPlaceError: The file cannot be written.
        SparkFailedError: Spark did not start, or a trace is damaged as a file.
    """
    _make(target.parent)
    is_small = is_short(traces)
    write, noun = _WRITERS[form]
    with (
        open_session(settings, is_short=is_small) as session,
        report_failures("Spark could not export"),
    ):
        records = read_source(session, traces).records
        return count(write(records, target, 1 if is_small else _PIECES), noun)


def _make(directory: Path) -> None:
    """Create the directory of the report, to detect errors before Spark starts."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as exc:
        raise ReportPlaceError(str(directory), str(exc.strerror).lower()) from exc


def is_short(traces: Iterable[str]) -> bool:
    """Return whether the traces are small; False for traces on other machines."""
    size = 0
    for trace in traces:
        path = Path(trace)
        files = path.rglob("*") if path.is_dir() else [path]
        if not path.exists():
            return False
        size += sum(file.stat().st_size for file in files if file.is_file())
    return size < _SMALL_BYTES
