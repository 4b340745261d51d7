"""Find the files of traces, and read them in the Python workers of Spark.

A worker opens files of this machine itself. Spark reads files behind a URL, and passes their bytes
to the worker, file by file.
"""

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, TypeVar, cast
from urllib.parse import unquote

import attrs
import orjson
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # ships no types
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from fsm.judge.trace_files import BadLine, LinesPart, Part, is_inside, unreadable
from fsm.judge.trace_line import TraceLine
from spark.errors import TraceMissingError
from spark.schemas import READ
from specs.trace import writer_of

QUARANTINED: Final = "_quarantine"
"""Folder of the lines that `convert` could not parse as records."""

SILENT: Final = "_silent"
"""Folder that `convert` writes for processes whose files have no record."""

_NOTES: Final = ".json"
_BATCH: Final = 10_000
"""Number of records that are read from a Parquet file at a time."""

_NAMED: Final = ("run", "node")
_TOLD: Final = tuple(name for name in READ if name not in _NAMED)
"""Columns of the Parquet files of `convert`; run and node are in the name of the folder."""

_I = TypeVar("_I")
_Column: TypeAlias = list[str | int | float | None]

_PARQUET: Final = ".parquet"
_LINES: Final = (".jsonl", ".jsonl.gz")
_SCHEME: Final = "^file:/+"
_EMPTY: Final = "__HIVE_DEFAULT_PARTITION__"
"""Name that Spark gives to the folder of an empty text."""


def find_files(session: SparkSession, paths: Sequence[str]) -> list[str]:
    """Return the files at all `paths`, each file once.

    Args:
        session: A running Spark.
        paths: Directories of runs, runs, nodes of a run or files; every form that Spark reads.

    Raises:
        TraceMissingError: There is nothing at a path, or no trace.
    """
    if not paths:
        raise TraceMissingError("nowhere", "no path was named")
    files: dict[str, str] = {}
    for path in paths:
        place = Path(plain(path))
        is_plain = is_local(plain(path)) and not set(path) & set("*?[{")
        files_at_path = _found_here(path, place) if is_plain else _found_by_spark(session, path)
        for name in files_at_path:
            # A report, which may lie among the runs, is Parquet as well, but of no process.
            if not name.endswith(_PARQUET) or writer_of(name):
                files.setdefault(str(Path(name).resolve()) if is_local(name) else name, name)
    return list(files.values())


def is_local(name: str) -> bool:
    """Return whether a file is on this machine, so that a worker opens the file itself."""
    return "://" not in name


def shared_out(items: Iterable[tuple[int, _I]], most: int) -> list[list[_I]]:
    """Divide items into groups of about the same total size, none of them empty.

    Args:
        items: Each with its size.
        most: Maximal number of groups.
    """
    in_order = sorted(items, key=itemgetter(0), reverse=True)
    groups: list[tuple[int, int, list[_I]]] = [
        (0, number, []) for number in range(min(len(in_order), most))
    ]
    for size, item in in_order:
        least, number, group = heappop(groups)
        group.append(item)
        heappush(groups, (least + size, number, group))
    return [group for _, _, group in groups]


def plain(url: str) -> str:
    """Return the path or URL of a file without the encoding of URLs that Spark uses."""
    return re.sub(_SCHEME, "/", unquote(url)) if re.match(_SCHEME, url) else url


def _found_here(path: str, place: Path) -> list[str]:
    if place.is_file():
        return [str(place)]
    if not place.is_dir():
        raise TraceMissingError(path, "there is nothing")
    files = [file for end in (*_LINES, _PARQUET) for file in place.rglob(f"part-*{end}")]
    aside = (QUARANTINED, SILENT)
    files = [file for file in files if is_inside(file, place) and not set(file.parts) & set(aside)]
    if not files:
        raise TraceMissingError(path, "there is no part-*.jsonl under it")
    notes = [note for each in aside for note in place.rglob(f"{each}/part-*{_NOTES}")]
    return [
        str(file) for file in sorted([*files, *(each for each in notes if is_inside(each, place))])
    ]


def _found_by_spark(session: SparkSession, path: str) -> list[str]:
    is_file = path.rstrip("/").endswith((*_LINES, _PARQUET))
    ends = "*" if is_file else "part-*.{jsonl,jsonl.gz,parquet}"
    try:
        files = _list_files(session, path, ends)
    except AnalysisException as exc:
        raise TraceMissingError(path, "there is nothing") from exc
    if not files:
        raise TraceMissingError(path, "there is no part-*.jsonl under it")
    bases = {base_of(file) for file in files if file.endswith(_PARQUET)}
    for place in (f"{base}/{aside}" for base in bases for aside in (QUARANTINED, SILENT)):
        with suppress(AnalysisException):
            files += _list_files(session, place, f"part-*{_NOTES}")
    return files


