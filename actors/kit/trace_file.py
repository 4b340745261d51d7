"""Trace files of one process: JSON Lines with time stamps, written without delaying the process.

The files have bounded size and contain whole lines only. Records are kept in a list (page), encoded
when it is full, and written by a thread. When the disk is slower than the process, the buffer
fills, further records are counted and not kept, and a `dropped` record has their number as soon as
there is room again.
"""

import math
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, Unpack
from uuid import uuid4

import attrs
import trio
from orjson import dumps
from typing_extensions import override

from actors.kit.errors import TraceDirectoryError
from actors.kit.log import get_logger
from actors.kit.trace import Hop, More, Tracer, digest_from, ends_hash, further_fields
from fsm.engine import Step
from fsm.limits.shares import Memory
from fsm.machine_list import MACHINES
from specs.limits import protocol as limits
from specs.message import DURABLE, Message, MessageType, instance_id
from specs.reply_code import FIRST_FINAL
from specs.trace import ABSENT, BODIES, SCHEMA, Fact, Kind, Op, trace_folder

if TYPE_CHECKING:
    from hashlib import blake2b


_log = get_logger("actors.kit")

_WIRE_NAMES: Final = {
    field.name: "from" if field.name == "from_" else field.name for field in attrs.fields(Fact)
}

_PRIVATE, _PRIVATE_FOLDER = 0o600, 0o700


class PartFile(Protocol):
    """Interface of an open trace file, unbuffered, so that a write error is raised at once."""

    def write(self, data: memoryview, /) -> int | None:
        """Write some of the data; return how many bytes."""

    def close(self) -> None:
        """Close the file."""


OpenPart = Callable[[Path], PartFile]


def open_part(path: Path) -> PartFile:
    """Make a new trace file that only its owner can read; an existing file is an error."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    return os.fdopen(handle, "wb", buffering=0)


def node_directory(directory: Path, run: str, node: str) -> Path:
    """Make and return the directory for the trace files of one process in one run.

    Args:
        directory: Directory of the traces.
        run: Name of the run.
        node: Name of the process.

    Raises:
        TraceDirectoryError: The directory cannot be made, or exists already.
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


class TraceParts:
    """Writer of trace lines to numbered files of bounded size; blocks, so call it in a thread.

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
        self._written = 0
        self._file: PartFile | None = None
        self._room = 0

    @property
    def is_behind(self) -> bool:
        """True if a write failed and the lines are still to be written."""
        return bool(self._waiting)

    def write(self, pages: Sequence[bytes]) -> None:
        """Write pages of whole lines, after what the last write left.

        Raises:
            OSError: The disk is full or gone; nothing is lost, call again later.
        """
        self._waiting.extend(pages)
        while self._waiting:
            if self._file is None or self._room <= 0:
                self.close()
                self._file = self._open(self.directory / f"part-{next(self._numbers):05}.jsonl")
                self._room = self._part_bytes
            self._write_first(self._file)

    def close(self) -> None:
        """Close the current trace file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_first(self, file: PartFile) -> None:
        page = memoryview(self._waiting[0])
        while self._written < len(page):
            self._written += file.write(page[self._written :]) or 0
        self._waiting.popleft()
        self._room -= self._written
        self._written = 0


_Entry: TypeAlias = (
    tuple[str, Hop, Message, int] | tuple[str, str, Step, None] | tuple[str, str, Fact, None]
)
"""What a component reported, not encoded yet: times; of a message, the hop and a number on a link,
and else the actor. A hop has a record for each `Op`, everything else one."""

_Ends: TypeAlias = "tuple[str, str, str, blake2b]"
"""The ends of a message: as they stand inside a text, as fields with its type, and hashed."""

_ANSWERED: Final = 1000
"""Reply codes are less."""


