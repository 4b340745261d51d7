"""Traces on disk: finds the files at a path, reads them, and detects missing records and traces.

A path may name a directory of runs, the folder of one run or of one node in it, or a single file of
a trace; `specs.trace` says how the folders are named. Several paths may lead to the same file: it
is read once.
"""

import gzip
import json
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from functools import partial
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeAlias, TypeVar

import attrs

from fsm.group.kinds import GroupTable
from fsm.judge.claims.records import is_p2p_end, is_p2p_link, split
from fsm.judge.crossings import KEPT, LINKS, Crossing
from fsm.judge.replay import NodeJudgement, order_of
from fsm.judge.trace_line import MAX_LINE, BadTraceLineError, Flaw, TraceLine, read_line
from specs.addresses.address import RUNTIME_SCHEME, domain_of, message_node, runtime_of, scheme_of
from specs.errors import BadMessageError, ProtoflyError
from specs.schema.field import Address, add_checks
from specs.trace import Kind, Op, writer_of

# Gaps in traces: missing records, answers, and traces of other participants.

_CROSSED: Final = frozenset({Op.XMIT, Op.RCV})


@attrs.frozen(slots=True, order=True)
class Missing:
    """Missing record or missing trace.

    Attributes:
        run: The run whose trace is incomplete, or mentions a participant without a trace.
        node: The process whose trace that is.
        ln: Number of the record before the gap, or that mentions the participant; 0: none.
        reason: Description of the missing part, as half a sentence.
        is_end: Whether the end of the trace is missing: a process that still runs has none.
    """

    run: str
    node: str
    ln: int
    reason: str
    is_end: bool = False


class Gaps:
    """Detects missing and duplicate records of one process by their numbers."""

    def __init__(self, run: str, node: str) -> None:
        self._run = run
        self._node = node
        self._count = 0
        self._number = 0
        self._kind = ""
        self._flaws: set[Flaw] = set()
        self._holes: list[int] = []
        self._missing = 0
        self._again = 0
        self._last: TraceLine | None = None
        self._found: list[Missing] = []
        self._doubled: list[TraceLine] = []

    def take(self, record: TraceLine) -> bool:
        """Check a record's number; return whether earlier records are missing or ambiguous.

        Equal records with one number count once. If two different records have one number, it is
        unknown which of them the process wrote.
        """
        before, ln = self._number, record.ln
        self._number, self._kind = ln, record.k
        if not self._count and record.k != Kind.START:
            self._flaws.add(Flaw.NO_START)
            self._lacks(record, "it does not begin with its start")
        self._count += 1
        if record.k == "dropped":
            self._flaws.add(Flaw.DROPPED)
        if ln != before + 1:
            self._flaws.add(Flaw.GAP)
            if ln <= before:
                self._again += 1
                return self._is_other(record)
            self._holes.append(before)
            self._missing += ln - before - 1
            self._lacks(record, f"{_numbers(before + 1, ln - 1)} missing before this one")
        if record.k == "dropped":
            self._lacks(record, "records were dropped: the disk was slower than the process")
        self._last = record
        return ln > before + 1

    def pass_over(self, count: int) -> None:
        """Count several records of no special kind that have consecutive numbers."""
        self._count += count
        self._number += count

    def judgement(self) -> NodeJudgement:
        """Return the judgement on the completeness of the trace; no more records follow."""
        no_end = set() if self._kind == Kind.END else {Flaw.NO_END}
        flaws, holes = frozenset(self._flaws | no_end), tuple(self._holes)
        return NodeJudgement(
            self._run, self._node, self._count, flaws, holes, self._missing, self._again
        )

    def _is_other(self, record: TraceLine) -> bool:
        if record != self._last:
            self._lacks(record, f"two records have the number {record.ln}")
            # It is unclear which records follow.
            self._holes.append(self._number)
            return True
        if self._doubled and record.ln > self._doubled[-1].ln + 1:
            self._note_doubled()
        self._doubled.append(record)
        return False

    def _note_doubled(self) -> None:
        if self._doubled:
            first, last = self._doubled[0], self._doubled[-1]
            self._lacks(first, f"{_numbers(first.ln, last.ln)} there twice")
            self._doubled.clear()

    def missing(self) -> Iterator[Missing]:
        """Yield the missing records that were detected; no more records follow."""
        self._note_doubled()
        yield from self._found
        last = self._last
        if last is not None and last.k != Kind.END:
            reason = "it has no end: the process crashed, was killed, or still runs"
            yield Missing(self._run, self._node, last.ln, reason, is_end=True)

    def _lacks(self, record: TraceLine, reason: str) -> None:
        self._found.append(Missing(self._run, self._node, record.ln, reason))


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first}-{last} are"


