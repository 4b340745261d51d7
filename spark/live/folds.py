"""The folds of `fsm.judge` as stateful operators of a stream.

The first judges each process by itself, folder by folder; its state is a `LiveJudge`. The second
judges what processes handed over, key by key; its state is the evidence of each key so far. Both
states lie in the checkpoint, as of the last round.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, final

import attrs
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from typing_extensions import override

from fsm.frozen import frozen, thawed
from fsm.judge.claims.fold import Evidence, Finding
from fsm.judge.live import LiveJudge, LiveProcess
from fsm.judge.process import judge_across
from spark.schemas import What
from spark.worker import (
    Said,
    of_bad_line,
    of_finding,
    of_violation,
    packed,
    row_of,
    unpacked,
)

__all__ = ["AcrossFold", "FolderFold"]

_Key: TypeAlias = tuple[str | int | None, ...]

_KEPT: Final = "kept binary"


@final
class FolderFold(StatefulProcessor):
    """Judges the processes of a folder: rows of PIECE, by folder; gives rows of SAID."""

    def __init__(self, buckets: int) -> None:
        """Begin.

        Args:
            buckets: Among how many the keys of each fold across processes are shared out.
        """
        self._buckets = buckets

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = handle.getValueState("judge", _KEPT)

    @override
    def handleInputRows(self, key: _Key, rows: Iterator[Row], timerValues: object) -> Iterator[Row]:
        kept = self._kept.get()
        judge = LiveJudge() if kept is None else thawed(bytes(kept[0]), LiveJudge)
        for row in sorted(rows, key=lambda row: (row["name"], row["at"])):
            judge.take(row["name"], bytes(row["data"]))
        news = judge.round()
        self._kept.update((frozen(judge),))
        for broken in news.violations:
            yield _row(of_violation(broken))
        for found in news.findings:
            yield _row(of_finding(found))
        for bad in news.bad:
            yield _row(of_bad_line(bad))
        for process in news.processes:
            yield _row(_of_process(str(key[0]), process))
        for said in packed(news.evidence, self._buckets):
            yield _row(said)


def _row(said: Said) -> Row:
    return Row(**said)


def _of_process(folder: str, process: LiveProcess) -> Said:
    return row_of(
        What.PROCESS, run=process.run, node=process.node, about=folder, ln=process.records,
        data=json.dumps({"running": process.is_running, "unjudged": process.unjudged}),
    )  # fmt: skip


@final
@attrs.define
class _Judged:
    """The evidence of one key, and what was said of it."""

    items: list[Evidence] = attrs.field(factory=list)
    told: set[Finding] = attrs.field(factory=set)

    def take(self, items: Iterable[Evidence]) -> list[Finding]:
        """Take more evidence; return what is broken and was not said before."""
        self.items += items
        # No process has ended while it is watched: claims on an end are judged at the end.
        found = [one for one in judge_across(self.items, frozenset()) if one not in self.told]
        self.told.update(found)
        return found


@final
class AcrossFold(StatefulProcessor):
    """Judges evidence of several processes: rows of SAID, by fold and bucket.

    Rows that are no evidence are handed on as they are.
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
            for item in unpacked(row["claim"], row["run"], row["node"], row["data"]):
                by_key[item.key].append(item)
        for name, items in by_key.items():
            kept = self._kept.getValue((name,))
            judged = _Judged() if kept is None else thawed(bytes(kept[0]), _Judged)
            for found in judged.take(items):
                yield _row(of_finding(found))
            self._kept.updateValue((name,), (frozen(judged),))
