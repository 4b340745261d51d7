"""Traces on a disk: which files belong to a place, and what stands in them.

A place is a directory of runs, the folder of one run or of one node in it, or a single
part; `specs.trace` says how the folders are named. Several places may name the same
file: it is read once.
"""

import gzip
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from functools import partial
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeAlias, TypeVar, final

import attrs

from fsm.judge.replay import order_of
from fsm.judge.trace_line import MAX_LINE, BadTraceLineError, TraceLine, read_line
from specs.errors import ProtoflyError
from specs.trace import writer_of

_Writer: TypeAlias = tuple[str, str]

_CUT: Final = b" ... (cut)"
"""The end of a line that was too long, which no JSON has; it is longer than a line may be."""

_SHOWN: Final = 1000
"""Characters of a line that is no record that are kept."""


@final
class TraceFileError(ProtoflyError):
    """There is no trace at a place, or it cannot be read."""


@final
class PackedRestError(ProtoflyError):
    """The rest of a packed file is damaged or missing.

    Attributes:
        reason: As half a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"a packed file is damaged: {reason}")
        self.reason = f"the rest of the file cannot be unpacked ({reason})"


def unreadable(name: str, reason: Exception) -> TraceFileError:
    """Return the error of a file that cannot be read.

    Args:
        name: Path or URL.
        reason: The error of the system, or of a format.
    """
    return TraceFileError(f"cannot read {name}: {reason}; copy it anew or leave it out")


@final
@attrs.frozen
class BadLine:
    """A line that is no record.

    Attributes:
        line: From 1.
        reason: As half a sentence.
        text: The begin of the line; bytes that are no UTF-8 are replaced.
    """

    file: str
    line: int
    reason: str
    text: str


class Part(Protocol):
    """A file of a trace."""

    @property
    def name(self) -> str:
        """Path or URL."""

    def lines(self) -> Iterator[TraceLine | BadLine]:
        """Yield what each line is.

        Raises:
            TraceFileError: The file cannot be read.
        """


_P = TypeVar("_P", bound=Part)


@final
@attrs.frozen
class LinesPart:
    """A part in JSON Lines, which may be packed by gzip.

    Attributes:
        name: Path or URL.
        opened: Opens it for reading.
    """

    name: str
    opened: Callable[[], BinaryIO]

    def lines(self) -> Iterator[TraceLine | BadLine]:
        """Yield what each line is; the rest of a packed file that is cut off is one bad line.

        Raises:
            TraceFileError: The file cannot be read.
        """
        number = 0
        try:
            for number, text in enumerate(chain.from_iterable(map(lines_of, self.blocks())), 1):
                try:
                    yield read_line(text)
                except BadTraceLineError as exc:
                    shown = text[:_SHOWN].decode(errors="replace")
                    yield BadLine(self.name, number, exc.reason, shown)
        except PackedRestError as exc:
            yield BadLine(self.name, number + 1, exc.reason, "")

    def blocks(self, size: int = 1 << 16) -> Iterator[bytes]:
        """Yield whole lines as they are, many at a time.

        Args:
            size: About how many bytes.

        Raises:
            PackedRestError: From here on a packed file is damaged.
            TraceFileError: The file cannot be read.
        """
        try:
            with self.opened() as file:
                if self.name.endswith(".gz"):
                    yield from _unpacked(file, size)
                    return
                yield from whole_lines(iter(partial(file.read, size), b""))
        except OSError as exc:
            raise unreadable(self.name, exc) from exc


def lines_of(block: bytes) -> list[bytes]:
    """Return the lines of a block without their ends.

    Args:
        block: Whole lines; the last may have no end.
    """
    *lines, rest = block.split(b"\n")
    return [*lines, rest] if rest else lines


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces of a file as whole lines, and at its end what is left.

    A line that is too long is cut, in a way that it is no record.
    """
    rest, is_skipping = b"", False
    for piece in pieces:
        data = piece
        if is_skipping:
            end = data.find(b"\n")
            if end < 0:
                continue
            data, is_skipping = data[end:], False
        end = data.rfind(b"\n") + 1
        if end:
            yield _cut(rest + data[:end])
            rest = b""
        rest += data[end:]
        if len(rest) > MAX_LINE:
            rest, is_skipping = _cut(rest), True
    if rest:
        yield rest


def _cut(lines: bytes) -> bytes:
    """Cut lines that are too long."""
    if len(lines) <= MAX_LINE or all(len(one) <= MAX_LINE for one in lines.split(b"\n")):
        return lines
    parts = (one if len(one) <= MAX_LINE else one[:MAX_LINE] + _CUT for one in lines.split(b"\n"))
    return b"\n".join(parts)


