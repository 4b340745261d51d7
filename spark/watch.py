"""Check traces while processes write them, and record the violations on disk.

The files have each violation once, even if the check is interrupted and started again.
`violations.jsonl` grows by one line for each violation. `progress.json` states the last complete
round, and the length of `violations.jsonl` after this round. Later bytes belong to an unfinished
round; they are removed, and Spark repeats the round from its checkpoint.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from inspect import getsource
from pathlib import Path
from pkgutil import walk_packages
from typing import Final, TypeAlias

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from fsm import judge
from fsm.judge.trace_line import Verdict
from fsm.machine_list import MACHINES, fingerprints
from spark.errors import WatchStateError, report_failures
from spark.findings import Broken, Findings
from spark.pipeline import Question, claim_names, validate, violation_of
from spark.report.files import verdict_object, violation_object
from spark.report.words import broken_line, claim_label, count, summary
from spark.schemas import SAID, What
from spark.session import open_session
from spark.stream import AcrossFold, FolderFold, TraceSource, sizes_of
from specs.jsonvalue import visible

SCHEMA: Final = "protofly.watch/1"


def _judge_hash() -> str:
    """Return a hash of the judging code: only the same code can read its checkpoint."""
    modules = sorted(module.name for module in walk_packages(judge.__path__, "fsm.judge."))
    sources = [getsource(import_module(name)) for name in ("fsm.frozen", "spark.stream", *modules)]
    return sha256(
        "".join([*sources, *sorted(fingerprints(MACHINES.values()))]).encode()
    ).hexdigest()


JUDGE: Final = _judge_hash()

_Id: TypeAlias = tuple[str | int | None, ...]
_IDENTITY: Final = ("claim", "run", "node", "ln", "about", "expected", "machine")


@attrs.frozen(kw_only=True)
class Seen:
    """Progress of the check of one process.

    Attributes:
        unjudged: Reason why its records are not checked any more, as half a sentence; empty: they
            are checked.
    """

    folder: str
    run: str
    node: str
    records: int
    is_running: bool
    unjudged: str


@attrs.define(kw_only=True)
class Progress:
    """Progress of the command `watch`, as it is stored on disk.

    Attributes:
        traces: The directory that is watched.
        judge: Hash of the judging code (`JUDGE`).
        round: Number of the last round; -1: none yet.
        length: Bytes of `violations.jsonl` up to that round.
        bad: Lines that are no records.
        processes: By folder, run and node.
    """

    traces: str
    judge: str = JUDGE
    round: int = -1
    length: int = 0
    bad: int = 0
    processes: dict[tuple[str, str, str], Seen] = attrs.field(factory=dict)

    @property
    def records(self) -> int:
        """Number of checked records of all processes."""
        return sum(process.records for process in self.processes.values())

    @property
    def running(self) -> int:
        """Number of processes that have not ended yet."""
        return sum(process.is_running for process in self.processes.values())

    @property
    def unjudged(self) -> list[Seen]:
        """Processes whose records are no longer judged."""
        return [process for process in self.processes.values() if process.unjudged]


class Ledger:
    """The files of violations and progress on disk; each violation is recorded once.

    Attributes:
        progress: Progress of the command `watch`.
    """

    def __init__(self, directory: Path, traces: str) -> None:
        """Continue with the existing files.

        Args:
            directory: Directory of the files; made if it does not exist.
            traces: The directory that is watched.

        Raises:
            WatchStateError: The directory cannot be used, or is of another watch or version.
        """
        self._file = directory / "violations.jsonl"
        self._place = directory / "progress.json"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.progress = self._read(traces)
            if self.progress.traces != traces:
                reason = f"it is of a watch of {self.progress.traces}"
                raise WatchStateError(str(directory), reason)
            if self.progress.judge != JUDGE:
                reason = "it is of a watch by another version of this program"
                raise WatchStateError(str(directory), reason)
            self._known = set(self._cut_off())
            self._write()
        except (OSError, ValueError, TypeError, KeyError) as exc:
            raise WatchStateError(str(directory), str(exc)) from exc

    @property
    def violations(self) -> int:
        """Number of violations so far."""
        return len(self._known)

    @property
    def verdict(self) -> Verdict:
        """The verdict so far, without claims about the ends of processes."""
        if self._known:
            return Verdict.VIOLATIONS
        is_damaged = self.progress.bad or self.progress.unjudged
        return Verdict.INCOMPLETE if is_damaged else Verdict.OPEN

    def add(
        self,
        number: int,
        violations: Iterable[Broken],
        processes: Iterable[Seen] = (),
        bad: int = 0,
    ) -> list[Broken]:
        """Write the violations and progress of a round; ignore a repeated round.

        Args:
            number: Number of the round.
            violations: Violations of the round.
            processes: Processes with new records.
            bad: Number of new lines that are no records.

        Returns:
            The violations that were not recorded before.
        """
        progress = self.progress
        if number <= progress.round:
            return []
        new = {
            _identity(violation): violation
            for violation in violations
            if _identity(violation) not in self._known
        }
        objects = map(violation_object, new.values())
        text = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in objects)
        with self._file.open("ab") as file:
            file.truncate(progress.length)
            progress.length += file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        self._known.update(new)
        progress.round, progress.bad = number, progress.bad + bad
        for process in processes:
            progress.processes[process.folder, process.run, process.node] = process
        self._write()
        return [*new.values()]

    def _read(self, traces: str) -> Progress:
        if not self._place.exists():
            return Progress(traces=traces)
        kept = json.loads(self._place.read_bytes())
        processes = [Seen(**each) for each in kept.pop("processes")]
        del kept["schema"], kept["verdict"]
        by_name = {(process.folder, process.run, process.node): process for process in processes}
        return Progress(**{"judge": "", **kept}, processes=by_name)

    def _write(self) -> None:
        kept = attrs.asdict(self.progress, recurse=False)
        kept["verdict"] = self.verdict.value
        kept["processes"] = [attrs.asdict(process) for process in self.progress.processes.values()]
        new = self._place.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"schema": SCHEMA, **kept}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._place)

    def _cut_off(self) -> Iterator[_Id]:
        """Remove the output of an unfinished round; yield the remaining violations."""
        self._file.touch()
        os.truncate(self._file, self.progress.length)
        with self._file.open("rb") as file:
            for line in file:
                known = json.loads(line)
                yield tuple(known.get(name) for name in _IDENTITY)


def _identity(broken: Broken) -> _Id:
    machine = None if broken.step is None else broken.step.machine
    return (
        broken.claim, broken.run, broken.node, broken.ln, broken.about, broken.expected, machine
    )  # fmt: skip


_INTERVAL: Final = "1 second"
"""Least time between the starts of rounds."""

_LOOK: Final = 0.5
"""Seconds between two checks of the sizes of the files, and of the query."""

_SETTINGS: Final = {
    # Large state is kept in files, and only changes are copied.
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}  # fmt: skip


@attrs.frozen
class Watched:
    """The result of the command `watch`.

    Attributes:
        violations: Number of violations.
        findings: Findings about everything at the end; None: the watch was interrupted.
    """

    violations: int
    findings: Findings | None

    @property
    def is_kept(self) -> bool:
        """Whether no claim is broken, and at the end nothing is missing."""
        if self.findings is not None:
            return not self.violations and self.findings.verdict is Verdict.CONFORMANT
        return not self.violations

    def as_text(self) -> list[str]:
        """Return the result as lines of text for people."""
        if self.findings is not None:
            return summary(self.findings)
        return [f"interrupted: {count(self.violations, 'violation')} so far"]

    def as_json(self) -> list[str]:
        """Return the result as one line of JSON."""
        if self.findings is not None:
            return [json.dumps(verdict_object(self.findings), separators=(",", ":"))]
        return []


def watch(
    traces: Path,
    to: Path,
    violation: Callable[[str], None],
    progress: Callable[[str], None],
    *,
    as_json: bool = False,
    until_idle: float | None = None,
    untraced: tuple[str, ...] = (),
    settings: Mapping[str, str],
) -> Watched:
    """Check traces while processes write them, until interrupted or idle.

    Args:
        traces: The directory of runs.
        to: Directory of violations and progress, where an interrupted watch continues.
        violation: Called with a line for each violation, once.
        progress: Called with a line after each round.
        as_json: Whether the lines of violations are JSON.
        until_idle: Seconds without a new record after which the watch ends, and everything is
            judged as `validate` does; None: it ends when it is interrupted.
        untraced: Addresses or domains of participants without a trace.
        settings: Spark settings of the user.

    Raises:
        JavaMissingError: There is no Java that Spark supports.
        SparkFailedError: Spark did not start, or failed.
        WatchStateError: The directory for the progress cannot be used, or is of another watch or
            version.
    """
    directory = traces.resolve()
    ledger = Ledger(to, str(directory))
    with (
        _interrupts() as interrupted,
        open_session(_SETTINGS | dict(settings), is_short=True, log=to / "log") as session,
    ):
        with report_failures("Spark could not watch"):
            rounds = _Rounds(ledger, violation, progress, as_json=as_json)
            query = _stream(session, directory, to, rounds)
            try:
                is_over = _wait_for_end(query, directory, until_idle, interrupted)
            finally:
                query.stop()
        findings = None
        if is_over:
            with report_failures("Spark could not finish"):
                findings = _judge_all(
                    session, Question(traces=(str(traces),), untraced=untraced), to, rounds
                )
    return Watched(ledger.violations, findings)


def _stream(session: SparkSession, traces: Path, to: Path, rounds: "_Rounds") -> StreamingQuery:
    """Start the Spark stream that checks each process, and then the claims about several ones."""
    cores = session.sparkContext.defaultParallelism
    session.dataSource.register(TraceSource)
    pieces = (
        session.readStream.format(TraceSource.name())
        .option("path", str(traces))
        .option("tasks", cores)
        .load()
    )
    of_folders = pieces.groupBy("folder").transformWithState(
        FolderFold(cores), SAID, outputMode="Append", timeMode="None"
    )
    is_evidence = F.col("what") == What.EVIDENCE.value
    keyed = of_folders.withColumn(
        "bucket", F.when(is_evidence, F.concat_ws(" ", "claim", "place")).otherwise("")
    )
    judged = keyed.groupBy("bucket").transformWithState(
        AcrossFold(), SAID, outputMode="Append", timeMode="None"
    )
    return (
        judged.writeStream.foreachBatch(rounds.take)
        .option("checkpointLocation", str(to / "checkpoint"))
        .trigger(processingTime=_INTERVAL)
        .start()
    )


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Provide an event that SIGINT and SIGTERM set, instead of ending the process at once."""
    interrupted = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: interrupted.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for_end(
    query: StreamingQuery, traces: Path, until_idle: float | None, interrupted: threading.Event
) -> bool:
    """Wait for the end; return whether the traces were idle."""
    sizes, since = sizes_of(traces), time.monotonic()
    while not interrupted.wait(_LOOK):
        if not query.isActive:
            query.awaitTermination()
        now = sizes_of(traces)
        if now != sizes:
            sizes, since = now, time.monotonic()
        elif until_idle is not None and sizes and time.monotonic() - since >= until_idle:
            query.processAllAvailable()
            return True
    return False


