"""Check of traces with Spark, from paths of files to findings.

A Python worker checks the files of a folder, mostly those of one process, by the code of `fsm
judge` (`fsm.judge.verdict.judge_folder`). For claims about several processes, workers return
extracts of the records (evidence), which Spark groups by keys, such as the id of a message.
"""

import json
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from pathlib import Path
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType
from pyspark.storagelevel import StorageLevel

from fsm.frozen import restore
from fsm.judge import trace_files
from fsm.judge.claims.catalogue import CLAIMS_JUDGED
from fsm.judge.crossings import skews
from fsm.judge.replay import NodeJudgement, TimelineStep, seconds_of
from fsm.judge.trace_line import CLAIMS as STEP_CLAIMS
from fsm.judge.trace_line import Flaw, Verdict
from fsm.judge.verdict import find_shared, whole_processes
from fsm.machine_list import MACHINES
from fsm.table import Table
from spark import findings
from spark.errors import SparkFailedError
from spark.files import find_files, is_local, part_of, shared_out
from spark.load import small_frame
from spark.schemas import FILE, SAID, VIOLATION, What
from spark.workers.folds import iterating, judging, judging_keys
from specs.claims import CLAIMS
from specs.trace import writer_of

_SAID: Final = f"array<{SAID.simpleString()}>"
_BYTES: Final = 64 * 1024 * 1024
"""Bytes of trace files for each bucket into which the keys of evidence are divided."""

_TASKS_PER_CORE: Final = 4
"""Tasks for each core, so that fast cores get further tasks."""

_TASK_BYTES: Final = 2 * 1024 * 1024
"""Bytes of lines (about 10,000 records) below which a task of its own does not pay."""

_COLUMNS_BYTES: Final = 12
"""Approximate bytes of lines for a byte of columns."""


def judge_processes(
    session: SparkSession,
    folders: Sequence[Sequence[str]],
    buckets: int = 1,
    *,
    is_of_machines: bool = False,
) -> DataFrame:
    """Check the trace of each process by itself.

    Args:
        session: A running Spark.
        folders: Files by folder, as `find_files` returned them.
        buckets: Number of buckets for the keys of each claim about several processes.
        is_of_machines: Whether only the claims about state machines are checked.

    Returns:
        Rows of SAID.
    """
    fold = iterating(judging(buckets, is_of_machines=is_of_machines), _SAID)
    local: list[Sequence[str]] = []
    remote: list[Sequence[str]] = []
    for files_there in folders:
        (local if all(map(is_local, files_there)) else remote).append(files_there)
    rows = [_rows_for_workers(session, local)] if local else []
    rows += [_read_by_spark(session, remote)] if remote else []
    files = reduce(DataFrame.unionByName, rows)
    row = F.struct("folder", "name", "content")
    return files.select(fold(row).alias("said")).select(F.inline("said"))


def _rows_for_workers(session: SparkSession, folders: Iterable[Sequence[str]]) -> DataFrame:
    """Return rows of folder and name, in tasks of about the same size."""
    cores = session.sparkContext.defaultParallelism
    sizes = [(sum(map(_size, files)), files) for files in folders]
    most = sum(size for size, _ in sizes) // _TASK_BYTES + 1
    tasks = [
        [{"folder": files[0], "name": name} for files in task for name in files]
        for task in shared_out(sizes, min(cores * _TASKS_PER_CORE, most))
    ]
    tasks_as_json = F.array(*(F.lit(json.dumps(rows)) for rows in tasks))
    rows_of_task = F.from_json(tasks_as_json[F.col("id").cast("int")], ArrayType(FILE))
    frame = session.range(0, len(tasks), 1, len(tasks)).select(F.inline(rows_of_task))
    return frame.withColumn("content", F.lit(None).cast("binary"))


def _size(name: str) -> int:
    """Return the approximate bytes of lines of a file."""
    size = Path(name).stat().st_size
    return size if name.endswith(".jsonl") else size * _COLUMNS_BYTES


