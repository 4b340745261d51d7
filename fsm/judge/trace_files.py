"""Traces on a disk: which files belong to a place, and what stands in them.

A place is a directory of runs, the folder of one run or of one node in it, or a single
part; `specs.trace` says how the folders are named. Several places may name the same
file: it is read once.
"""

import gzip
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.trace_line import BadTraceLineError, TraceLine, read_line
from specs.errors import ProtoflyError
from specs.trace import writer_of

__all__ = ["BadLine", "Reading", "TraceFileError", "read_traces"]

_Writer: TypeAlias = tuple[str, str]

_NO_RECORD: Final = 0
"""Stands for the number of a line that is no record; numbers begin with 1."""


@final
class TraceFileError(ProtoflyError):
    """There is no trace at a place, or it cannot be read."""


@final
@attrs.frozen
class BadLine:
    """A line that is no record.

    Attributes:
        line: From 1.
        reason: As half a sentence.
    """

    file: Path
    line: int
    reason: str


@final
@attrs.define
class Reading:
    """What was read.

    Attributes:
        records: In the order of the files.
        bad: The lines that are no records.
        silent: Run and node of folders whose files have no record; the run may be empty.
    """

    records: list[TraceLine] = attrs.field(factory=list)
    bad: list[BadLine] = attrs.field(factory=list)
    silent: dict[_Writer, Path] = attrs.field(factory=dict)
    _numbers: dict[_Writer, list[tuple[Path, "array[int]"]]] = attrs.field(factory=dict)

    def place(self, run: str, node: str, ln: int) -> tuple[Path, int] | None:
        """Return the file and the line of a record; None: it was not read."""
        for file, numbers in self._numbers.get((run, node), ()):
            if ln in numbers:
                return file, numbers.index(ln) + 1
        return None

    def take(self, file: Path) -> None:
        """Read one file.

        Raises:
            TraceFileError: It cannot be read.
        """
        numbers = array("q")
        writer: _Writer | None = None
        for line in _lines(file):
            try:
                record = read_line(line)
            except BadTraceLineError as exc:
                numbers.append(_NO_RECORD)
                self.bad.append(BadLine(file, len(numbers), exc.reason))
                continue
            numbers.append(record.ln)
            self.records.append(record)
            if writer != (record.run, record.node):
                writer = record.run, record.node
                self._numbers.setdefault(writer, []).append((file, numbers))


def read_traces(places: Iterable[Path]) -> Reading:
    """Read all files of all places.

    Raises:
        TraceFileError: There is no trace at a place, or a file cannot be read.
    """
    reading = Reading()
    files = dict.fromkeys(file for place in places for file in _files(place))
    seen: set[Path] = set()
    for file in files:
        if file.resolve() not in seen:
            seen.add(file.resolve())
            reading.take(file)
    _find_silent(reading, files)
    return reading


def _find_silent(reading: Reading, files: Iterable[Path]) -> None:
    told = {writer for record in reading.records for writer in _names(record)}
    for file in files:
        writer = writer_of(str(file))
        if writer is not None and writer not in told:
            reading.silent.setdefault(writer, file)


def _names(record: TraceLine) -> Iterator[_Writer]:
    """Yield how the folder of a record may be called: with its run, and without."""
    yield record.run, record.node
    yield "", record.node


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise TraceFileError(f"no trace at {place}: there is nothing; name what --trace wrote to")
    files = sorted([*place.rglob("part-*.jsonl"), *place.rglob("part-*.jsonl.gz")])
    if not files:
        raise TraceFileError(f"no trace at {place}: there is no part-*.jsonl under it")
    return files


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            yield from lines
    except (OSError, EOFError) as exc:
        raise TraceFileError(f"cannot read {file}: {exc}; copy it anew or leave it out") from exc
