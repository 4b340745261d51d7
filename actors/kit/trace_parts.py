"""The files of one process's trace: parts of bounded size, whole lines only."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol, final

from actors.kit.errors import TraceDirectoryError
from specs.limits import protocol as limits
from specs.trace import trace_folder

__all__ = ["OpenPart", "PartFile", "TraceParts", "node_directory", "open_part"]


class PartFile(Protocol):
    """What a part needs of a file: unbuffered, so that an error is an error now."""

    def write(self, data: memoryview, /) -> int | None:
        """Write some of the data; return how many bytes."""

    def close(self) -> None:
        """Let go of it."""


OpenPart = Callable[[Path], PartFile]


def open_part(path: Path) -> PartFile:
    """Make a new file; one that exists is an error."""
    return path.open("xb", buffering=0)


def node_directory(directory: Path, run: str, node: str) -> Path:
    """Make and return the directory of one node's trace of one run.

    Raises:
        TraceDirectoryError: It cannot be made, or is there already.
    """
    path = directory / trace_folder(run, node)
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise TraceDirectoryError(path, str(error.strerror)) from error
    return path


@final
class TraceParts:
    """Writes lines to one part after the other; blocks, so call it in a thread.

    What has reached the disk is always a prefix of what was given, to the byte: a
    write that fails keeps what it could not write for the next.

    Attributes:
        directory: Where the parts are.
    """

    def __init__(
        self,
        directory: Path,
        part_bytes: int = limits.TRACE_FILE_BYTES,
        opener: OpenPart = open_part,
    ) -> None:
        self.directory = directory
        self._part_bytes = part_bytes
        self._open = opener
        self._numbers = count()
        self._waiting: deque[bytes] = deque()
        self._file: PartFile | None = None
        self._room = 0

    @property
    def is_behind(self) -> bool:
        """Whether a write failed and its lines still wait."""
        return bool(self._waiting)

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines, each with its newline, after what the last write left.

        Raises:
            OSError: The disk is full or gone; nothing is lost, call again later.
        """
        self._waiting.extend(lines)
        while self._waiting:
            self._write_some(*self._gather())

    def close(self) -> None:
        """Close the part that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _gather(self) -> tuple[PartFile, bytes]:
        """Take what fits into the open part, at least one line."""
        if self._file is None or self._room < len(self._waiting[0]):
            self.close()
            self._file = self._open(self.directory / f"part-{next(self._numbers):05}.jsonl")
            self._room = self._part_bytes
        size = sum(map(len, self._waiting))
        if size <= self._room:
            self._room -= size
            whole = b"".join(self._waiting)
            self._waiting.clear()
            return self._file, whole
        taken = [self._waiting.popleft()]
        self._room -= len(taken[0])
        while self._waiting and len(self._waiting[0]) <= self._room:
            self._room -= len(self._waiting[0])
            taken.append(self._waiting.popleft())
        return self._file, b"".join(taken)

    def _write_some(self, file: PartFile, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[file.write(rest) or 0 :]
        finally:
            if rest:
                self._waiting.appendleft(bytes(rest))
                self._room += len(rest)