class FileTracer(Tracer):
    """Tracer that collects reports and encodes them in groups (pages), for `keep_trace` to write.

    To report costs the component next to nothing; to encode many records at once costs half as
    much for each. At all hops of a message most fields are the same: their text is made once for
    all records of a page. A page keeps its messages, which are never changed in place.

    Attributes:
        run: Name of this run: when it started, in UTC, and what makes it unique.
        has_lines: Set when there is something to take.
        is_due: Set when so many records wait that they should be written at once.
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
        self.has_lines = trio.Event()
        self.is_due = trio.Event()
        self._undeclared = 0
        self._process = _inside({"run": self.run, "node": node})
        bounds = limits.TRACE_PLACES, limits.TRACE_PLACES_BYTES
        self._hops: Final = Memory[tuple[object, ...], Hop](*bounds)
        self._heads: Final = Memory[tuple[str | None, ...], str](*bounds)
        self._ends: Final = Memory[tuple[MessageType, str, str], _Ends](*bounds)
        self._now = trio.lowlevel.current_clock().current_time
        self._stamp, self._stale = "", -math.inf
        self._last = 0
        self._buffer = buffer
        self._page: list[_Entry] = []
        self._keep = self._page.append
        self._space = 0
        self._pages: list[bytes] = []
        self._waiting = 0

    @override
    def record(self, actor: str, fact: Fact) -> None:
        if len(self._page) < self._space or self._turn(1):
            self._keep((self._time(), actor, fact, None))

    @override
    def step(self, actor: str, step: Step) -> None:
        if len(self._page) < self._space or self._turn(1):
            self._keep((self._time(), actor, step, None))

    @override
    def hop(self, hop: Hop, message: Message, seq: int = 0) -> None:
        if len(self._page) < self._space or self._turn(len(hop.ops) or 1):
            # As `_time`, which would be a call more for each hop of a process.
            now = self._now()
            self._keep((self._stamp if now < self._stale else self._time(), hop, message, seq))

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        kind = (actor, op, *more.items())
        hop = self._hops.get(kind)
        if hop is None:
            texts = [value for value in more.values() if isinstance(value, str)]
            hop = self._hops.keep(kind, Hop(actor, (op,), more), texts)
        self.hop(hop, message)

    def take(self) -> list[bytes]:
        """Return the encoded records so far, with a record of the number of dropped records."""
        if self._undeclared:
            self._declare()
        self._encode()
        pages, self._pages = self._pages, []
        self._waiting = self._space = 0
        self.has_lines = trio.Event()
        self.is_due = trio.Event()
        return pages

    def end(self) -> None:
        """Add the record that the run ended in order; there is always room for this record."""
        if self._undeclared:
            self._declare()
        self._put("trace", Fact(k=Kind.END))

    def _time(self) -> str:
        """Return the time stamps of a record as JSON text."""
        now = self._now()
        if now >= self._stale:
            self._stale = now + limits.TRACE_TICK
            self._stamp = f'"wall_ns":{time_ns()},"mono_ns":{monotonic_ns()},"t":{now:.6f}'
        return self._stamp

    def _turn(self, records: int) -> bool:
        """Encode the page and start a new one; if the buffer is full, count drops, return False."""
        self._encode()
        self.has_lines.set()
        if self._waiting >= limits.TRACE_DUE:
            self.is_due.set()
        self._space = min(limits.TRACE_PAGE, self._buffer - self._waiting)
        if self._space <= 0:
            self.dropped += records
            self._undeclared += records
            return False
        if self._undeclared:
            self._declare()
        return True

    def _declare(self) -> None:
        count, self._undeclared = self._undeclared, 0
        self._put("trace", Fact(k=Kind.DROPPED, count=count))

    def _put(self, actor: str, fact: Fact) -> None:
        """Add a fact even if the buffer is full."""
        self._space = max(self._space, len(self._page) + 1)
        self.record(actor, fact)

    def _encode(self) -> None:
        """Encode the records that were collected since the last call."""
        if not self._page:
            return
        process, number, lines = self._process, self._last, list[str]()
        # What is on the page lives, so that no two messages of it have the same id.
        known: dict[int, tuple[str, str]] = {}
        for stamp, what, about, seq in self._page:
            try:
                if type(what) is Hop:
                    heads = what.heads or _head_of(what)
                    texts = known.get(id(about)) or self._texts(about)  # type: ignore[arg-type] # a message
                    known[id(about)] = texts
                    text = texts[bool(what.ops)]
                    if seq:
                        text = f'{text},"seq":{seq}'
                elif type(about) is Step:
                    heads, text = (self._step_head(what, about),), _step_text(about)
                else:
                    heads, text = ("",), _fact_text(what, about)  # type: ignore[arg-type] # a fact
            except TypeError:
                # Text that is no Unicode, or a number that JSON has no place for: a bug above.
                heads, text = (_LOST,) * (len(what.ops) or 1 if type(what) is Hop else 1), ""
                self.dropped += len(heads)
            for head in heads:
                number += 1
                lines.append(f'{{{process},"ln":{number},{stamp},{head}{text}}}\n')
        self._pages.append("".join(lines).encode())
        self._waiting += number - self._last
        self._last = number
        self._page.clear()

    def _step_head(self, actor: str, step: Step) -> str:
        kind = (actor, step.machine, step.old, step.new, step.cause)
        head = self._heads.get(kind)
        if head is None:
            fields = {
                "actor": actor,
                "k": Kind.STATE,
                "op": Op.STEP,
                "machine": step.machine,
                "old": ABSENT if step.old is None else step.old,
                "new": step.new,
                "cause": step.cause,
            }
            head = _inside(fields) + ","
            self._heads.keep(kind, head, (head,))
        return head

    def _texts(self, message: Message) -> tuple[str, str]:
        """Return the name of a message, and all its fields, as `message_fact` has them."""
        kind = (message.type, message.from_, message.to)
        known = self._ends.get(kind)
        if known is None:
            known = self._ends.keep(kind, _ends(message), (message.from_, message.to))
        from_, to, ends, hashed = known
        number, body = message.id, message.body
        if message.is_response:
            code = message.code
            if FIRST_FINAL <= code < _ANSWERED and "source" not in body:
                name = f'"mid":"{to}#{number}>{from_}!{code}"'
            else:
                name = f'"mid":{dumps(instance_id(message)).decode()}'
            answered = f',"ref":"{to}#{number}"'
        else:
            code, answered = message.code, ""
            name = f'"mid":"{from_}#{number}"'
        if code:
            answered = f'{answered},"code":{dumps(code).decode()}'
        text = f'{name}{ends}"id":{number},"digest":"{digest_from(hashed, body)}"{answered}'
        is_plain = "via" not in body and DURABLE not in body and message.identity is None
        if is_plain and not self.bodies:
            return name, text
        more = further_fields(message, has_body=self.bodies, has_name=self.names)
        return name, f"{text},{dumps(more)[1:-1].decode()}" if more else text


def _ends(message: Message) -> _Ends:
    from_, to = (dumps(end)[1:-1].decode() for end in (message.from_, message.to))
    text = f',"type":"{message.type.value}","from":"{from_}","to":"{to}",'
    return from_, to, text, ends_hash(message)


def _head_of(hop: Hop) -> tuple[str, ...]:
    """Return the constant part of all records of a hop, and cache it in the hop."""
    kinds: list[Mapping[str, object]] = [{"k": Kind.MSG, "op": op} for op in hop.ops]
    kinds = kinds or [{"k": Kind.AUTHZ, "direction": "in"}]
    hop.heads = tuple(_inside({"actor": hop.actor, **kind, **hop.more}) + "," for kind in kinds)
    return hop.heads


def _step_text(step: Step) -> str:
    key = f'"key":{dumps(step.key).decode()}'
    return f'{key},"why":{dumps(step.why).decode()}' if step.why else key


def _fact_text(actor: str, fact: Fact) -> str:
    fields = {name: getattr(fact, field) for field, name in _WIRE_NAMES.items()}
    return _inside({"actor": actor} | fields)


def _inside(fields: Mapping[str, object]) -> str:
    """Return the fields that have a value as JSON text without the enclosing braces.

    Raises:
        TypeError: Text is no Unicode, or JSON has no place for a number.
    """
    return dumps({k: v for k, v in fields.items() if v is not None})[1:-1].decode()


_LOST: Final = _inside({"actor": "trace", "k": Kind.DROPPED, "count": 1})
"""Replacement for a record that cannot be encoded."""


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

    If cancelled, what was recorded before is written, without END.

    Raises:
        TraceDirectoryError: The directory cannot be made or written.
    """
    tracer = FileTracer(node, bodies=bodies, names=names)
    path = node_directory(directory, tracer.run, node)
    async with keep_trace(tracer, TraceParts(path)):
        yield tracer


@asynccontextmanager
async def keep_trace(tracer: FileTracer, parts: TraceParts) -> AsyncIterator[None]:
    """Write the records of a tracer to trace files while the context is open.

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
        if parts.is_behind:
            await trio.sleep(limits.TRACE_FLUSH)
        else:
            await tracer.has_lines.wait()
            with trio.move_on_after(limits.TRACE_FLUSH):
                await tracer.is_due.wait()
        pages = [] if parts.is_behind else tracer.take()
        lost_before = lost_before if is_alarmed else tracer.dropped
        try:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(parts.write, pages)
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
    pages = tracer.take()
    try:
        parts.write(pages)
    except OSError as error:
        lines = sum(page.count(b"\n") for page in pages)
        _log.error("the end of the trace is lost", reason=error.strerror, lines=lines)
    finally:
        parts.close()
