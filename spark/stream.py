"""Check of traces that are still being written: a Spark stream of growing files, and its operators.

Spark's own file source reads complete files only. The source here counts the bytes of each file
that were read: these counts are its offset, which Spark stores in the checkpoint.

Two stateful operators use the checks of `fsm.judge`. The first one checks each process by itself;
its state is a `LiveJudge`. The second one checks the claims about several processes; its state is
the evidence of each key so far. Both states are in the checkpoint, as of the last round.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType
from typing_extensions import override

from fsm.frozen import pickle_state, restore
from fsm.judge.claims.fold import Evidence, Finding
from fsm.judge.live import LiveJudge
from fsm.judge.process import judge_across
from fsm.judge.trace_files import is_inside
from spark.files import shared_out
from spark.schemas import PIECE, What
from spark.workers import folds

_Key: TypeAlias = tuple[str | int | None, ...]

_KEPT: Final = "kept binary"


class FolderFold(StatefulProcessor):
    """Spark operator that checks the processes of a folder: rows of PIECE become rows of SAID."""

    def __init__(self, buckets: int) -> None:
        """Create the operator.

        Args:
            buckets: Number of buckets for the keys of each claim about several processes.
        """
        self._buckets = buckets

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = handle.getValueState("judge", _KEPT)

    @override
    def handleInputRows(self, key: _Key, rows: Iterator[Row], timerValues: object) -> Iterator[Row]:
        kept = self._kept.get()
        judge = LiveJudge() if kept is None else restore(bytes(kept[0]), LiveJudge)
        for row in sorted(rows, key=lambda row: (row["name"], row["at"])):
            judge.take(row["name"], bytes(row["data"]))
        news = judge.round()
        self._kept.update((pickle_state(judge),))
        for broken in news.violations:
            yield _row(folds.of_violation(broken))
        for finding in news.findings:
            yield _row(folds.of_finding(finding))
        for bad in news.bad:
            yield _row(folds.of_bad_line(bad))
        for process in news.processes:
            told = {"folder": str(key[0]), **attrs.asdict(process)}
            yield _row(folds.row_of(What.PROCESS, data=json.dumps(told)))
        for worker_row in folds.pack(news.evidence, self._buckets):
            yield _row(worker_row)


def _row(worker_row: folds.WorkerRow) -> Row:
    return Row(**worker_row)


@attrs.define
class _Judged:
    """The evidence of one key, and its reported violations."""

    items: list[Evidence] = attrs.field(factory=list)
    told: set[Finding] = attrs.field(factory=set)

    def take(self, items: Iterable[Evidence]) -> list[Finding]:
        """Add evidence; return the violations that were not reported before."""
        self.items += items
        # A watched process has not ended: claims about ends are judged at the end.
        fresh = [each for each in judge_across(self.items, frozenset()) if each not in self.told]
        self.told.update(fresh)
        return fresh


class AcrossFold(StatefulProcessor):
    """Spark operator that checks the claims about several processes, by claim and bucket of keys.

    Input and output are rows of SAID; rows that are no evidence are passed on unchanged.
    """

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = handle.getMapState("evidence", "key string", _KEPT)

    @override
    def handleInputRows(self, key: _Key, rows: Iterator[Row], timerValues: object) -> Iterator[Row]:
        by_key: defaultdict[str, list[Evidence]] = defaultdict(list)
        for row in rows:
            if row["what"] != What.EVIDENCE:
                yield row
                continue
            for item in folds.unpack(row["claim"], row["run"], row["node"], row["data"]):
                by_key[item.key].append(item)
        for name, items in by_key.items():
            kept = self._kept.getValue((name,))
            judged = _Judged() if kept is None else restore(bytes(kept[0]), _Judged)
            for finding in judged.take(items):
                yield _row(folds.of_finding(finding))
            self._kept.updateValue((name,), (pickle_state(judged),))


_Offset: TypeAlias = dict[str, int]
"""Number of read bytes by the name of the file."""

_PIECE: Final = 1 << 20
"""Maximum bytes of a trace file in one row of the stream."""

_ROUND: Final = 64 << 20
"""Maximal bytes of a round, which bound its memory."""

_SHARE: Final = 64 << 10
"""Bytes that each folder may always contribute to a round."""


def sizes_of(directory: Path) -> dict[str, int]:
    """Return the sizes of the parts under a directory, in the order in which they are written."""
    # List the parts before reading their sizes: a part with a successor is then complete.
    parts = sorted(each for each in directory.rglob("part-*.jsonl") if is_inside(each, directory))
    return {str(part.relative_to(directory)): part.stat().st_size for part in parts}


class TraceSource(DataSource):
    """Spark data source that streams the new bytes of trace files.

    Options: `path`, the directory; `tasks`, how many read at the same time.
    """

    @classmethod
    @override
    def name(cls) -> str:
        return "protofly-trace"

    @override
    def schema(self) -> StructType:
        return PIECE

    @override
    def streamReader(self, schema: StructType) -> "TraceReader":
        return TraceReader(Path(self.options["path"]), int(self.options["tasks"]))


@attrs.frozen
class _Span(InputPartition):
    """The pieces of files that one task reads: for each the file, first and last byte."""

    pieces: tuple[tuple[str, int, int], ...]


class TraceReader(DataSourceStreamReader):
    """Stream reader of the bytes added to trace files: each byte once, in order for each folder."""

    def __init__(self, directory: Path, tasks: int) -> None:
        self._directory = directory
        self._tasks = tasks

    @override
    def initialOffset(self) -> _Offset:
        return {}

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(_ROUND)

    @override
    def latestOffset(self, start: _Offset, limit: ReadLimit) -> _Offset:
        return next_offset(start, sizes_of(self._directory), limit)

    @override
    def partitions(self, start: _Offset, end: _Offset) -> list[InputPartition]:
        pieces = [
            (until - start.get(name, 0), (name, start.get(name, 0), until))
            for name, until in end.items()
            if until > start.get(name, 0)
        ]
        return [_Span(tuple(sorted(task))) for task in shared_out(pieces, self._tasks)]

    @override
    def read(self, partition: InputPartition) -> Iterator[tuple[str, str, int, bytearray]]:
        assert isinstance(partition, _Span)  # noqa: S101 - for the type checker
        for name, start, until in partition.pieces:
            folder = name.rpartition("/")[0]
            with (self._directory / name).open("rb") as file:
                file.seek(start)
                for at in range(start, until, _PIECE):
                    yield folder, name, at, bytearray(file.read(min(_PIECE, until - at)))


def next_offset(start: Mapping[str, int], sizes: Mapping[str, int], limit: ReadLimit) -> _Offset:
    """Return how many bytes of each file will have been read after the next round.

    Args:
        start: Number of read bytes of each file.
        sizes: Size of each file, with those of a folder in order.
        limit: Limit of the round.
    """
    grown = {name.rpartition("/")[0] for name in sizes if sizes[name] > start.get(name, 0)}
    share = sum(sizes.values())
    if isinstance(limit, ReadMaxBytes):
        share = max(limit.max_bytes // max(len(grown), 1), _SHARE)
    left = dict.fromkeys(grown, share)
    taken = dict(start)
    for name, size in sizes.items():
        folder, before = name.rpartition("/")[0], start.get(name, 0)
        more = min(size - before, left.get(folder, 0))
        if more > 0:
            taken[name] = before + more
            left[folder] -= more
    return taken