@attrs.frozen
class ProcessSummary:
    """Facts from a process's trace that are compared with the traces of other processes.

    Attributes:
        home: Address of the runtime; None: a message node, or it is not recorded.
        member: Id of the message node in its group; None: it is in no group.
        is_whole: Whether the process ended normally and no record is missing.
        itself: Addresses of the process itself.
        others: Participants that the trace mentions, each once: address, number of the first record
            that mentions it, and its role, as part of a sentence.
        crossings: Sample of the messages between this process and others.
    """

    run: str
    node: str
    home: str | None = None
    member: str | None = None
    is_whole: bool = False
    itself: frozenset[str] = frozenset()
    others: Sequence[tuple[str, int, str]] = ()
    crossings: Sequence[Crossing] = ()


class ParticipantFinder:
    """Finds the participants of a run that the records of one process mention.

    Attributes:
        stubs: The message node of each stub.
    """

    def __init__(self) -> None:
        self._itself: set[str] = set()
        self._found: dict[str, tuple[TraceLine, str]] = {}
        self._vias: set[str | None] = {None}
        self.stubs: dict[str, str] = {}
        self._crossed: dict[str, TraceLine] = {}

    def take(self, record: TraceLine) -> None:
        """Find the participants that the next record mentions."""
        kind = record.k
        if kind == "msg":
            if record.via not in self._vias:
                self._take_via(record)
            stub, is_numbered = record.stub, record.op in _CROSSED and record.seq is not None
            if stub is not None and is_numbered and stub not in self._crossed:
                self._crossed[stub] = record
        elif kind == "table":
            self._take_row(record)
        elif kind in {"link", "session"}:
            self._take_end(record)

    def _take_via(self, record: TraceLine) -> None:
        self._vias.add(record.via)
        for stub in split(record.via):
            if scheme_of(stub) == RUNTIME_SCHEME:
                why = "whose stub carried a message"
                self._found.setdefault(runtime_of(stub), (record, why))

    def _take_row(self, record: TraceLine) -> None:
        if record.table == GroupTable.MEMBERS and record.key is not None:
            self._take_member(record, record.key)
        stub = (record.val or "").split(" ")[0] if record.table == "stubs" else ""
        if stub and not is_p2p_end(stub):
            self.stubs[stub] = message_node(record.key or "")

    def _take_member(self, record: TraceLine, node: str) -> None:
        if record.version is not None:
            self._itself.add(node)
        else:
            self._found.setdefault(node, (record, "a member of the same group as the node"))

    def _take_end(self, record: TraceLine) -> None:
        if record.a:
            self._itself.add(record.a)
        if is_p2p_link(record) and record.b is not None:
            self._found.setdefault(record.b, (record, "which a direct link led to"))

    def end(self, home: str | None) -> tuple[frozenset[str], list[tuple[str, int, str]]]:
        """Return the addresses of the process, and the other participants that it mentions."""
        found = self._found
        for stub, record in self._crossed.items():
            node = self.stubs.get(stub)
            if node is not None and (node not in found or found[node][0].ln > record.ln):
                found[node] = (record, "which exchanged messages")
        itself = self._itself if home is None else {*self._itself, home}
        others = [(who, record.ln, role) for who, (record, role) in found.items()]
        return frozenset(itself), others