def _read_by_spark(session: SparkSession, folders: Iterable[Sequence[str]]) -> DataFrame:
    """Return rows of folder, name and content; all files of a folder in one task."""
    first = {name: files[0] for files in folders for name in files}
    name = F.regexp_replace("path", "^file:/+", "/")
    files = session.read.format("binaryFile").load([*first]).select(name.alias("name"), "content")
    rows = [{"folder": folder, "name": name} for name, folder in first.items()]
    placed = files.join(F.broadcast(small_frame(session, rows, FILE)), on="name", how="inner")
    return (
        placed.select("folder", "name", "content")
        .repartition(session.sparkContext.defaultParallelism * _TASKS_PER_CORE, "folder")
        .sortWithinPartitions("folder", "name")
    )  # fmt: skip


def judge_across(
    session: SparkSession, rows: DataFrame, whole: AbstractSet[str | None]
) -> DataFrame:
    """Check the claims about several processes, from the evidence of all processes, key by key.

    Args:
        session: A running Spark.
        rows: The rows of `judge_processes`.
        whole: Runtimes with complete traces.

    Returns:
        Rows of SAID: findings.
    """
    fold = iterating(judging_keys(whole), _SAID)
    evidence = rows.where(F.col("what") == What.EVIDENCE.value)
    by_bucket = (
        evidence.repartition(session.sparkContext.defaultParallelism, "claim", "place")
        .sortWithinPartitions("claim", "place")
    )  # fmt: skip
    row = F.struct(*SAID.fieldNames())
    return by_bucket.select(fold(row).alias("said")).select(F.inline("said"))


_SHOWN: Final = 20
"""Maximal number of shown quarantined lines and gaps; the files of the report have all."""

_ACCOUNTED: Final = (
    What.PROCESS.value, What.SILENT.value, What.UNREADABLE.value, What.ASIDE.value,
    What.UNREAD.value,
)  # fmt: skip
_BROKEN: Final = (What.STEP.value, What.FINDING.value)
_MACHINES: Final = (What.ENTITIES.value, What.USED.value, What.STAY.value)


@attrs.frozen(kw_only=True)
class Question:
    """The traces to check, and the options of the check.

    Attributes:
        traces: Directories of runs, runs, nodes of a run or files; every form that Spark reads.
        is_quarantine_allowed: Whether lines that are no records leave the verdict alone.
        untraced: Addresses or domains of participants without a trace.
        manifest: The participants; None: unknown.
        is_of_machines: Whether only the claims about state machines are checked, and no
            participants.
    """

    traces: tuple[str, ...]
    is_quarantine_allowed: bool = False
    untraced: tuple[str, ...] = ()
    manifest: trace_files.Manifest | None = None
    is_of_machines: bool = False


