"""Functions that Spark's Python workers run: decoding of lines, and the checks of `fsm.judge`.

Each function is an iterator over Arrow arrays, with one output row per input row, as Spark
requires. The results of `judge` and `judge_keys` are returned with the rows of a batch, at any row.
They hold a batch back until the next one comes, so that a row is left for the results of the end.
"""

import gc
import json
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final, TypeAlias, cast
from zlib import crc32

import attrs
import orjson
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.udf import UserDefinedFunction

from fsm.frozen import pickle_state
from fsm.judge.claims.fold import Datum, Evidence, Finding
from fsm.judge.process import ProcessJudgement, judge_across
from fsm.judge.replay import Violation
from fsm.judge.trace_files import BadLine, Part, ProcessSummary, TraceFileError
from fsm.judge.trace_line import BadTraceLineError, TraceLine, read_line
from fsm.judge.verdict import FolderJudgement, judge_folder
from spark.files import NotesPart, part_of
from spark.findings import Account
from spark.schemas import DECODED, SAID, What
from spark.workers.columns import UndecidedError
from spark.workers.screen import screen_machines
from specs.trace import writer_of

_JUDGED: Final = tuple(field.name for field in attrs.fields(TraceLine))
_VALUES: Final = attrgetter(*_JUDGED)
_DECODED: Final = to_arrow_type(DECODED)
_SAID: Final = to_arrow_type(SAID)
_NOTHING: Final = (None,) * len(_JUDGED)

WorkerRow: TypeAlias = dict[str, str | int | None]
_Item: TypeAlias = tuple[str, int, int, str, tuple[Datum, ...]]
_Batches: TypeAlias = Iterator[pa.Array]


def iterating(function: Callable[[_Batches], _Batches], gives: str) -> UserDefinedFunction:
    """Wrap a function as a Spark column function that runs once for each partition.

    `mapInArrow` would do the same, but needs pandas, which nothing here uses.

    Args:
        function: The function for the workers.
        gives: Type of its result, as Spark spells it.
    """
    # The stubs want the kind of function named, which the function itself warns of.
    column = arrow_udf(function, gives)  # type: ignore[call-overload]
    # Otherwise the optimizer may run it twice: for a filter, and for its result.
    return cast("UserDefinedFunction", column).asNondeterministic()


_SHOWN: Final = 1000
"""Number of kept bytes of a line that is no record."""


def decode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Read lines, each with its bytes and the piece of its file, as the reference judge does."""
    _collect_seldom()
    piece, position = None, 0
    for batch in batches:
        rows = []
        for line, at in zip(*(column.to_pylist() for column in batch.flatten()), strict=True):
            position = position + 1 if at == piece else 0
            piece = at
            rows.append((*_decode(line), position))
        columns = zip(*rows, strict=True) if rows else ((),) * len(_DECODED)
        arrays = [pa.array(each, field.type) for each, field in zip(columns, _DECODED, strict=True)]
        yield pa.StructArray.from_arrays(arrays, fields=list(_DECODED))


def _decode(line: bytes) -> tuple[str | int | float | None, ...]:
    try:
        record = read_line(line)
    except BadTraceLineError as exc:
        return (*_NOTHING, exc.reason, line[:_SHOWN].decode(errors="replace"))
    return (*_VALUES(record), None, None)


def judging(buckets: int, *, is_of_machines: bool = False) -> Callable[[_Batches], _Batches]:
    """Return the worker function that checks each process by itself.

    Args:
        buckets: Number of buckets for the keys of each fold across processes.
        is_of_machines: Whether only the claims on machines are judged.
    """

    def judge(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Judge the processes of folders: rows of folder, name, content, folder by folder."""
        _collect_seldom()
        return _with_one_held(batches, _Folders(buckets, is_of_machines=is_of_machines))

    return judge