def unsent(processes: Sequence[ProcessSummary]) -> dict[str, Missing]:
    """Return missing traces of runs: no trace has the sending of messages that arrived elsewhere.

    A participant without any trace is found by `untraced_participants`. A participant whose trace
    is known to lack records is not reported here.

    Args:
        processes: The summaries, sorted.
    """
    sent = {
        crossing.key for process in processes for crossing in process.crossings if crossing.is_sent
    }
    # Rank below which each participant kept all messages it sent, if its traces are complete.
    kept: dict[str, int] = {}
    for process in processes:
        limit = _limit(process.crossings) if process.is_whole else 0
        for address in process.itself:
            kept[address] = min(limit, kept.get(address, limit))
    links: dict[tuple[str, str, str, str], list[Crossing]] = {}
    for process in processes:
        for crossing in process.crossings:
            is_judged = crossing.sender in kept and crossing.rank < kept[crossing.sender]
            if is_judged and crossing.sender not in process.itself:
                passage = crossing.sender, process.run, process.node, crossing.link
                links.setdefault(passage, []).append(crossing)
    lost: dict[str, Missing] = {}
    for (sender, run, node, _), crossings in links.items():
        if sender not in lost and not any(each.key in sent for each in crossings):
            first = min(each.ln for each in crossings)
            reason = f"no trace of {sender} has sent what came from it: that of a run is missing"
            lost[sender] = Missing(run, node, first, reason)
    return lost


def _limit(crossings: Sequence[Crossing]) -> int:
    ranks: dict[str, set[int]] = {}
    for crossing in crossings:
        if crossing.is_sent:
            ranks.setdefault(crossing.link, set()).add(crossing.rank)
    full = [max(several) for several in ranks.values() if len(several) == KEPT]
    return 0 if 2 * len(ranks) >= LINKS else min(full, default=1 << 32)


# The manifest of a run: its participants, listed by the process that started it.

SCHEMA: Final = "protofly.manifest/1"
"""Name and version of the format of manifests."""


class ManifestError(ProtoflyError):
    """Error: a file is not a valid manifest, and must be corrected."""

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(f"cannot use the manifest {place}: {reason}")


@attrs.frozen(field_transformer=add_checks)
class Participant:
    """Process that took part in a run, according to the manifest.

    Attributes:
        address: Address of the runtime or the message node.
        node: Name of the process; None: any name.
        run: Its run; None: any run.
        traced: Whether it keeps a trace.
    """

    address: Address
    node: str | None = None
    run: str | None = None
    traced: bool = True

    def is_in(self, process: ProcessSummary) -> bool:
        """Return whether a trace belongs to this participant."""
        if self.node is None:
            return self.address in process.itself
        return self.node == process.node and self.run in {None, process.run}


@attrs.frozen
class Manifest:
    """List of the participants of a run, written by the process that started it."""

    participants: tuple[Participant, ...]

    def text(self) -> str:
        """Return the manifest as the text of a file."""
        rows = [
            attrs.asdict(participant, filter=lambda _, value: value is not None)
            for participant in self.participants
        ]
        return json.dumps({"schema": SCHEMA, "participants": rows}, indent=1) + "\n"

    def differences(self, processes: Iterable[ProcessSummary]) -> Iterator[Missing]:
        """Yield the differences between the declared participants and the traces.

        Args:
            processes: The processes that have a record.
        """
        in_order = sorted(processes, key=lambda process: (process.run, process.node))
        for participant in self.participants:
            if participant.traced and not any(map(participant.is_in, in_order)):
                reason = (
                    f"the manifest declares {participant.address} traced, and it has no trace here"
                )
                yield Missing(participant.run or "", participant.node or "", 0, reason)
        for process in in_order:
            flaw = self._flaw(process)
            if flaw is not None:
                yield Missing(process.run, process.node, 1, flaw)

    def _flaw(self, process: ProcessSummary) -> str | None:
        itself = process.itself
        declared = [participant for participant in self.participants if participant.is_in(process)]
        if not declared:
            return "the manifest does not declare this process"
        if not any(each.traced for each in declared):
            return f"the manifest declares {declared[0].address} untraced, and here is its trace"
        if itself and not any(each.address in itself for each in declared):
            names = " and ".join(sorted(itself))
            return f"the manifest declares this process as {declared[0].address}, and it is {names}"
        return None


