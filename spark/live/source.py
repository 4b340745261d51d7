"""A source of streams that follows the parts of traces while they grow.

Spark's own source of files takes a file once, when it is complete. This one remembers how many
bytes of each part were taken: that is its offset, which Spark keeps in the checkpoint.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes
from pyspark.sql.types import StructType
from typing_extensions import override

from spark.files import shared_out
from spark.schemas import PIECE

__all__ = ["TraceSource", "sizes_of"]

_Offset: TypeAlias = dict[str, int]
"""By the name of a file, how many of its bytes were taken."""

_PIECE: Final = 1 << 20
"""Bytes in a row at most."""

_ROUND: Final = 64 << 20
"""Bytes in a round at most, so that what a round holds in memory is bounded."""

_SHARE: Final = 64 << 10
"""Bytes that each folder may give in a round however many there are."""


def sizes_of(directory: Path) -> dict[str, int]:
    """Return the sizes of the parts under a directory, in the order in which they are written."""
    # A part is listed before its size is asked for: what a later part follows is then complete.
    parts = sorted(directory.rglob("part-*.jsonl"))
    return {str(part.relative_to(directory)): part.stat().st_size for part in parts}


@final
class TraceSource(DataSource):
    """Pieces of traces as they are written.

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


@final
@attrs.frozen
class _Span(InputPartition):
    """Pieces that one task reads: of each, the file, where it begins and where it ends."""

    pieces: tuple[tuple[str, int, int], ...]


@final
class TraceReader(DataSourceStreamReader):
    """Reads what was added to parts, each byte once and those of a folder in their order."""

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
    """Return how far to read next.

    Args:
        start: What was taken of each file.
        sizes: How much there is of each file, those of a folder in their order.
        limit: How much may be taken.
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
