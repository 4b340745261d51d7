"""The fields of records by which machines are judged, as columns of many records.

They come from Parquet as they are, and from lines by the reader of `fsm.judge.trace_line`, so that
a line is a record here if it is one there. Only the decoder of JSON is called for many lines at
once: between two lines stands a number that is in neither, and all of these numbers, and exactly
one object between any two, must come out on the outermost level. That number has one spelling, and
no fraction equals it. So each line is one object, the same as if it had been decoded by itself.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast, final

import attrs
import orjson
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from fsm.judge.trace_files import LinesPart, PackedRestError, Part
from fsm.judge.trace_line import BadTraceLineError, Reader, TraceLine
from spark.files import ColumnsPart
from specs.errors import ProtoflyError

__all__ = ["ROWS", "Batch", "UndecidedError", "batches_of", "records_about"]

ROWS: Final = 1 << 20
"""The most records of a batch."""

_BYTES: Final = 1 << 23
"""Of lines that are read at a time."""

_NUMBERS: Final = {"ln": pa.int64(), "t": pa.float64()}
_TEXTS: Final = ("k", "op", "machine", "key", "old", "new", "cause")
_COLUMNS: Final = (*_NUMBERS, *_TEXTS)

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
        reader = Reader(("run", "node", *_COLUMNS))
        try:
            for lines in part.texts(_BYTES):
                yield _batch(reader, lines)
        except PackedRestError as exc:
            raise UndecidedError(exc.reason) from exc
    else:
        raise UndecidedError(f"{part.name} has no records")


def _batch(reader: Reader, lines: Sequence[bytes]) -> Batch:
    try:
        rows = [*map(reader.of, _decoded(lines))]
    except (BadTraceLineError, ValueError) as exc:
        raise UndecidedError("not every line is a record") from exc
    told = dict(zip(reader.names, zip(*rows, strict=True), strict=True))
    writers = set(zip(told["run"], told["node"], strict=True))
    if len(writers) > 1:
        raise UndecidedError("there are records of several processes")
    (run, node) = writers.pop()
    columns = {name: pa.array(told[name], kind) for name, kind in _NUMBERS.items()}
    columns |= {name: pa.array(told[name], pa.string()).dictionary_encode() for name in _TEXTS}
    return Batch(cast("str", run), cast("str", node), pa.RecordBatch.from_pydict(columns))


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