def untraced_participants(
    processes: Sequence[ProcessSummary],
    untraced: Collection[str] = (),
    manifest: Manifest | None = None,
) -> Iterator[Missing]:
    """Yield the participants without a trace, according to the manifest and the traces.

    Args:
        processes: The summaries, sorted.
        untraced: Addresses or domains of participants that are known to keep no trace.
        manifest: The participants; None: unknown.
    """
    known = set(untraced)
    if manifest is not None:
        yield from manifest.differences(processes)
        known.update(participant.address for participant in manifest.participants)
    traced = {address for process in processes for address in process.itself}
    mentions: dict[str, Missing] = {}
    for process in processes:
        for address, ln, role in process.others:
            reason = f"there is no trace of {address}, {role} here"
            mentions.setdefault(address, Missing(process.run, process.node, ln, reason))
    for address, missing in sorted(mentions.items()):
        if address not in traced and not {address, domain_of(address)} & known:
            yield missing


def read_manifest(place: Path) -> Manifest:
    """Read the file of a manifest.

    Raises:
        ManifestError: The file cannot be read, or is no manifest.
    """
    try:
        return _manifest(json.loads(place.read_bytes()))
    except OSError as exc:
        raise ManifestError(place, f"{exc.strerror}") from exc
    except (json.JSONDecodeError, UnicodeDecodeError) as exc:
        raise ManifestError(place, f"it is no JSON: {exc}") from exc
    except BadMessageError as exc:
        raise ManifestError(place, str(exc)) from exc


def _manifest(content: object) -> Manifest:
    """Decode a manifest from JSON.

    Raises:
        BadMessageError: It is no manifest; the reason is half a sentence.
    """
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise BadMessageError(f'it is no object with "schema": "{SCHEMA}"')
    _check_names(content, {"schema", "participants"}, "the manifest")
    rows = content.get("participants")
    if not isinstance(rows, list) or not rows:
        raise BadMessageError("participants is no list of objects, or empty")
    participants = tuple(_participant(row, f"participants[{nth}]") for nth, row in enumerate(rows))
    seen: set[tuple[str | None, ...]] = set()
    for nth, participant in enumerate(participants):
        identity = (
            (participant.address,)
            if participant.node is None
            else (participant.node, participant.run)
        )
        if identity in seen:
            raise BadMessageError(
                f"participants[{nth}] is there twice; distinguish them by node and run"
            )
        seen.add(identity)
    return Manifest(participants)


_FIELDS: Final = frozenset(field.name for field in attrs.fields(Participant))


def _participant(row: object, where: str) -> Participant:
    if not isinstance(row, dict):
        raise BadMessageError(f"{where} is no object")
    _check_names(row, _FIELDS, where)
    if "address" not in row:
        raise BadMessageError(f"{where} has no address")
    if "run" in row and "node" not in row:
        raise BadMessageError(f"{where} has a run, and no node whose run that is")
    try:
        return Participant(**row)
    except BadMessageError as exc:
        raise BadMessageError(f"{where}.{exc}") from exc


def _check_names(content: Mapping[str, object], known: AbstractSet[str], where: str) -> None:
    for name in content:
        if name not in known:
            raise BadMessageError(
                f"{where} has a field {name!r}; known: {', '.join(sorted(known))}"
            )


_Writer: TypeAlias = tuple[str, str]

_CUT: Final = b" ... (cut)"
"""End of a line that was cut: it makes the line too long and invalid as JSON."""

_KEPT_OF_BAD_LINE: Final = 1000
"""Number of bytes kept of a line that is not a valid record."""


class TraceFileError(ProtoflyError):
    """Error: a path has no trace, or its trace cannot be read."""


