"""What runs in Python workers: the reference decoder, and the folds of `fsm.judge`.

Each function is an iterator over Arrow arrays, one output row per input row, as Spark wants it.
`judge` and `judge_keys` have much less to say than they read: what they say stands in the row of
the last record of a batch, the rest is null. So they hold a batch back until the next one comes.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias, cast

import attrs
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.udf import UserDefinedFunction

from fsm.judge.claims.catalogue import ACROSS
from fsm.judge.claims.fold import Across, Evidence, Finding
from fsm.judge.process import LateHomeError, ProcessJudge, ProcessJudgement
from fsm.judge.trace_line import BadTraceLineError, TraceLine, read_line
from spark.schemas import DECODED, READ, SAID, What

__all__ = ["decode", "iterating", "judging", "judging_keys"]

_JUDGED: Final = tuple(field.name for field in attrs.fields(TraceLine))
_VALUES: Final = attrgetter(*_JUDGED)
_DECODED: Final = to_arrow_type(DECODED)
_SAID: Final = to_arrow_type(SAID)
_NOTHING: Final = (None,) * len(_JUDGED)

_Said: TypeAlias = dict[str, str | int | None]
_Process: TypeAlias = tuple[str, str]
_Batches: TypeAlias = Iterator[pa.Array]


def iterating(function: Callable[[_Batches], _Batches], gives: str) -> UserDefinedFunction:
    """Return a column function, which is run once for each partition.

    `mapInArrow` would do, but it wants pandas installed, which nothing here uses.

    Args:
        function: What runs in the workers.
        gives: The type of its result, in Spark's words.
    """
    # The stubs want the kind of function named, which the function itself warns of.
    column = arrow_udf(function, gives)  # type: ignore[call-overload]
    # Else the optimizer may run it twice: for a filter, and for what passes.
    return cast("UserDefinedFunction", column).asNondeterministic()


def decode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Read lines, each given as its bytes and the piece of a file, as the reference judge does."""
    piece, position = None, 0
    for batch in batches:
        rows = []
        for line, at in zip(*(column.to_pylist() for column in batch.flatten()), strict=True):
            position = position + 1 if at == piece else 0
            piece = at
            rows.append((*_decoded(line), position))
        columns = zip(*rows, strict=True) if rows else ((),) * len(_DECODED)
        arrays = [pa.array(one, field.type) for one, field in zip(columns, _DECODED, strict=True)]
        yield pa.StructArray.from_arrays(arrays, fields=list(_DECODED))


def _decoded(line: bytes) -> tuple[str | int | float | None, ...]:
    try:
        record = read_line(line)
    except BadTraceLineError as exc:
        return (*_NOTHING, exc.reason, line.decode(errors="replace"))
    return (*_VALUES(record), None, None)


