"""The fields of records by which machines are judged, as columns of many records.

They come from Parquet as they are, and from lines by the reader of `fsm.judge.trace_line`, so that
a line is a record here if it is one there. Only the decoder of JSON is called for many lines at
once: between two lines stands a number that is in neither, and all of these numbers, and exactly
one object between any two, must come out on the outermost level. That number has one spelling, and
no fraction equals it. So each line is one object, the same as if it had been decoded by itself.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast, final

import attrs
import numpy as np
import orjson
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from fsm.judge.trace_files import LinesPart, PackedRestError, Part
from fsm.judge.trace_line import BadTraceLineError, Reader, TraceLine, are_records
from spark.files import ColumnsPart
from specs.errors import ProtoflyError

__all__ = ["ROWS", "Batch", "UndecidedError", "batches_of", "records_about"]

ROWS: Final = 1 << 20
"""The most records of a batch."""

_BYTES: Final = 1 << 21
"""Of lines that are read at a time: decoded, few enough for the caches of a processor."""

_NUMBERS: Final = {"ln": pa.int64(), "t": pa.float64()}
_TEXTS: Final = ("k", "op", "machine", "key", "old", "new", "cause")
_COLUMNS: Final = (*_NUMBERS, *_TEXTS)
_WRITER: Final = ("run", "node")
_KINDS: Final = _NUMBERS | dict.fromkeys((*_WRITER, *_TEXTS), pa.string())

_FENCE: Final = 7_776_665_554_443_332_221
"""Odd and greater than 2**53: no fraction equals it."""


@final
class UndecidedError(ProtoflyError):
    """Columns do not decide it: judge record by record."""


@final
@attrs.frozen
class Batch:
    """Records of one process that follow each other.

    Attributes:
        columns: Numbers, and texts as places in a dictionary.
    """

    run: str
    node: str
    columns: pa.RecordBatch


def batches_of(part: Part) -> Iterator[Batch]:
    """Yield the records of a file.

    Raises:
        TraceFileError: The file cannot be read.
        UndecidedError: Something in it is no record, or records of several processes are mixed.
    """
    if isinstance(part, ColumnsPart):
        for columns in part.batches(_COLUMNS, ROWS):
            yield Batch(*part.writer, columns)
    elif isinstance(part, LinesPart):
        reader = Reader((*_WRITER, *_COLUMNS))
        try:
            for lines in part.texts(_BYTES):
                yield _batch(reader, lines)
        except PackedRestError as exc:
            raise UndecidedError(exc.reason) from exc
    else:
        raise UndecidedError(f"{part.name} has no records")


def _batch(reader: Reader, lines: Sequence[bytes]) -> Batch:
    try:
        objects = _decoded(lines)
        told = _by_shapes(objects) or _one_by_one(reader, objects)
    except (BadTraceLineError, ValueError) as exc:
        raise UndecidedError("not every line is a record") from exc
    runs, nodes = (told.pop(name).unique() for name in _WRITER)
    if len(runs) > 1 or len(nodes) > 1:
        raise UndecidedError("there are records of several processes")
    return Batch(runs[0].as_py(), nodes[0].as_py(), pa.RecordBatch.from_pydict(told))


def _by_shapes(objects: Sequence[Mapping[str, object]]) -> dict[str, pa.Array] | None:
    """Return the columns of objects, those with the same fields together; None: not so easily."""
    shapes: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(objects):
        shapes[*one,].append(place)
    pieces: dict[str, list[pa.Array]] = {name: [] for name in _KINDS}
    for shape, places in shapes.items():
        values = zip(*[objects[place].values() for place in places], strict=True)
        columns = dict(zip(shape, values, strict=True))
        if not are_records(columns):
            return None
        for name, kind in _KINDS.items():
            there = columns.get(name)
            piece = pa.nulls(len(places), kind) if there is None else pa.array(there, kind)
            pieces[name].append(piece)
    order = np.argsort(np.concatenate([*shapes.values()]))
    whole = {name: pa.concat_arrays(parts).take(order) for name, parts in pieces.items()}
    return {
        name: column.dictionary_encode() if name in _TEXTS else column
        for name, column in whole.items()
    }


def _one_by_one(reader: Reader, objects: Sequence[Mapping[str, object]]) -> dict[str, pa.Array]:
    rows = [*map(reader.of, objects)]
    told = dict(zip(reader.names, zip(*rows, strict=True), strict=True))
    columns = {name: pa.array(told[name], kind) for name, kind in _KINDS.items()}
    return columns | {name: columns[name].dictionary_encode() for name in _TEXTS}


def _decoded(lines: Sequence[bytes]) -> Sequence[Mapping[str, object]]:
    """Decode lines, each of which must be an object.

    Raises:
        ValueError: One is none, or it is not known.
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
