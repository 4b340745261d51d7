"""Recorder of the traces of all processes of a test, which checks them and describes violations."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.kit.trace import Tracer
from fsm.judge.trace_files import Missing
from fsm.judge.trace_line import TraceLine, line_of
from fsm.judge.verdict import RunJudgement, judge_run
from fsm.machine_list import MACHINES
from specs.claims import CLAIMS
from specs.trace import SCHEMA, Fact, Kind, Stamp

# Sequence diagrams, in text, of the records that led to a violation; for failed tests.

_LENGTH: Final = 11
"""Maximum number of trace records in the history of a violation."""

_WIDTH: Final = 4
"""Width in characters between two lifelines of a sequence diagram."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def history_of(node: str, ln: int, lines: Sequence[TraceLine]) -> list[TraceLine]:
    """Return a trace record, and the records of all processes that led to it, oldest first.

    The earlier records are of the same message, else of the same key, else of the same link, else
    of the same process.

    Args:
        node: Process of the record.
        ln: Number of the record.
        lines: The trace, in the order in which it was written.
    """
    at = next((at for at, line in enumerate(lines) if (line.node, line.ln) == (node, ln)), None)
    if at is None:
        return [line for line in lines if line.node == node and line.ln <= ln][-_LENGTH:]
    last, before = lines[at], lines[:at]
    related = next((group for group in _related_lines(last, before) if group), None)
    if related is None:
        related = [each for each in before if each.node == node]
    return [*related[1 - _LENGTH :], last]


def _related_lines(last: TraceLine, before: Sequence[TraceLine]) -> Iterator[list[TraceLine]]:
    message = {last.mid, last.ref} - {None}
    yield [each for each in before if {each.mid, each.ref} & message]
    if last.key is not None:
        yield [each for each in before if each.key == last.key]
    if last.link is not None:
        yield [each for each in before if each.link == last.link]


def draw_history(history: Sequence[TraceLine]) -> Iterator[str]:
    """Yield the lines of a sequence diagram; its last record is marked by an X.

    Each part of a process has a lifeline with a letter. An arrow leads from the part of one record
    to that of the next one.

    Args:
        history: The records, oldest first; at most as many parts as there are letters.
    """
    lanes = {who: at for at, who in enumerate(dict.fromkeys(map(_who, history)))}
    for (node, actor), at in lanes.items():
        yield f"{_LETTERS[at]} = {node}: {actor}"
    yield "".join(_LETTERS[at].ljust(_WIDTH) for at in lanes.values()).rstrip()
    before = None
    for line in history:
        lane = lanes[_who(line)]
        mark = "X" if line is history[-1] else "o"
        yield f"{_row(before, lane, len(lanes), mark)}  {_describe_line(line)}"
        before = lane


def _who(line: TraceLine) -> tuple[str, str]:
    return line.node, line.actor


def _row(before: int | None, lane: int, lanes: int, mark: str) -> str:
    row = list("".join("|".ljust(_WIDTH) for _ in range(lanes)))
    end, begin = lane * _WIDTH, (lane if before is None else before) * _WIDTH
    first, last = sorted((end, begin))
    row[first : last + 1] = "-" * (last + 1 - first)
    if begin < end:
        row[end - 1] = ">"
    elif end < begin:
        row[end + 1] = "<"
    row[begin], row[end] = "|", mark
    return "".join(row)


def _describe_line(line: TraceLine) -> str:
    what = line.op or line.k
    match line.k:
        case "state":
            text = f"{line.machine} {line.key}: {line.old} -> {line.new} by {line.cause}"
        case "msg":
            text = f"{line.type or ''} {line.from_} -> {line.to} {line.code or ''}".strip()
        case _:
            text = " ".join(filter(None, (line.table, line.key, line.val, line.why)))
    return f"{line.ln:>5} {line.t:>9.3f} s  {what} {text}"


__all__ = ["Recorder", "complaint"]


@attrs.frozen
class _Fault:
    """The first violation of one claim."""

    claim: str
    node: str
    ln: int
    about: str
    expected: str


def complaint(lines: Sequence[TraceLine], judged: RunJudgement, running: frozenset[str]) -> str:
    """Describe the violations of a run.

    Args:
        lines: The trace of the run.
        judged: The judgement of that trace.
        running: Names of the processes that still run; their traces need no end.

    Returns:
        The description, of several lines; empty if the run is conformant.
    """
    if not lines:
        return "nothing was recorded, so nothing is proved: pass `trace=` a process's tracer"
    faults = [*_faults(judged)]
    texts = [_describe_fault(fault, lines) for fault in _firsts(faults)]
    texts += [f"\n{gap.node}: {gap.reason}" for gap in judged.missing if not _runs(gap, running)]
    if not texts:
        return ""
    head = f"the run is not conformant; violations: {len(faults)}"
    return "\n".join([head if faults else "the trace of the run is incomplete", *texts])


