"""The trace of one process as JSON Lines: stamped, in order, never in the way.

Records are encoded where they are made and written by a thread. When the disk is
slower than the process, the buffer fills, further records are counted and not kept,
and a `dropped` record tells how many as soon as there is room again.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Final, Unpack, final
from uuid import uuid4

import attrs
import orjson
import structlog
import trio
from typing_extensions import override

from actors.kit.errors import TraceDirectoryError
from actors.kit.trace_message import MessageText, More, Ruling, ruling_text
from actors.kit.trace_parts import TraceParts, node_directory
from actors.kit.trace_state import step_text
from actors.kit.tracer import Tracer
from fsm.engine import Step
from fsm.machine_list import MACHINES
from specs.limits import protocol as limits
from specs.message import Message
from specs.trace import SCHEMA, Fact, Kind, Op

__all__ = ["FileTracer", "keep_trace", "open_trace"]

_log = structlog.get_logger("actors.kit")

_FIELDS: Final = tuple(field.name for field in attrs.fields(Fact))
_NAMES: Final = tuple("from" if name == "from_" else name for name in _FIELDS)
_values = attrgetter(*_FIELDS)


@final
class FileTracer(Tracer):
    """Stamps and encodes facts; `keep_trace` takes the lines from it.

    Attributes:
        run: Name of this run: when it started, in UTC, and what makes it unique.
        dropped: Records dropped so far.
    """

    hops = True

    def __init__(self, node: str, buffer: int = limits.TRACE_BUFFER) -> None:
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{uuid4().hex[:8]}"
        self.dropped = 0
        self._undeclared = 0
        self._head = orjson.dumps({"run": self.run, "node": node})[:-1]
        self._texts = MessageText()
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
            try:
                self._stamp(step_text(actor, step))
            except TypeError:
                self._drop(1)
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
            try:
                self._stamp(ruling_text(actor, message, ruling))
            except TypeError:
                self._drop(1)
            self._ring()

    def _has_room(self) -> bool:
        """Say whether one more can be kept; if not, it is counted."""
        if len(self._lines) >= self._buffer:
            self._drop(1)
            return False
        if self._undeclared:
            self._tell_drops()
        return True

    def _ring(self) -> None:
        if not self.has_lines.is_set():
            self.has_lines.set()
        if 2 * len(self._lines) >= self._buffer:
            self.is_half_full.set()

    def take(self) -> list[bytes]:
        """Take the lines gathered so far, the count of drops with them."""
        if self._undeclared:
            self._tell_drops()
        lines, self._lines = self._lines, []
        self.has_lines = trio.Event()
        self.is_half_full = trio.Event()
        return lines

    def end(self) -> None:
        """Tell that the run ended orderly; there is always room for this."""
        if self._undeclared:
            self._tell_drops()
        self._append("trace", Fact(k=Kind.END))

    def _tell_drops(self) -> None:
        count, self._undeclared = self._undeclared, 0
        self._append("trace", Fact(k=Kind.DROPPED, count=count))

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._undeclared += count

    def _append(self, actor: str, fact: Fact) -> None:
        pairs = zip(_NAMES, _values(fact), strict=True)
        told = {"actor": actor} | {name: value for name, value in pairs if value is not None}
        try:
            self._stamp(orjson.dumps(told)[1:-1])
        except TypeError:
            # Text that is no Unicode, a number JSON has no place for: a bug above.
            self._drop(1)

    def _stamp(self, told: bytes) -> None:
        """Put who, where and when in front, and keep the line."""
        self._last += 1
        self._lines.append(
            b'%b,"ln":%d,"wall_ns":%d,"mono_ns":%d,"t":%.6f,%b}\n'
            % (
                self._head,
                self._last,
                time.time_ns(),
                time.monotonic_ns(),
                trio.current_time(),
                told,
            )
        )


@asynccontextmanager
async def open_trace(directory: Path, node: str) -> AsyncIterator[Tracer]:
    """Keep what is recorded while inside in `DIR/run=<start>-<id>/node=<node>/part-*.jsonl`.

    Each call begins a run of its own, whatever the directory holds.
    The first record is START (`val` the schema, `machine` the declared machines,
    joined by `|`). The last is END if the inside was left orderly; a trace without
    it tells of a crash or a cancellation.

    Raises:
        TraceDirectoryError: The directory cannot be made or written.
    """
    tracer = FileTracer(node)
    path = node_directory(directory, tracer.run, node)
    async with keep_trace(tracer, TraceParts(path)):
        yield tracer


@asynccontextmanager
async def keep_trace(tracer: FileTracer, parts: TraceParts) -> AsyncIterator[None]:
    """Write what the tracer gathers to the parts while inside; `open_trace` in two."""
    tracer.record("trace", Fact(k=Kind.START, val=SCHEMA, machine="|".join(sorted(MACHINES))))
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
    is_alarmed = False
    while True:
        if not parts.is_behind:
            await tracer.has_lines.wait()
        with trio.move_on_after(limits.TRACE_FLUSH):
            await tracer.is_half_full.wait()
        lines = [] if parts.is_behind else tracer.take()
        try:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(parts.write, lines)
        except OSError as error:
            if not is_alarmed:
                _log.error("the trace cannot be written", reason=error.strerror)
            is_alarmed = True
        else:
            is_alarmed = False


def _write_last(tracer: FileTracer, parts: TraceParts) -> None:
    lines = tracer.take()
    try:
        parts.write(lines)
    except OSError as error:
        _log.error("the end of the trace is lost", reason=error.strerror, lines=len(lines))
    finally:
        parts.close()