class _Rounds:
    """Receiver of the results of the stream, which records and reports them round by round."""

    def __init__(
        self,
        ledger: Ledger,
        violation: Callable[[str], None],
        progress: Callable[[str], None],
        *,
        as_json: bool,
    ) -> None:
        self.ledger = ledger
        self._violation = violation
        self._progress = progress
        self._as_json = as_json
        self._names = dict(claim_names())

    def take(self, frame: DataFrame, number: int) -> None:
        """Process the rows of a round; a repeated round changes nothing."""
        rows = frame.collect()
        broken = [
            violation_of(row.asDict() | json.loads(row["data"] or "{}"), self._names[row["claim"]])
            for row in rows
            if row["what"] in _BROKEN
        ]
        told = (row["data"] for row in rows if row["what"] == What.PROCESS)
        processes = [Seen(**json.loads(data)) for data in told]
        bad = sum(row["what"] == What.BAD for row in rows)
        self.add(number, broken, processes, bad)

    def add(
        self, number: int, broken: Iterable[Broken], processes: Iterable[Seen] = (), bad: int = 0
    ) -> None:
        """Record the violations of a round, and report the new ones."""
        for new in self.ledger.add(number, broken, processes, bad):
            text = visible(f"{claim_label(new.claim)}: {broken_line(new)}")
            as_json = json.dumps(violation_object(new), separators=(",", ":"))
            self._violation(as_json if self._as_json else text)
        self._progress(self._line())

    def _line(self) -> str:
        progress = self.ledger.progress
        parts = [
            f"{count(len(progress.processes), 'process')} ({progress.running} running)",
            count(progress.records, "record"),
            count(self.ledger.violations, "violation"),
        ]
        if progress.bad:
            parts.append(count(progress.bad, "line") + " that cannot be read")
        if progress.unjudged:
            parts.append(count(len(progress.unjudged), "process") + " no longer judged")
        return f"{self.ledger.verdict}: {', '.join(parts)}"


_BROKEN: Final = frozenset({What.STEP.value, What.FINDING.value})


def _judge_all(session: SparkSession, question: Question, to: Path, rounds: _Rounds) -> Findings:
    """Check all traces from the beginning, and report the violations that are new."""
    findings = validate(session, question, to)
    names = dict(claim_names())
    rows = session.read.parquet(str(to / "violations.parquet")).toLocalIterator()
    broken = [violation_of(row.asDict(recursive=True), names[row["claim"]]) for row in rows]
    rounds.add(rounds.ledger.progress.round + 1, broken)
    return findings