def _faults(judged: RunJudgement) -> Iterator[_Fault]:
    for broken in judged.machines.violations:
        entity = broken.entity
        about = f"{entity.machine} {entity.key}"
        claim = f"machines: {broken.claim.replace('_', ' ')}"
        yield _Fault(claim, entity.node, broken.ln, about, broken.expected)
    for finding in judged.findings:
        claim = CLAIMS[finding.claim].text
        yield _Fault(claim, finding.nodes[0], finding.ln, finding.about, finding.expected)


def _firsts(faults: Iterable[_Fault]) -> Iterator[_Fault]:
    """Yield the first fault of each claim."""
    seen: set[str] = set()
    for fault in faults:
        if fault.claim not in seen:
            seen.add(fault.claim)
            yield fault


def _runs(missing: Missing, running: frozenset[str]) -> bool:
    """Return whether a trace lacks only its end, because its process still runs."""
    return missing.is_end and missing.node in running


def _describe_fault(fault: _Fault, lines: Sequence[TraceLine]) -> str:
    head = f"\nbroken: {fault.claim}\n  by {fault.about}\n  expected {fault.expected}"
    history = [f"    {line}" for line in draw_history(history_of(fault.node, fault.ln, lines))]
    return "\n".join([head, f"  record {fault.ln} of {fault.node}, and what led to it:", *history])


_RUN: Final = "test"


@final
class Recorder:
    """Recorder that keeps the trace of each process in memory; a process is a node or a runtime.

    `protofly_domain` records all its processes. A test that opens nodes and runtimes itself
    passes `trace=` a tracer of `process` to each of them.
    """

    def __init__(self) -> None:
        self._lines: Final[list[TraceLine]] = []
        self._open: Final[set[str]] = set()
        self._names: Final[set[str]] = set()

    @property
    def lines(self) -> tuple[TraceLine, ...]:
        """The trace records so far, in the order in which they were written."""
        return tuple(self._lines)

    @contextmanager
    def process(self, name: str) -> Iterator[Tracer]:
        """Record one process while the context is open.

        The trace ends with an END record if the block is left without an error.

        Args:
            name: Name of the node or runtime in the trace, different for each run of a process.

        Yields:
            The tracer to pass as `trace=`.

        Raises:
            ValueError: The name was used before.
        """
        if name in self._names:
            raise ValueError(f"two processes are named {name!r}: name each run of one differently")
        self._names.add(name)
        self._open.add(name)
        pen = _TestTracer(name, self._lines)
        pen.record("trace", Fact(k=Kind.START, val=SCHEMA, machine="|".join(sorted(MACHINES))))
        try:
            yield pen
            pen.record("trace", Fact(k=Kind.END))
        finally:
            self._open.discard(name)

    def assert_conformant(
        self, *, untraced: Collection[str] = (), unjudged: Collection[str] = ()
    ) -> None:
        """Judge the trace so far: every state machine, and every claim about messages.

        Call it after all processes have left: lost messages are detected only then.

        Args:
            untraced: Addresses or domains of participants that are not recorded.
            unjudged: Ids of claims that the network of the test violates: `I-L6` is about
                transports of sessions, which lose no single message.

        Raises:
            AssertionError: A claim is violated, or the trace is incomplete. The text has the first
                violation of each claim, with a sequence diagram of the records that led to it.
        """
        __tracebackhide__ = True
        judged = judge_run(self._lines, untraced=untraced)
        findings = tuple(finding for finding in judged.findings if finding.claim not in unjudged)
        judged = attrs.evolve(judged, findings=findings)
        text = complaint(self._lines, judged, frozenset(self._open))
        if text:
            raise AssertionError(text)


class _TestTracer(Tracer):
    """Tracer that keeps the records of one process in memory."""

    hops = True
    bodies = True

    def __init__(self, name: str, lines: list[TraceLine]) -> None:
        self._name = name
        self._lines = lines
        self._last = 0

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._last += 1
        now = trio.current_time()
        stamp = Stamp(
            run=_RUN,
            node=self._name,
            ln=self._last,
            wall_ns=int(now * 1e9),
            mono_ns=int(now * 1e9),
            t=now,
            actor=actor,
        )
        self._lines.append(line_of(stamp, fact))
