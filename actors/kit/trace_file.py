"""The trace of one process as JSON Lines: stamped, in order, without delay to the process.

The files are parts of bounded size with whole lines only.

Records are encoded where they are made and written by a thread. When the disk is
slower than the process, the buffer fills, further records are counted and not kept,
and a `dropped` record has their number as soon as there is room again.
"""

import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final, Protocol, Unpack, final
from uuid import uuid4
from weakref import ref

import attrs
import orjson
import trio
from typing_extensions import override

from actors.kit.errors import TraceDirectoryError
from actors.kit.log import get_logger
from actors.kit.trace import More, Ruling, Tracer, message_fields, ruling_fields, step_fields
from fsm.engine import Step
from fsm.machine_list import MACHINES
from specs.limits import protocol as limits
from specs.message import Message
from specs.trace import BODIES, SCHEMA, Fact, Kind, Op, trace_folder

__all__ = ["FileTracer", "TraceParts", "keep_trace", "node_directory", "open_part", "open_trace"]

_log = get_logger("actors.kit")

_WIRE_NAMES: Final = {
    field.name: "from" if field.name == "from_" else field.name for field in attrs.fields(Fact)
}

_PRIVATE, _PRIVATE_FOLDER = 0o600, 0o700

_KEPT: Final = 1024
"""Texts kept at most; each is some 400 bytes (ours)."""


class PartFile(Protocol):
    """The file of a part: unbuffered, so that an error shows at once."""

    def write(self, data: memoryview, /) -> int | None:
        """Write some of the data; return how many bytes."""

    def close(self) -> None:
        """Close the file."""


OpenPart = Callable[[Path], PartFile]


def open_part(path: Path) -> PartFile:
    """Make a new file for its owner only; one that exists is an error."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    return os.fdopen(handle, "wb", buffering=0)


def node_directory(directory: Path, run: str, node: str) -> Path:
    """Make and return the directory of one node's trace of one run, for its owner only.

    Args:
        directory: Directory of the traces.
        run: Name of the run.
        node: Name of the process.

    Raises:
        TraceDirectoryError: It cannot be made, or is there already.
    """
    path = directory / trace_folder(run, node)
    try:
        for parent in reversed(path.parents):
            if not parent.exists():
                parent.mkdir(_PRIVATE_FOLDER, exist_ok=True)
        path.mkdir(_PRIVATE_FOLDER)
    except OSError as error:
        raise TraceDirectoryError(path, str(error.strerror)) from error
    return path


@final
class TraceParts:
    """Writes lines to one part after the other; blocks, so call it in a thread.

    What has reached the disk is always a prefix of what was given, to the byte: a
    write that fails keeps what it could not write for the next.
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
        """True if a write failed and its lines still wait."""
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


@final
class _MessageText:
    """Writes the fields of `message_fact` as the inside of a JSON object.

    A message passes many hops, and at all of them most fields are the same; so
    that text is made once for each instance and kept while the instance lives.
    """

    def __init__(self, *, has_bodies: bool, has_names: bool) -> None:
        self._has_bodies = has_bodies
        self._has_names = has_names
        self._heads: dict[tuple[str, Op], bytes] = {}
        self._kept: dict[int, tuple[ref[Message], bytes]] = {}

    def write(self, actor: str, op: Op, message: Message, more: More) -> bytes:
        """Return all fields, the actor's first, without the braces.

        Raises:
            TypeError: Something has no place in JSON.
        """
        head = self._heads.get((actor, op)) or self._write_head(actor, op)
        kept = self._kept.get(id(message))
        # Another message may have had this id, and be gone.
        same = self._write_same(message) if kept is None or kept[0]() is not message else kept[1]
        return b"%b,%b,%b" % (head, same, orjson.dumps(more)[1:-1]) if more else head + b"," + same

    def _write_head(self, actor: str, op: Op) -> bytes:
        head = orjson.dumps({"actor": actor, "k": Kind.MSG, "op": op})[1:-1]
        if len(self._heads) >= _KEPT:
            self._heads.clear()
        self._heads[actor, op] = head
        return head

    def _write_same(self, message: Message) -> bytes:
        fields = message_fields(message, has_body=self._has_bodies, has_name=self._has_names)
        text = orjson.dumps({_WIRE_NAMES[name]: value for name, value in fields.items()})[1:-1]
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[id(message)] = (ref(message), text)
        return text