class PackedRestError(ProtoflyError):
    """Error: the remaining part of a gzip file is damaged or missing.

    Attributes:
        reason: The reason, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"a packed file is damaged: {reason}")
        self.reason = f"the rest of the file cannot be unpacked ({reason})"


def unreadable(name: str, reason: Exception) -> TraceFileError:
    """Return the error for a file that cannot be read.

    Args:
        name: Path or URL.
        reason: The error of the system, or of a format.
    """
    return TraceFileError(f"cannot read {name}: {reason}; copy it anew or leave it out")


@attrs.frozen
class BadLine:
    """Line of a trace that is not a valid record.

    Attributes:
        line: Its number, from 1.
        reason: The reason, as half a sentence.
        text: The beginning of the line; bytes that are no UTF-8 are replaced.
    """

    file: str
    line: int
    reason: str
    text: str


def read_numbered(file: str, number: int, line: bytes) -> TraceLine | BadLine:
    """Decode a line of a file; return a record, or a bad line if it is invalid.

    Args:
        file: Name of its file.
        number: Its number there, from 1.
        line: The line.
    """
    try:
        return read_line(line)
    except BadTraceLineError as exc:
        return BadLine(file, number, exc.reason, line[:_KEPT_OF_BAD_LINE].decode(errors="replace"))


class Part(Protocol):
    """File of a trace, in any format, as a source of records."""

    @property
    def name(self) -> str:
        """The path or URL of the file."""

    def lines(self) -> Iterator[TraceLine | BadLine]:
        """Yield each line of the file as a record, or as a bad line if it is invalid.

        Raises:
            TraceFileError: The file cannot be read.
        """


_P = TypeVar("_P", bound=Part)


@attrs.frozen
class LinesPart:
    """Trace file in JSON Lines, possibly compressed with gzip.

    Attributes:
        name: Path or URL.
        opened: Opens the file for reading.
    """

    name: str
    opened: Callable[[], BinaryIO]

    def lines(self) -> Iterator[TraceLine | BadLine]:
        """Yield each line as a record or a bad line; a damaged gzip file ends with a bad line.

        Raises:
            TraceFileError: The file cannot be read.
        """
        number = 0
        try:
            for number, text in enumerate(chain.from_iterable(map(lines_of, self.blocks())), 1):
                yield read_numbered(self.name, number, text)
        except PackedRestError as exc:
            yield BadLine(self.name, number + 1, exc.reason, "")

    def blocks(self, size: int = 1 << 16) -> Iterator[bytes]:
        """Yield the contents of the file as blocks of whole lines.

        Args:
            size: Approximate size of a block in bytes.

        Raises:
            PackedRestError: The compressed file is damaged after the blocks yielded so far.
            TraceFileError: The file cannot be read.
        """
        try:
            with self.opened() as file:
                if self.name.endswith(".gz"):
                    yield from _unpack(file, size)
                    return
                yield from whole_lines(iter(partial(file.read, size), b""))
        except OSError as exc:
            raise unreadable(self.name, exc) from exc


def lines_of(block: bytes) -> list[bytes]:
    """Return the lines of a block without their line ends.

    Args:
        block: Whole lines; the last may have no end.
    """
    *lines, rest = block.split(b"\n")
    return [*lines, rest] if rest else lines


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of a file in blocks of whole lines, and last the unfinished line.

    A line that is too long is cut so that it is not read as a record.
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
    """Return lines with those that are too long cut off and marked."""
    if len(lines) <= MAX_LINE or all(len(each) <= MAX_LINE for each in lines.split(b"\n")):
        return lines
    parts = (
        each if len(each) <= MAX_LINE else each[:MAX_LINE] + _CUT for each in lines.split(b"\n")
    )
    return b"\n".join(parts)


def _unpack(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Decompress a gzip file; yield blocks of whole lines, and last the unfinished line.

    Raises:
        PackedRestError: The file is damaged after the blocks yielded so far.
    """
    source = gzip.GzipFile(fileobj=file)
    try:
        yield from whole_lines(iter(partial(source.read1, size), b""))
    except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
        raise PackedRestError(str(exc)) from exc


class _Numbers:
    """Index from record numbers to lines of a file, stored as ranges.

    Attributes:
        least: The smallest number; 0: the file has no record.
        most: The greatest number.
        is_in_order: Whether each number is greater than the previous one.
    """

    def __init__(self) -> None:
        self.least = self.most = 0
        self.is_in_order = True
        self._line = self._last = 0
        # For each range of numbers: its first line, its first number, its count of lines.
        self._runs = array("q")

    def skip(self) -> None:
        """Count a line that is not a valid record."""
        self._line += 1
        self._last = 0

    def add(self, ln: int) -> None:
        """Add the record of the next line to the index."""
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
        """Return the first line that has a record with this number, or None."""
        runs = iter(self._runs)
        for line, first, count in zip(runs, runs, runs, strict=True):
            if first <= ln < first + count:
                return line + ln - first
        return None


