"""Read many trace records at once as columns, with the fields that state machine checks need.

Parquet files contain such columns. Lines of JSON are read in one of two ways, both of which find
the same records as the reference reader, `fsm.judge.trace_line`.

1. Plain lines are read by Arrow: lines without an escape or a second brace, as processes write
   them. It is more lenient than the reference (it skips fields it does not know, reads several
   objects of a line, NaN, and fractions too large for a number), so each of these is excluded: a
   plain line has one pair of braces, at its ends; and the quotation marks of all lines are as many
   as the fields and texts that were found need. Arrow itself refuses a field that is there twice,
   or has a value of another type.
2. All other lines are decoded by the reader of `fsm.judge.trace_line`. Only the decoder of JSON is
   called for many lines at once: between two lines stands a number that is in neither, and all of
   these numbers, and exactly one object between any two, must come out on the outermost level. That
   number has one spelling, and no fraction equals it. So each line is one object, the same as if it
   had been decoded by itself.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
from pyarrow import json as pa_json

from fsm.judge.trace_files import LinesPart, PackedRestError, Part, lines_of
from fsm.judge.trace_line import (
    FIELDS,
    BadTraceLineError,
    Reader,
    TraceLine,
    are_records,
    needed_fields,
)
from spark.files import ColumnsPart
from specs.errors import ProtoflyError

ROWS: Final = 1 << 20
"""Maximal number of records of a batch."""

BLOCK: Final = 1 << 21
"""Bytes of lines that are read at a time: decoded, they fit into the caches of a processor."""

_NUMBERS: Final = {"ln": pa.int64(), "t": pa.float64()}
_TEXTS: Final = ("k", "op", "machine", "key", "old", "new", "cause")
_COLUMNS: Final = (*_NUMBERS, *_TEXTS)
_WRITER: Final = ("run", "node")
_KINDS: Final = _NUMBERS | dict.fromkeys((*_WRITER, *_TEXTS), pa.string())

_ARROW: Final[Mapping[type, pa.DataType]] = {
    int: pa.int64(), float: pa.float64(), str: pa.string(),
}  # fmt: skip

_END, _QUOTE, _ESCAPE, _OPENS, _CLOSES = b'\n"\\{}'
_CONTROLS: Final = ord(" ")
_TOO_LARGE: Final = 2.0**63
"""Larger numbers are decoded by the reference reader, which keeps whole numbers exact."""

_Columns: TypeAlias = dict[str, pa.Array]
_Places: TypeAlias = npt.NDArray[np.int64]

_FENCE: Final = 7_776_665_554_443_332_221
"""Number written between lines that are decoded together; no fraction in JSON equals it."""


class UndecidedError(ProtoflyError):
    """Columns do not suffice for a reliable result: check record by record instead."""


Batch: TypeAlias = tuple[str, str, pa.RecordBatch]
"""Run and node of a process, and columns of records that follow each other: numbers, and texts as
places in a dictionary."""


def batches_of(part: Part, size: int = BLOCK) -> Iterator[Batch]:
    """Yield the records of a file.

    Raises:
        TraceFileError: The file cannot be read.
        UndecidedError: A line is no record, or records of several processes are mixed.
    """
    if isinstance(part, ColumnsPart):
        for columns in part.batches(_COLUMNS, ROWS):
            yield *part.writer, columns
    elif isinstance(part, LinesPart):
        lines = _Lines()
        try:
            for block in part.blocks(size):
                yield lines.batch(block)
        except PackedRestError as exc:
            raise UndecidedError(exc.reason) from exc
    else:
        raise UndecidedError(f"{part.name} has no records")


class _Lines:
    """Reader of blocks of lines of a file, which remembers the fields of earlier blocks."""

    def __init__(self) -> None:
        self._reader = Reader((*_WRITER, *_COLUMNS))
        self._fields: dict[str, pa.DataType] = {}

    def batch(self, block: bytes) -> Batch:
        """Return the records in a block of whole lines as columns.

        Raises:
            UndecidedError: A line is no record, or processes are mixed.
        """
        try:
            told = self._columns(block)
        except (BadTraceLineError, ValueError) as exc:
            raise UndecidedError("not every line is a record") from exc
        runs, nodes = (told.pop(name).unique() for name in _WRITER)
        if len(runs) > 1 or len(nodes) > 1:
            raise UndecidedError("there are records of several processes")
        columns = {
            name: column.dictionary_encode() if name in _TEXTS else column
            for name, column in told.items()
        }
        return runs[0].as_py(), nodes[0].as_py(), pa.RecordBatch.from_pydict(columns)

    def _columns(self, block: bytes) -> _Columns:
        odd = _odd_lines(block)
        if odd is None:
            told = _by_arrow(block, self._fields)
            return told or self._decode(lines_of(block))
        lines = lines_of(block)
        is_plain = np.ones(len(lines), np.bool_)
        is_plain[odd] = False
        plain = np.flatnonzero(is_plain)
        whole = b"".join(b"%b\n" % lines[place] for place in plain.tolist())
        told = _by_arrow(whole, self._fields)
        if told is None:
            return self._decode(lines)
        rest = self._decode([lines[place] for place in odd.tolist()])
        return _in_order((told, rest), (plain, odd))

    def _decode(self, lines: Sequence[bytes]) -> _Columns:
        objects = _objects(lines)
        present = set().union(*objects)
        self._fields |= {name: _ARROW[kind] for name, kind in FIELDS.items() if name in present}
        return _by_shapes(objects) or _one_by_one(self._reader, objects)


def _odd_lines(block: bytes) -> _Places | None:
    """Return the indices of lines that are not plain; None: all are plain.

    Raises:
        ValueError: The lines are no UTF-8.
    """
    if not block.isascii():
        block.decode()
    marks = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    ends = np.flatnonzero(marks == _END)
    begins = np.append(0, ends[:-1] + 1)
    is_framed = (marks[begins] == _OPENS) & (marks[ends - 1] == _CLOSES)
    if (
        is_framed.all()
        and b"\\" not in block
        and np.count_nonzero(marks < _CONTROLS) == len(ends)
        and np.count_nonzero(marks == _OPENS) == np.count_nonzero(marks == _CLOSES) == len(ends)
    ):
        return None
    for mark in (_OPENS, _CLOSES):
        is_framed &= np.add.reduceat(marks == mark, begins, dtype=np.int64) == 1
    unfit = np.flatnonzero((marks == _ESCAPE) | (marks < _CONTROLS) & (marks != _END))
    is_framed[np.searchsorted(ends, unfit)] = False
    return np.flatnonzero(~is_framed)


def _by_arrow(block: bytes, fields: Mapping[str, pa.DataType]) -> _Columns | None:
    """Read plain lines with Arrow; None: the lines must be decoded one by one.

    Args:
        block: The lines.
        fields: The expected fields.
    """
    if not fields or not block:
        return None
    try:
        table = pa_json.read_json(
            pa.BufferReader(block),
            pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            pa_json.ParseOptions(pa.schema(fields.items()), unexpected_field_behavior="ignore"),
        )
    except pa.ArrowException:
        return None
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    present = {name: len(column) - column.null_count for name, column in columns.items()}
    texts = sum(count for name, count in present.items() if FIELDS[name] is str)
    quotes = np.count_nonzero(np.frombuffer(block, np.uint8) == _QUOTE)
    if quotes != 2 * (sum(present.values()) + texts) or not _are_all(columns):
        return None
    return {
        name: columns[name] if name in columns else pa.nulls(len(table), kind)
        for name, kind in _KINDS.items()
    }


def _are_all(columns: Mapping[str, pa.Array]) -> bool:
    """Return whether each row is a record."""
    fractions = (columns[name] for name in columns if FIELDS[name] is float)
    if not all(map(_are_plain, fractions)) or "k" not in columns or columns["k"].null_count:
        return False
    nothing = pa.nulls(len(columns["k"]), pa.string())
    kinds, ops = (columns.get(name, nothing).dictionary_encode() for name in ("k", "op"))
    codes = kinds.indices.to_numpy() * (len(ops.dictionary) + 1)
    codes = codes + ops.indices.fill_null(len(ops.dictionary)).to_numpy()
    for code, place in zip(*np.unique(codes, return_index=True), strict=True):
        fields = needed_fields(kinds[place].as_py(), ops[place].as_py())
        if fields is None or not columns.keys() >= set(fields):
            return False
        absent = (columns[name] for name in fields if columns[name].null_count)
        if any((codes == code)[_absent(column)].any() for column in absent):
            return False
    return True


def _absent(column: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return flags


def _are_plain(column: pa.Array) -> bool:
    """Return whether a column reads each number as Python's reader does, however it is spelt."""
    numbers = column.drop_null().to_numpy()
    return bool(((numbers < _TOO_LARGE) & ~np.signbit(numbers)).all())