@final
class FileTracer(Tracer):
    """Stamps and encodes facts; `keep_trace` takes the lines from it.

    Attributes:
        run: Name of this run: when it started, in UTC, and what makes it unique.
    """

    hops = True

    def __init__(
        self,
        node: str,
        buffer: int = limits.TRACE_BUFFER,
        *,
        bodies: bool = False,
        names: bool = False,
    ) -> None:
        self.bodies = bodies
        self.names = names
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{uuid4().hex[:8]}"
        self.dropped = 0
        self._undeclared = 0
        self._head = orjson.dumps({"run": self.run, "node": node})[:-1]
        self._texts = _MessageText(has_bodies=bodies, has_names=names)
        self._buffer = buffer
        self._lines: list[bytes] = []
        self._last = 0
        self.has_lines = trio.Event()
        self.is_half_full = trio.Event()

    @override
    def record(self, actor: str, fact: Fact) -> None:
        if self._has_room():
            self._append(actor, fact)
            self._ring()

    @override
    def step(self, actor: str, step: Step) -> None:
        if self._has_room():
            self._write({"actor": actor, **step_fields(step)})
            self._ring()

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        if self._has_room():
            try:
                self._stamp(self._texts.write(actor, op, message, more))
            except TypeError:
                self._drop(1)
            self._ring()

    @override
    def ruled(self, actor: str, message: Message, **ruling: Unpack[Ruling]) -> None:
        if self._has_room():
            fields = ruling_fields(message, ruling)
            self._write({"actor": actor} | {k: v for k, v in fields.items() if v is not None})
            self._ring()

    def _has_room(self) -> bool:
        """Return whether one more can be kept; if not, it is counted."""
        if len(self._lines) >= self._buffer:
            self._drop(1)
            return False
        if self._undeclared:
            self._write_drops()
        return True

    def _ring(self) -> None:
        if not self.has_lines.is_set():
            self.has_lines.set()
        if 2 * len(self._lines) >= self._buffer:
            self.is_half_full.set()

    def take(self) -> list[bytes]:
        """Take the lines gathered so far, the count of drops with them."""
        if self._undeclared:
            self._write_drops()
        lines, self._lines = self._lines, []
        self.has_lines = trio.Event()
        self.is_half_full = trio.Event()
        return lines

    def end(self) -> None:
        """Write that the run ended orderly; there is always room for this."""
        if self._undeclared:
            self._write_drops()
        self._append("trace", Fact(k=Kind.END))

    def _write_drops(self) -> None:
        count, self._undeclared = self._undeclared, 0
        self._append("trace", Fact(k=Kind.DROPPED, count=count))

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._undeclared += count

    def _append(self, actor: str, fact: Fact) -> None:
        fields = {name: getattr(fact, field) for field, name in _WIRE_NAMES.items()}
        self._write({"actor": actor} | {k: v for k, v in fields.items() if v is not None})

    def _write(self, fields: Mapping[str, object]) -> None:
        try:
            self._stamp(orjson.dumps(fields)[1:-1])
        except TypeError:
            # Text that is no Unicode, a number JSON has no place for: a bug above.
            self._drop(1)

    def _stamp(self, fields: bytes) -> None:
        """Put process, actor and time in front, and keep the line."""
        self._last += 1
        self._lines.append(
            b'%b,"ln":%d,"wall_ns":%d,"mono_ns":%d,"t":%.6f,%b}\n'
            % (
                self._head,
                self._last,
                time.time_ns(),
                time.monotonic_ns(),
                trio.current_time(),
                fields,
            )
        )


@asynccontextmanager
async def open_trace(
    directory: Path, node: str, *, bodies: bool = False, names: bool = False
) -> AsyncIterator[Tracer]:
    """Keep what is recorded while inside in `DIR/run=<start>-<id>/node=<node>/part-*.jsonl`.

    Each call begins a run of its own, for any content of the directory.
    The first record is START (`val` the schema, `machine` the declared machines,
    joined by `|`). The last is END if the inside was left orderly; a trace without
    it shows a crash or a cancellation.

    Args:
        directory: Directory of traces.
        node: Name of the process.
        bodies: Whether records of the framework's messages have their bodies, redacted.
        names: Whether records of messages name the users who sent them.

    Raises:
        TraceDirectoryError: The directory cannot be made or written.
    """
    tracer = FileTracer(node, bodies=bodies, names=names)
    path = node_directory(directory, tracer.run, node)
    async with keep_trace(tracer, TraceParts(path)):
        yield tracer


@asynccontextmanager
async def keep_trace(tracer: FileTracer, parts: TraceParts) -> AsyncIterator[None]:
    """Write what the tracer gathers to the parts while inside; `open_trace` in two.

    Args:
        tracer: Destination of the records.
        parts: The parts.

    Raises:
        TraceDirectoryError: The first part cannot be written.
    """
    declared = "|".join(sorted(MACHINES))
    kind = BODIES if tracer.bodies else None
    tracer.record("trace", Fact(k=Kind.START, val=SCHEMA, machine=declared, kind=kind))
    try:
        parts.write(tracer.take())
    except OSError as error:
        parts.close()
        raise TraceDirectoryError(parts.directory, str(error.strerror)) from error
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_write_on, tracer, parts)
            yield
            nursery.cancel_scope.cancel()
        tracer.end()
    finally:
        _write_last(tracer, parts)


async def _write_on(tracer: FileTracer, parts: TraceParts) -> None:
    is_alarmed, lost_before = False, 0
    while True:
        if not parts.is_behind:
            await tracer.has_lines.wait()
        with trio.move_on_after(limits.TRACE_FLUSH):
            await tracer.is_half_full.wait()
        lines = [] if parts.is_behind else tracer.take()
        lost_before = lost_before if is_alarmed else tracer.dropped
        try:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(parts.write, lines)
        except OSError as error:
            if not is_alarmed:
                _log.error("the trace cannot be written", reason=error.strerror)
            is_alarmed = True
        else:
            if is_alarmed:
                # What is not in it is counted in the trace, too.
                lost = tracer.dropped - lost_before
                _log.info("trace resumed", records_lost=lost)
            is_alarmed = False


def _write_last(tracer: FileTracer, parts: TraceParts) -> None:
    lines = tracer.take()
    try:
        parts.write(lines)
    except OSError as error:
        _log.error("the end of the trace is lost", reason=error.strerror, lines=len(lines))
    finally:
        parts.close()