def judging(homes: Mapping[_Process, str]) -> Callable[[_Batches], _Batches]:
    """Return what judges processes.

    Args:
        homes: Addresses of runtimes, as far as they are known before.
    """

    def judge(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Judge the records of processes: sorted by run, node, number."""
        return _with_one_held(batches, _Processes(homes))

    return judge


def judging_keys(whole: AbstractSet[str | None]) -> Callable[[_Batches], _Batches]:
    """Return what judges evidence of several processes.

    Args:
        whole: Runtimes of whose lives nothing is missing.
    """

    def judge_keys(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Judge evidence: sorted by fold, key, run, node, number."""
        return _with_one_held(batches, _Keys(whole))

    return judge_keys


def _with_one_held(batches: Iterator[pa.Array], folder: "_Processes | _Keys") -> Iterator[pa.Array]:
    """Let every row of every batch be taken; what is said then is told with the batch before."""
    held = 0
    for batch in batches:
        if held:
            yield _told(held, folder.said)
            folder.said = []
        folder.take(batch)
        held = len(batch)
        if not held:
            yield _told(0, [])
    if held:
        folder.end()
        yield _told(held, folder.said)


def _told(length: int, said: Sequence[_Said]) -> pa.Array:
    """Return an array of so many rows; the last one says it."""
    values: list[Sequence[_Said] | None] = [None] * length
    if said:
        values[-1] = said
    return pa.array(values, pa.list_(_SAID))


def _values(column: pa.Array) -> list[str | int | float | None]:
    # Many fields are of one kind of record only.
    return [None] * len(column) if column.null_count == len(column) else column.to_pylist()


class _Processes:
    """Judges one process after the other.

    Attributes:
        said: What was said since it was taken away.
    """

    def __init__(self, homes: Mapping[_Process, str]) -> None:
        self.said: list[_Said] = []
        self._homes = homes
        self._at: _Process | None = None
        self._judge: ProcessJudge | None = None
        self._files: set[str] = set()

    def take(self, batch: pa.Array) -> None:
        columns = [_values(column) for column in batch.flatten()]
        names = [field.name for field in batch.type]
        told = dict(zip(names, columns, strict=True))
        rows = zip(*(told[name] for name in READ), strict=True)
        for values, flaw, file, number in zip(
            rows, told["flaw"], told["file"], range(len(batch)), strict=True
        ):
            if flaw is not None:
                self._bad({name: column[number] for name, column in told.items()})
                continue
            record = TraceLine(**dict(zip(_JUDGED, values, strict=True)))
            if self._at != (record.run, record.node):
                self.end()
                self._at = record.run, record.node
                home = self._homes.get(self._at)
                self._judge = ProcessJudge(*self._at, home, is_sorted=True)
            self._files.add(file)
            self._take(record)

    def _take(self, record: TraceLine) -> None:
        if self._judge is None:
            return
        try:
            self._judge.take(record)
        except LateHomeError as late:
            self._say(What.LATE, about=late.home)
            self._judge = None

    def _bad(self, row: Mapping[str, str | int | None]) -> None:
        data = json.dumps([row["block"], row["text"]])
        self.said.append(
            _said(
                What.BAD, about=row["file"], place=row["position"], expected=row["flaw"], data=data
            )
        )

    def end(self) -> None:
        if self._judge is not None:
            judged = self._judge.end()
            self.said += _of_process(judged, sorted(self._files))
        self._at = self._judge = None
        self._files = set()

    def _say(self, what: What, **fields: str | int | None) -> None:
        run, node = self._at or ("", "")
        self.said.append(_said(what, run=run, node=node, **fields))


_UNSAID: Final = dict.fromkeys(field.name for field in _SAID)


def _said(what: What, **fields: str | int | None) -> _Said:
    return _UNSAID | {"what": what.value} | fields


def _of_process(judged: ProcessJudgement, files: Sequence[str]) -> Iterator[_Said]:
    node = judged.node
    at = {"run": node.run, "node": node.node}
    told = {
        "records": node.records, "flaws": sorted(node.flaws), "missing": node.missing,
        "doubled": node.doubled, "home": judged.home, "whole": judged.is_whole, "files": files,
        "itself": sorted(judged.took.itself),
        "others": [attrs.astuple(mention) for mention in judged.took.others],
        "crossings": [attrs.astuple(crossing) for crossing in judged.crossings],
    }  # fmt: skip
    yield _said(What.PROCESS, data=json.dumps(told), **at)
    for gap in judged.missing:
        yield _said(What.FLAW, ln=gap.ln, expected=gap.reason, **at)
    for gap in judged.unanswered:
        yield _said(What.UNANSWERED, ln=gap.ln, expected=gap.reason, **at)
    for finding in judged.findings:
        yield _of_finding(finding)
    for item in judged.evidence:
        yield _said(
            What.EVIDENCE, claim=item.fold, key=item.key, ln=item.ln, place=item.place,
            about=item.about, data=json.dumps(item.data), **at,
        )  # fmt: skip
    for entity in judged.entities:
        for broken in entity.violations:
            step = {
                "machine": broken.entity.machine, "record": attrs.asdict(broken.record),
                "actor": broken.actor, "why": broken.why,
                "before": [attrs.asdict(told) for told in broken.before],
            }  # fmt: skip
            yield _said(
                What.STEP, claim=broken.claim.value, ln=broken.ln, about=broken.entity.key,
                expected=broken.expected, data=json.dumps(step), **at,
            )  # fmt: skip
    yield from _of_machines(judged)


def _of_machines(judged: ProcessJudgement) -> Iterator[_Said]:
    entities = Counter(entity.entity.machine for entity in judged.entities)
    for machine, count in entities.items():
        yield _said(What.ENTITIES, key=machine, ln=count)
    for (machine, *row), times in judged.used.items():
        yield _said(What.USED, key=machine, data=json.dumps(row), ln=times)
    for (machine, state, stay), times in judged.stays.items():
        yield _said(What.STAY, key=machine, about=state, place=stay, ln=times)


def _of_finding(finding: Finding) -> _Said:
    return _said(
        What.FINDING, run=finding.run, node=finding.nodes[0], claim=finding.claim, ln=finding.ln,
        about=finding.about, expected=finding.expected,
    )  # fmt: skip


class _Keys:
    """Judges the evidence of one key after the other.

    Attributes:
        said: What was said since it was taken away.
    """

    def __init__(self, whole: AbstractSet[str | None]) -> None:
        self.said: list[_Said] = []
        self._whole = whole
        self._at: tuple[str, str] | None = None
        self._fold = Across(whole)

    def take(self, batch: pa.Array) -> None:
        rows = batch.to_pylist()
        for at, told in groupby(rows, key=lambda row: (row["claim"], row["key"])):
            if at != self._at:
                self.end()
                self._at = at
                self._fold = ACROSS[at[0]](self._whole)
            for row in told:
                self._fold.take(
                    Evidence(
                        row["claim"], row["key"], row["run"], row["node"], row["place"], row["ln"],
                        row["about"], tuple(json.loads(row["data"])),
                    )
                )  # fmt: skip

    def end(self) -> None:
        if self._at is not None:
            self._fold.end()
            self.said += [_of_finding(finding) for finding in self._fold.findings]
        self._at = None