def judging_keys(whole: AbstractSet[str | None]) -> Callable[[_Batches], _Batches]:
    """Return the worker function that checks the claims about several processes.

    Args:
        whole: Runtimes with complete traces.
    """

    def judge_keys(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Judge evidence, sorted by fold and bucket."""
        _collect_seldom()
        return _with_one_held(batches, _Buckets(whole))

    return judge_keys


def _with_one_held(
    batches: Iterator[pa.Array], folder: "_Folders | _Buckets"
) -> Iterator[pa.Array]:
    """Take every row of every batch; results of the end are returned with the last batch."""
    held = 0
    for batch in batches:
        if held:
            yield _make_array(held, folder.said)
            folder.said = []
        folder.take(batch)
        held = len(batch)
        if not held:
            yield _make_array(0, [])
    if held:
        folder.end()
        yield _make_array(held, folder.said)


def _make_array(length: int, said: Sequence[WorkerRow]) -> pa.Array:
    """Return an array of a length, over which the rows are distributed."""
    share = -(-len(said) // length) if length else 0
    rows = [said[place * share : (place + 1) * share] for place in range(length)]
    return pa.array(rows, pa.list_(_SAID))


class _Folders:
    """Checks the processes of one folder after the other, and collects the results.

    Attributes:
        said: Rows that were not returned yet.
    """

    def __init__(self, buckets: int, *, is_of_machines: bool) -> None:
        self.said: list[WorkerRow] = []
        self._is_of_machines = is_of_machines
        self._buckets = buckets
        self._at: str | None = None
        self._parts: list[Part] = []
        self._machines = _MachineUse()

    def take(self, batch: pa.Array) -> None:
        for row in batch.to_pylist():
            if row["folder"] != self._at:
                self._judge()
                self._at = row["folder"]
            self._parts.append(part_of(row["name"], row["content"]))

    def end(self) -> None:
        self._judge()
        self.said += self._machines.rows()

    def _judge(self) -> None:
        parts, self._parts = self._parts, []
        try:
            if self._is_of_machines and self._is_screened(parts):
                return
            judged = judge_folder(parts)
            if self._is_of_machines:
                judged = attrs.evolve(judged, processes=[*map(_machines_of, judged.processes)])
            self.said += _of_folder(self._at or "", parts, judged, self._buckets)
        except TraceFileError as exc:
            self.said.append(row_of(What.UNREADABLE, expected=str(exc)))
        else:
            for process in judged.processes:
                self._machines.add(process)

    def _is_screened(self, parts: Sequence[Part]) -> bool:
        """Check the state machines of a folder by columns; return whether that was possible."""
        try:
            judged = screen_machines(parts)
        except UndecidedError:
            return False
        self.said += _of_process(judged, self._at or "", [part.name for part in parts], 0)
        self._machines.add(judged)
        return True


def _machines_of(judged: ProcessJudgement) -> ProcessJudgement:
    """Return the results for a process without those that are not about state machines."""
    before = judged.summary
    summary = ProcessSummary(before.run, before.node, is_whole=before.is_whole)
    return attrs.evolve(judged, summary=summary, findings=(), evidence=(), unanswered=())


_SELDOM: Final = (100_000, 50, 50)
"""Thresholds of the cyclic garbage collector: a judge keeps most of what it makes (a fifth of its
time was spent there)."""


def _collect_seldom() -> None:
    """Let the garbage collector run rarely, and not in modules, as PySpark does after each task."""
    gc.freeze()
    gc.set_threshold(*_SELDOM)


_UNSAID: Final = dict.fromkeys(field.name for field in _SAID)


def row_of(what: What, **fields: str | int | None) -> WorkerRow:
    """Make a row with the schema SAID; fields that are not given are empty."""
    return _UNSAID | {"what": what.value} | fields


def _of_folder(
    at: str, parts: Iterable[Part], judged: FolderJudgement, buckets: int
) -> Iterator[WorkerRow]:
    reading = judged.reading
    bad_lines: Counter[str] = Counter()
    for bad in reading.bad:
        bad_lines[bad.file] += 1
        yield of_bad_line(bad)
    if reading.bad:
        yield row_of(What.UNREAD, ln=len(reading.bad))
    silent = {writer for writer, _, has_record in reading.named if not has_record}
    silent.update(each for part in parts if isinstance(part, NotesPart) for each in part.silent())
    for run, node in silent:
        yield row_of(What.SILENT, run=run, node=node)
    names = {part.name for part in parts}
    # Lines that `convert` set aside are of the process after whose folder their file was named.
    for file, times in bad_lines.items():
        if file not in names and (writer := writer_of(file)) is not None:
            yield row_of(What.ASIDE, run=writer[0], node=writer[1], ln=times)
    for process in judged.processes:
        files = reading.files(process.node.run, process.node.node)
        yield from _of_process(process, at, files, sum(bad_lines[file] for file in files))
        yield from pack(process.evidence, buckets)


def _of_process(
    judged: ProcessJudgement, at: str, files: Sequence[str], bad_lines: int
) -> Iterator[WorkerRow]:
    node = judged.node
    of = {"run": node.run, "node": node.node}
    gaps, unanswered = len(judged.missing), len(judged.unanswered)
    account = Account(node, judged.summary, files, bad_lines, gaps, unanswered)
    yield row_of(What.PROCESS, about=at, data=b64encode(pickle_state(account)).decode(), **of)
    for gap in judged.missing:
        yield row_of(What.FLAW, ln=gap.ln, expected=gap.reason, **of)
    for gap in judged.unanswered:
        yield row_of(What.UNANSWERED, ln=gap.ln, expected=gap.reason, **of)
    for finding in judged.findings:
        yield of_finding(finding)
    for entity in judged.entities:
        yield from map(of_violation, entity.violations)


def of_bad_line(bad: BadLine) -> WorkerRow:
    """Make the result row for a line that is no record."""
    return row_of(What.BAD, about=bad.file, place=bad.line, expected=bad.reason, data=bad.text)


def of_violation(broken: Violation) -> WorkerRow:
    """Make the result row for a state machine transition that violates a claim."""
    step = {
        "machine": broken.entity.machine, "record": attrs.asdict(broken.record),
        "actor": broken.actor, "why": broken.why,
        "before": [attrs.asdict(told) for told in broken.before],
    }  # fmt: skip
    return row_of(
        What.STEP, run=broken.entity.run, node=broken.entity.node, claim=broken.claim.value,
        ln=broken.ln, about=broken.entity.key, expected=broken.expected, data=json.dumps(step),
    )  # fmt: skip


_PACKED: Final = 5_000
"""Maximal items of evidence in one row."""


def pack(evidence: Iterable[Evidence], buckets: int) -> Iterator[WorkerRow]:
    """Encode evidence as result rows, with many items in each row to save time.

    Args:
        evidence: The evidence of processes.
        buckets: Number of buckets for the keys of each fold.
    """
    packs: defaultdict[tuple[str, str, str, int], list[_Item]] = defaultdict(list)
    for item in evidence:
        bucket = crc32(item.key.encode()) % buckets
        pack = packs[item.run, item.node, item.fold, bucket]
        pack.append((item.key, item.place, item.ln, item.about, item.data))
    for (run, node, fold, bucket), items in packs.items():
        for since in range(0, len(items), _PACKED):
            data = orjson.dumps(items[since : since + _PACKED]).decode()
            yield row_of(What.EVIDENCE, run=run, node=node, claim=fold, place=bucket, data=data)


def unpack(fold: str, run: str, node: str, data: str) -> Iterator[Evidence]:
    """Decode the evidence of one process for one claim from a result row.

    Args:
        fold: Name of the claim.
        run: The run.
        node: The process.
        data: The encoded evidence.
    """
    for key, place, ln, about, values in orjson.loads(data):
        yield Evidence(fold, key, run, node, place, ln, about, tuple(values))


class _MachineUse:
    """Statistics of the transitions of state machines in all processes together."""

    def __init__(self) -> None:
        self._entities: Counter[str] = Counter()
        self._used: Counter[tuple[str, str, str, str]] = Counter()
        self._stays: Counter[tuple[str, str, int]] = Counter()

    def add(self, judged: ProcessJudgement) -> None:
        self._entities.update(judged.entity_counts)
        self._used.update(judged.used)
        self._stays.update(judged.stays)

    def rows(self) -> Iterator[WorkerRow]:
        for machine, count in self._entities.items():
            yield row_of(What.ENTITIES, key=machine, ln=count)
        for (machine, *row), times in self._used.items():
            yield row_of(What.USED, key=machine, data=json.dumps(row), ln=times)
        for (machine, state, stay), times in self._stays.items():
            yield row_of(What.STAY, key=machine, about=state, place=stay, ln=times)


def of_finding(finding: Finding) -> WorkerRow:
    """Make the result row for a violation of a claim that is not about state machines."""
    return row_of(
        What.FINDING, run=finding.run, node=finding.nodes[0], claim=finding.claim, ln=finding.ln,
        about=finding.about, expected=finding.expected,
    )  # fmt: skip


class _Buckets:
    """Checks the evidence of one bucket of keys after the other, and collects the results.

    Attributes:
        said: Rows that were not returned yet.
    """

    def __init__(self, whole: AbstractSet[str | None]) -> None:
        self.said: list[WorkerRow] = []
        self._whole = whole
        self._at: tuple[str, int] | None = None
        self._items: list[Evidence] = []

    def take(self, batch: pa.Array) -> None:
        for row in batch.to_pylist():
            at = row["claim"], row["place"]
            if at != self._at:
                self.end()
                self._at = at
            self._items += unpack(row["claim"], row["run"], row["node"], row["data"])

    def end(self) -> None:
        items, self._items = self._items, []
        self.said += map(of_finding, judge_across(items, self._whole))