def _in_order(parts: Iterable[_Columns], places: Iterable[_Places]) -> _Columns:
    """Join groups of rows, and put each row at its given index."""
    order = np.argsort(np.concatenate([*places]))
    told = [*parts]
    return {name: pa.concat_arrays([part[name] for part in told]).take(order) for name in _KINDS}


def _by_shapes(objects: Sequence[Mapping[str, object]]) -> _Columns | None:
    """Return the columns of objects, grouped by their fields; None: there are too many groups."""
    shapes: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, each in enumerate(objects):
        shapes[*each,].append(place)
    pieces: list[_Columns] = []
    for shape, places in shapes.items():
        values = zip(*[objects[place].values() for place in places], strict=True)
        columns = dict(zip(shape, values, strict=True))
        if not are_records(columns):
            return None
        pieces.append(
            {
                name: pa.array(columns[name], kind)
                if name in columns
                else pa.nulls(len(places), kind)
                for name, kind in _KINDS.items()
            }
        )
    return _in_order(pieces, map(np.array, shapes.values()))


def _one_by_one(reader: Reader, objects: Sequence[Mapping[str, object]]) -> _Columns:
    rows = [*map(reader.of, objects)]
    told = dict(zip(reader.names, zip(*rows, strict=True), strict=True))
    return {name: pa.array(told[name], kind) for name, kind in _KINDS.items()}


def _objects(lines: Sequence[bytes]) -> Sequence[Mapping[str, object]]:
    """Decode lines, each of which must be an object.

    Raises:
        ValueError: A line is no object, or that is not certain.
    """
    text = (b",%d," % _FENCE).join(lines)
    told = orjson.loads(b"[%b]" % text)
    fences, objects = told[1::2], told[::2]
    is_fenced = len(objects) == len(lines) and fences.count(_FENCE) == len(fences)
    if not is_fenced or text.count(b"%d" % _FENCE) != len(fences):
        raise ValueError("lines run into each other")
    if set(map(type, objects)) != {dict}:
        raise ValueError("a line is no object")
    return cast("Sequence[Mapping[str, object]]", objects)


def records_about(part: Part, keys: Collection[str]) -> Iterator[TraceLine]:
    """Yield the records of a file with certain keys.

    Args:
        part: The file.
        keys: The keys of entities.

    Raises:
        TraceFileError: The file cannot be read.
    """
    if isinstance(part, ColumnsPart):
        yield from part.records_about(keys)
        return
    for line in part.lines():
        if isinstance(line, TraceLine) and line.key in keys:
            yield line
