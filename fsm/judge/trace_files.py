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
class Reading:
    """The files of a trace, which are read as often as they are asked for.

    Attributes:
        count: How many records the last reading had.
        bad: The lines that are no records.
        silent: Run and node of folders whose files have no record; the run may be empty.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = tuple(files)
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self.bad: list[BadLine] = []
        self.silent: dict[_Writer, Path] = {}
        self._numbers: dict[_Writer, list[tuple[Path, array[int]]]] = {}

    def records(self) -> Iterator[TraceLine]:
        """Yield the records in the order of the files.

        Raises:
            TraceFileError: A file cannot be read.
        """
        self._clear()
        seen: set[Path] = set()
        for file in self._files:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield from self._read(file)
        told: set[_Writer | None] = {
            one for writer in self._numbers for one in (writer, ("", writer[1]))
        }
        # A folder that was renamed has the records of another process.
        told |= {writer_of(str(file)) for several in self._numbers.values() for file, _ in several}
        for file in self._files:
            writer = writer_of(str(file))
            if writer is not None and writer not in told:
                self.silent.setdefault(writer, file)

    def place(self, run: str, node: str, ln: int) -> tuple[Path, int] | None:
        """Return the file and the line of a record; None: it was not read.

        Args:
            run: The run.
            node: The process.
            ln: Number of the record.
        """
        for file, numbers in self._numbers.get((run, node), ()):
            if ln in numbers:
                return file, numbers.index(ln) + 1
        return None

    def _read(self, file: Path) -> Iterator[TraceLine]:
        numbers = array("q")
        run = node = None
        for line in _lines(file):
            try:
                record = read_line(line)
            except BadTraceLineError as exc:
                numbers.append(_NO_RECORD)
                self.bad.append(BadLine(file, len(numbers), exc.reason))
                continue
            numbers.append(record.ln)
            self.count += 1
            if record.run != run or record.node != node:
                run, node = record.run, record.node
                self._numbers.setdefault((run, node), []).append((file, numbers))
            yield record


def read_traces(places: Iterable[Path]) -> Reading:
    """Find all files of all places.

    Raises:
        TraceFileError: There is no trace at a place.
    """
    return Reading(dict.fromkeys(file for place in places for file in _files(place)))


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
            for line in lines:
                yield line.removesuffix(b"\n")
    except (OSError, EOFError) as exc:
        raise TraceFileError(f"cannot read {file}: {exc}; copy it anew or leave it out") from exc