def validate(
    session: SparkSession, question: Question, report: Path | None = None, shown: int = 1
) -> findings.Findings:
    """Check traces by the claims of the protocol, and return all findings.

    Args:
        session: A running Spark.
        question: The traces and the options.
        report: Directory for `violations.parquet` and `quarantine`; None: no files.
        shown: Maximal number of returned violations of each claim.

    Raises:
        TraceMissingError: There is no trace at a path.
        SparkFailedError: A file of a trace cannot be read.
    """
    parts = map(part_of, find_files(session, question.traces))
    folders = [[part.name for part in folder] for folder in trace_files.folders_of(parts)]
    while True:
        size = sum(
            Path(name).stat().st_size for files in folders for name in files if is_local(name)
        )
        rows = judge_processes(
            session, folders, max(1, size // _BYTES), is_of_machines=question.is_of_machines
        )
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            accounts = rows.where(F.col("what").isin(*_ACCOUNTED)).collect()
            for row in accounts:
                if row["what"] == What.UNREADABLE:
                    raise SparkFailedError(row["expected"])
            again = _join_folders(folders, accounts)
            if len(again) == len(folders):
                return _Judged(session, question, rows, accounts).ask(report, shown)
            folders = again
        finally:
            rows.unpersist()


def _join_folders(folders: list[list[str]], accounts: Iterable[SparkRow]) -> list[list[str]]:
    """Join folders with records of the same process."""
    told: dict[str, list[tuple[str, str]]] = {files[0]: [] for files in folders}
    for row in accounts:
        if row["what"] == What.PROCESS:
            told[row["about"]].append((row["run"], row["node"]))
    joined = dict(enumerate(folders))
    for together in find_shared([*told.values()]):
        joined[min(together)] = [name for at in sorted(together) for name in folders[at]]
        for at in together - {min(together)}:
            del joined[at]
    return [*joined.values()]


_SILENT: Final = frozenset({Flaw.NO_START, Flaw.NO_END})
"""The flaws of a node that has a file but no record."""


class _Judged:
    """Results of the workers' checks as a DataFrame, and the queries that make findings of them."""

    def __init__(
        self,
        session: SparkSession,
        asked: Question,
        said: DataFrame,
        accounts: Iterable[SparkRow],
    ) -> None:
        told = sorted(accounts, key=lambda row: (row["run"] or "", row["node"] or ""))
        self._asked = asked
        self._said = said
        self._accounts = [
            restore(b64decode(row["data"]), findings.Account)
            for row in told
            if row["what"] == What.PROCESS
        ]
        self._summaries = [account.summary for account in self._accounts]
        self._lost = trace_files.unsent(self._summaries)
        whole = whole_processes(self._summaries) - set(self._lost)
        violations = said.where(F.col("what").isin(*_BROKEN))
        self._broken = violations.unionByName(judge_across(session, said, whole))
        self._silent = [(row["run"], row["node"]) for row in told if row["what"] == What.SILENT]
        aside = [row for row in told if row["what"] == What.ASIDE]
        self._aside: Counter[tuple[str, str]] = Counter()
        for row in aside:
            self._aside[row["run"], row["node"]] += row["ln"]
        self._unread = sum(row["ln"] for row in told if row["what"] == What.UNREAD)
        self._bad = said.where(F.col("what") == What.BAD.value).select(
            F.col("about").alias("file"), F.col("place").alias("line"),
            F.col("expected").alias("reason"), F.col("data").alias("text"),
        )  # fmt: skip

    def ask(self, report: Path | None, shown: int) -> findings.Findings:
        """Run the queries, and return findings with at most `shown` violations of each claim."""
        broken = self._broken.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            if report is not None:
                self._write(broken, report)
            return self._ask(broken, shown)
        finally:
            broken.unpersist()

    def _write(self, broken: DataFrame, report: Path) -> None:
        violations = _as_violations(broken).select(*VIOLATION.fieldNames())
        violations.write.mode("overwrite").parquet(str(report / "violations.parquet"))
        self._bad.coalesce(1).write.mode("overwrite").json(str(report / "quarantine"))

    def _ask(self, broken: DataFrame, shown: int) -> findings.Findings:
        machine = F.get_json_object("data", "$.machine").alias("machine")
        counts = broken.groupBy("claim", "run", "node", machine).agg(F.count("*").alias("times"))
        told = counts.collect()
        by_claim, by_machine = _sum(told, "claim"), _sum(told, "machine")
        violations = sum(by_claim.values())
        quarantined = self._unread
        bad_lines = self._bad.orderBy("file", "line").limit(_SHOWN).collect() if quarantined else []
        nodes = self._nodes(_sum(told, "run", "node"))
        gaps, missing = self._gaps()
        machines = _machines(self._said.where(F.col("what").isin(*_MACHINES)), by_machine)
        return findings.Findings(
            verdict=findings.judge_run(
                nodes,
                violations,
                missing,
                quarantined,
                is_quarantine_allowed=self._asked.is_quarantine_allowed,
            ),
            events=sum(node.records for node in nodes),
            entities=sum(machine.entities for machine in machines),
            violations=violations,
            quarantined=quarantined,
            by_claim={
                name: by_claim[claim,]
                for claim, name in claim_names(is_of_machines=self._asked.is_of_machines)
            },
            nodes=nodes,
            machines=machines,
            shown=_first(broken, shown) if violations else [],
            gaps=gaps,
            bad_lines=[trace_files.BadLine(*row) for row in bad_lines],
        )

    def _nodes(self, violations: Mapping[tuple[str, ...], int]) -> list[findings.NodeFindings]:
        clocks = skews(
            {(summary.run, summary.node): summary.crossings for summary in self._summaries}
        )
        told: set[tuple[str, str] | None] = {("", summary.node) for summary in self._summaries}
        told |= {(summary.run, summary.node) for summary in self._summaries}
        told |= {writer_of(file) for account in self._accounts for file in account.files}
        silent = [writer for writer in self._silent if writer not in told]
        nodes = [(account.node, self._count_bad_lines(account)) for account in self._accounts]
        nodes += [(NodeJudgement(*writer, 0, _SILENT), 0) for writer in silent]
        found: list[findings.NodeFindings] = []
        for node, quarantined in nodes:
            at = node.run, node.node
            found.append(
                findings.NodeFindings(
                    run=node.run, node=node.node, verdict=Verdict.INCOMPLETE, records=node.records,
                    missing=node.missing, doubled=node.doubled, quarantined=quarantined,
                    violations=violations.get(at, 0), flaws=node.flaws, skew=clocks.get(at),
                )
            )  # fmt: skip
        allowed = self._asked.is_quarantine_allowed
        judged = (
            attrs.evolve(item, verdict=findings.judge_node(item, is_quarantine_allowed=allowed))
            for item in found
        )
        return sorted(judged, key=lambda node: (node.node, node.run))

    def _count_bad_lines(self, one: findings.Account) -> int:
        """Count the lines that are no records in the files of a process."""
        # A folder may name the run, or not.
        aside = self._aside[one.node.run, one.node.node] + self._aside["", one.node.node]
        return aside + one.bad

    def _gaps(self) -> tuple[list[trace_files.Missing], int]:
        """Return the gaps in the traces, and how many of them do not belong to a node."""
        rows = self._said.where(F.col("what").isin(What.FLAW.value, What.UNANSWERED.value))
        answers = sum(account.unanswered for account in self._accounts)
        is_any = any(account.gaps or account.unanswered for account in self._accounts)
        gap_rows = rows.orderBy("run", "node", "ln").limit(_SHOWN).collect() if is_any else []
        others = [*self._lost.values()]
        asked = self._asked
        others += trace_files.untraced_participants(self._summaries, asked.untraced, asked.manifest)
        gaps = [
            trace_files.Missing(row["run"], row["node"], row["ln"], row["expected"])
            for row in gap_rows
        ]
        return [*gaps, *others], answers + len(others)


def claim_names(*, is_of_machines: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the name of each checked claim in the rows of results, and its name for people."""
    yield from ((claim.value, claim.value) for claim in STEP_CLAIMS)
    if not is_of_machines:
        yield from ((claim, CLAIMS[claim].name) for claim in CLAIMS_JUDGED)


def _sum(counts: Iterable[SparkRow], *names: str) -> Counter[tuple[str, ...]]:
    total: Counter[tuple[str, ...]] = Counter()
    for row in counts:
        total[tuple(row[name] for name in names)] += row["times"]
    return total


def _machines(
    folded: DataFrame, violations: Mapping[tuple[str, ...], int]
) -> list[findings.MachineUse]:
    """Return the statistics of each state machine."""
    by = ("what", "key", "about", "place", "data")
    rows = folded.groupBy(*by).agg(F.sum("ln").alias("times")).collect()
    entities: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    used: Counter[tuple[str, findings.Row]] = Counter()
    stays: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for row in rows:
        machine, times = row["key"], row["times"]
        if row["what"] == What.ENTITIES:
            entities[machine] += times
        elif row["what"] == What.USED:
            steps[machine] += times
            used[machine, findings.Row(*json.loads(row["data"]))] += times
        else:
            stays[machine, row["about"]][row["place"]] += times
    return [
        findings.MachineUse(
            machine=name,
            steps=steps[name],
            entities=entities[name],
            violations=violations.get((name,), 0),
            used={row: used[name, row] for row in _rows(MACHINES.get(name))},
            dwells=list(_dwells(stays, name)),
            undeclared={
                row: times
                for (machine, row), times in used.items()
                if machine == name and row not in _rows(MACHINES.get(name))
            },
        )
        for name in [*MACHINES, *sorted(set(entities) - set(MACHINES))]
    ]


def _rows(table: Table | None) -> list[findings.Row]:
    rows = () if table is None else table.rows
    return [findings.Row(row.old, row.trigger.value, row.target.value) for row in rows]


def _dwells(
    stays: Mapping[tuple[str, str], Counter[int]], machine: str
) -> Iterator[findings.Dwell]:
    table = MACHINES.get(machine)
    for state in () if table is None else table.states:
        times = stays.get((machine, state.value))
        if times:
            median, p95, longest = (seconds_of(_quantile(times, part)) for part in (0.5, 0.95, 1))
            yield findings.Dwell(state.value, times.total(), median, p95, longest)


def _quantile(times: Counter[int], part: float) -> int:
    """Return the quantile of counted numbers: the least that a share (`part`) does not exceed."""
    left = part * times.total()
    for number in sorted(times):
        left -= times[number]
        if left <= 0:
            return number
    return max(times)


def _as_violations(broken: DataFrame) -> DataFrame:
    """Return rows of VIOLATION with `rank`, the index of the claim."""
    ranks = F.array(*(F.lit(claim) for claim, _ in claim_names()))
    told = broken.withColumn("step", F.from_json("data", _DATA))
    fields = [F.col(f"step.{name}").alias(name) for name in _DATA.fieldNames()]
    rank = F.array_position(ranks, F.col("claim")).alias("rank")
    return told.select("claim", "run", "node", "ln", "about", "expected", *fields, rank)


_DATA: Final = StructType([field for field in VIOLATION.fields if field.name not in SAID.names])
"""The fields of a violating transition that results store as JSON."""


def _first(broken: DataFrame, count: int) -> list[findings.Broken]:
    """Return the first violations of each claim, in the order of the claims."""
    place = ("run", "node", "ln", "about", "expected")
    at = F.row_number().over(Window.partitionBy("claim").orderBy(*place))
    rows = _as_violations(broken).withColumn("at", at).where(F.col("at") <= count)
    names = dict(claim_names())
    told = rows.orderBy("rank", "at").collect()
    return [violation_of(row.asDict(recursive=True), names[row["claim"]]) for row in told]


def violation_of(row: Mapping[str, Any], claim: str) -> findings.Broken:  # type: ignore[explicit-any] # of Spark
    """Convert a row with the schema VIOLATION to a violation.

    Args:
        row: Its fields.
        claim: Name of the claim for people.
    """
    plain = {name: row[name] for name in ("run", "node", "ln", "about", "expected")}
    if row.get("machine") is None:
        return findings.Broken(claim=claim, **plain)
    step = findings.Step(
        machine=row["machine"],
        key=row["about"],
        actor=row["actor"],
        why=row["why"],
        record=TimelineStep(**row["record"]),
        before=[TimelineStep(**told) for told in row["before"]],
    )
    return findings.Broken(claim=claim, **plain, step=step)