def _unpacked(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the whole lines of a packed file, and at its end what is left.

    Raises:
        PackedRestError: From here on it is damaged.
    """
    source = gzip.GzipFile(fileobj=file)
    try:
        yield from whole_lines(iter(partial(source.read1, size), b""))
    except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
        raise PackedRestError(str(exc)) from exc


@final
class _Numbers:
    """The numbers of the records in the lines of a file, as runs of numbers that follow each other.

    Attributes:
        least: The least number; 0: there is none.
        most: The greatest.
        is_in_order: Whether each is greater than the one before it.
    """

    def __init__(self) -> None:
        self.least = self.most = 0
        self.is_in_order = True
        self._line = self._last = 0
        # Of each run the first line, the number there, and how many lines it has.
        self._runs = array("q")

    def skip(self) -> None:
        """Note a line that is no record."""
        self._line += 1
        self._last = 0

    def add(self, ln: int) -> None:
        """Note the record of the next line."""
        self._line += 1
        if self._last and ln == self._last + 1:
            self._runs[-1] += 1
        else:
            self._runs.extend((self._line, ln, 1))
        if ln <= self.most:
            self.is_in_order = False
        self.least = min(self.least or ln, ln)
        self.most = max(self.most, ln)
        self._last = ln

    def line_of(self, ln: int) -> int | None:
        """Return the first line of a number; None: there is none."""
        runs = iter(self._runs)
        for line, first, count in zip(runs, runs, runs, strict=True):
            if first <= ln < first + count:
                return line + ln - first
        return None


@final
class Reading:
    """Files of a trace, which are read as often as they are asked for.

    Attributes:
        count: How many records the last reading had.
        bad: The lines that are no records.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = tuple(parts)
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self.bad: list[BadLine] = []
        self._numbers: dict[_Writer, list[tuple[str, _Numbers]]] = {}
        self._all: dict[str, _Numbers] = {}

    def records(self) -> Iterator[TraceLine]:
        """Yield the records in the order of the files.

        Raises:
            TraceFileError: A file cannot be read.
        """
        self._clear()
        for part in self._parts:
            yield from self._read(part)

    def sorted(self) -> Iterator[TraceLine]:
        """Yield the records in the order of their numbers, those of all processes together.

        Files are read at the same time if their numbers overlap; only a file that is in disorder
        itself is held in memory.

        Raises:
            TraceFileError: A file cannot be read.
        """
        for _ in self.records():
            pass
        numbered = [(part, self._all[part.name]) for part in self._parts]
        spans = [(lns.least, lns.most, part) for part, lns in numbered]
        together: list[Part] = []
        until = -1
        for first, last, part in sorted(spans, key=lambda span: span[:2]):
            if first > until and together:
                yield from self._merged(together)
                together = []
            together.append(part)
            until = max(until, last)
        yield from self._merged(together)

    def _merged(self, parts: Iterable[Part]) -> Iterator[TraceLine]:
        return merge(*map(self._in_order, parts), key=_place)

    def _in_order(self, part: Part) -> Iterator[TraceLine]:
        records = (one for one in part.lines() if isinstance(one, TraceLine))
        is_in_order = self._all[part.name].is_in_order
        return records if is_in_order else iter(sorted(records, key=_place))

    @property
    def named(self) -> Iterator[tuple[_Writer, str, bool]]:
        """For each file, after whom its folder is named, and whether it has a record."""
        for name, numbers in self._all.items():
            writer = writer_of(name)
            if writer is not None:
                yield writer, name, numbers.most > 0

    @property
    def writers(self) -> AbstractSet[_Writer]:
        """Run and node of each process that has a record."""
        return self._numbers.keys()

    def place(self, run: str, node: str, ln: int) -> tuple[str, int] | None:
        """Return the file and the line of a record; None: it was not read.

        Args:
            run: The run.
            node: The process.
            ln: Number of the record.
        """
        for file, numbers in self._numbers.get((run, node), ()):
            if (line := numbers.line_of(ln)) is not None:
                return file, line
        return None

    def files(self, run: str, node: str) -> list[str]:
        """Return the files that have records of a process.

        Args:
            run: The run.
            node: The process.
        """
        return list(dict.fromkeys(file for file, _ in self._numbers.get((run, node), ())))

    def _read(self, part: Part) -> Iterator[TraceLine]:
        numbers = self._all[part.name] = _Numbers()
        run = node = None
        with closing(part.lines()) as lines:  # type: ignore[type-var] # a generator
            for line in lines:
                if isinstance(line, BadLine):
                    numbers.skip()
                    self.bad.append(line)
                    continue
                numbers.add(line.ln)
                self.count += 1
                if line.run != run or line.node != node:
                    run, node = line.run, line.node
                    self._numbers.setdefault((run, node), []).append((part.name, numbers))
                yield line


def _place(record: TraceLine) -> tuple[int, str, str, str, str, str]:
    """Return the place of a record among those of its process."""
    return order_of(record)[2:]


def parts_in(places: Iterable[Path]) -> list[LinesPart]:
    """Return the files of all places, each once.

    Raises:
        TraceFileError: There is no trace at a place.
    """
    files: dict[Path, Path] = {}
    for place in places:
        for file in _files(place):
            files.setdefault(file.resolve(), file)
    return [local_part(str(file)) for file in files.values()]


def local_part(name: str) -> LinesPart:
    """Return a file of this machine."""
    return LinesPart(name, lambda: Path(name).open("rb"))


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise TraceFileError(f"no trace at {place}: there is nothing; name what --trace wrote to")
    found = sorted([*place.rglob("part-*.jsonl"), *place.rglob("part-*.jsonl.gz")])
    files = [file for file in found if is_inside(file, place)]
    if not files:
        raise TraceFileError(f"no trace at {place}: there is no part-*.jsonl under it")
    return files


def is_inside(file: Path, place: Path) -> bool:
    """Return whether a file is one, and lies in a folder itself: no link leads out of it."""
    return file.is_file() and file.resolve().is_relative_to(place.resolve())


def silent(readings: Sequence[Reading]) -> dict[_Writer, str]:
    """Return the processes whose files have no record, with a file of each.

    Args:
        readings: All files of a trace.
    """
    named = [one for reading in readings for one in reading.named]
    known = {one for reading in readings for one in reading.writers}
    known |= {("", node) for _, node in known}
    # A folder that was renamed has the records of another process.
    known |= {writer for writer, _, has_record in named if has_record}
    return {writer: file for writer, file, _ in named if writer not in known}


def folders_of(parts: Iterable[_P]) -> list[list[_P]]:
    """Return files by their folders: mostly, a folder is the trace of one process.

    Args:
        parts: The files, in any order.
    """
    folders: dict[str, list[_P]] = {}
    for part in parts:
        folders.setdefault(part.name.rpartition("/")[0], []).append(part)
    return list(folders.values())