def _list_files(session: SparkSession, path: str, ends: str) -> list[str]:
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    return sorted(
        plain(file) for file in reader.option("pathGlobFilter", ends).load(path).inputFiles()
    )


def base_of(path: str) -> str:
    """Return the directory that contains the folders of runs, for a path in it."""
    return re.split(r"(?:^|/)(?=(?:run|node)=)", path, maxsplit=1)[0] or "."


def part_of(name: str, content: bytes | None = None) -> Part:
    """Return the reader for a file of a trace, by the form of the file.

    Args:
        name: Path or URL.
        content: Content of the file; None: the file is opened here.
    """
    opened: Callable[[], BinaryIO] = partial(_open_file, name)
    if content is not None:
        opened = partial(io.BytesIO, content)
    kind = ColumnsPart if name.endswith(_PARQUET) else NotesPart
    return LinesPart(name, opened) if name.endswith(_LINES) else kind(name, opened)


def _open_file(name: str) -> BinaryIO:
    return Path(name).open("rb")


@attrs.frozen
class ColumnsPart:
    """Reader of a Parquet file of `convert`, with the records of one process.

    Attributes:
        name: Path or URL.
        opened: Opens the file for reading.
    """

    name: str
    opened: Callable[[], BinaryIO]

    def lines(self) -> Iterator[TraceLine | BadLine]:
        """Yield the records.

        Raises:
            TraceFileError: The file cannot be read.
        """
        for batch in self.batches(_TOLD, _BATCH):
            yield from self._records(batch)

    def records_about(self, keys: Collection[str]) -> Iterator[TraceLine]:
        """Yield the records with certain keys.

        Raises:
            TraceFileError: The file cannot be read.
        """
        wanted = pa.array(keys, pa.string())
        for batch in self.batches(_TOLD, _BATCH):
            key = batch.column("key")
            is_wanted = pc.is_in(key.dictionary, value_set=wanted).take(key.indices)
            yield from self._records(batch.filter(is_wanted))

    def batches(self, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Yield some columns of all records, with texts encoded as indices into a dictionary.

        Args:
            names: The columns.
            size: Maximal number of records of a batch.

        Raises:
            TraceFileError: The file cannot be read.
        """
        try:
            with self.opened() as file:
                # Spark runs a task on each core: more threads would delay each other.
                yield from pq.ParquetFile(file, read_dictionary=names).iter_batches(
                    size, columns=names, use_threads=False
                )
        except (OSError, pa.ArrowException) as exc:
            raise unreadable(self.name, exc) from exc

    @property
    def writer(self) -> tuple[str, str]:
        """Return the run and the process that wrote all records of the file."""
        run, node = writer_of(self.name) or ("", "")
        return _name(run), _name(node)

    def _records(self, batch: pa.RecordBatch) -> Iterator[TraceLine]:
        columns = {name: _values(batch.column(name)) for name in _TOLD}
        named = dict(zip(_NAMED, self.writer, strict=True))
        fields = (columns.get(name) or repeat(named.get(name), len(batch)) for name in READ)
        return map(TraceLine, *fields)


def _name(text: str) -> str:
    return "" if text == _EMPTY else text


def _values(column: pa.Array) -> _Column | None:
    """Return the values of a column, or None if the column has no values."""
    if column.null_count == len(column):
        return None
    if not pa.types.is_dictionary(column.type):
        return cast("_Column", column.to_pylist())
    # Each text is made once; a trace has few, and repeats them often.
    texts = [*column.dictionary.to_pylist(), None]
    return [texts[place] for place in column.indices.fill_null(len(texts) - 1).to_pylist()]


@attrs.frozen
class NotesPart:
    """Reader of a file of `convert` with the lines of a trace that were no valid records.

    Attributes:
        name: Path or URL.
        opened: Opens the file for reading.
    """

    name: str
    opened: Callable[[], BinaryIO]

    def lines(self) -> Iterator[TraceLine | BadLine]:
        """Yield the lines that were no records.

        Raises:
            TraceFileError: The file cannot be read.
        """
        for note in self._notes():
            if "line" in note:
                yield BadLine(note["file"], int(note["line"]), note["reason"], note["text"])

    def silent(self) -> Iterator[tuple[str, str]]:
        """Yield run and node of processes without a record.

        Raises:
            TraceFileError: The file cannot be read.
        """
        for note in self._notes():
            if "line" not in note:
                yield note["run"], note["node"]

    def _notes(self) -> Iterator[dict[str, str]]:
        try:
            with self.opened() as file:
                yield from map(orjson.loads, file)
        except OSError as exc:
            raise unreadable(self.name, exc) from exc