class Reading:
    """Reader for all files of a trace, which can read them several times and locate records.

    Attributes:
        count: Number of records in the last reading.
        bad: The lines that are not valid records.
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
        """Yield the records of all files, file by file.

        Raises:
            TraceFileError: A file cannot be read.
        """
        self._clear()
        for part in self._parts:
            yield from self._read(part)

    def sorted(self) -> Iterator[TraceLine]:
        """Yield the records of all processes together, sorted by their numbers.

        Files whose numbers overlap are read at the same time; only a file that is itself out of
        order is held in memory.

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
                yield from self._merge(together)
                together = []
            together.append(part)
            until = max(until, last)
        yield from self._merge(together)

    def _merge(self, parts: Iterable[Part]) -> Iterator[TraceLine]:
        return merge(*map(self._in_order, parts), key=_place)

    def _in_order(self, part: Part) -> Iterator[TraceLine]:
        records = (line for line in part.lines() if isinstance(line, TraceLine))
        is_in_order = self._all[part.name].is_in_order
        return records if is_in_order else iter(sorted(records, key=_place))

    @property
    def named(self) -> Iterator[tuple[_Writer, str, bool]]:
        """Yield for each file: run and node from its folder's name, the file, if it has records."""
        for name, numbers in self._all.items():
            writer = writer_of(name)
            if writer is not None:
                yield writer, name, numbers.most > 0

    @property
    def writers(self) -> AbstractSet[_Writer]:
        """The run and name of each process that has a record."""
        return self._numbers.keys()

    def place(self, run: str, node: str, ln: int) -> tuple[str, int] | None:
        """Return the file and the line number of a record, or None if it was not read.

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
    """Return the key by which records of one process are sorted."""
    return order_of(record)[2:]


def parts_in(places: Iterable[Path]) -> list[LinesPart]:
    """Return the trace files at all paths, each once.

    Raises:
        TraceFileError: There is no trace at a place.
    """
    files: dict[Path, Path] = {}
    for place in places:
        for file in _files(place):
            files.setdefault(file.resolve(), file)
    return [local_part(str(file)) for file in files.values()]


def local_part(name: str) -> LinesPart:
    """Return a trace file on this machine, as a source of records."""
    return LinesPart(name, lambda: Path(name).open("rb"))


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise TraceFileError(f"no trace at {place}: there is nothing; name what --trace wrote to")
    paths = sorted([*place.rglob("part-*.jsonl"), *place.rglob("part-*.jsonl.gz")])
    files = [file for file in paths if is_inside(file, place)]
    if not files:
        raise TraceFileError(f"no trace at {place}: there is no part-*.jsonl under it")
    return files


def is_inside(file: Path, place: Path) -> bool:
    """Return whether a file really lies in a folder, not behind a symbolic link out of it."""
    return file.is_file() and file.resolve().is_relative_to(place.resolve())


def silent(readings: Sequence[Reading]) -> dict[_Writer, str]:
    """Return the processes that have trace files, but no record in them, each with one file.

    Args:
        readings: All files of a trace.
    """
    named = [each for reading in readings for each in reading.named]
    known = {each for reading in readings for each in reading.writers}
    known |= {("", node) for _, node in known}
    # A folder that was renamed has the records of another process.
    known |= {writer for writer, _, has_record in named if has_record}
    return {writer: file for writer, file, _ in named if writer not in known}


def folders_of(parts: Iterable[_P]) -> list[list[_P]]:
    """Return files grouped by folder; a folder usually has the trace of one process.

    Args:
        parts: The files, in any order.
    """
    folders: dict[str, list[_P]] = {}
    for part in parts:
        folders.setdefault(part.name.rpartition("/")[0], []).append(part)
    return list(folders.values())
