"""Judge of processes that still run, while their trace files grow.

After each round, the records so far are judged as a trace that ends there. A missing record never
causes a violation, so a violation that was found stays valid; it is reported once. Claims that need
the end of a process are judged when its end is recorded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

import attrs

from fsm.frozen import pickle_state, restore
from fsm.judge.claims.fold import Evidence, Finding
from fsm.judge.process import DisorderError, LateHomeError, ProcessJudge, ProcessJudgement
from fsm.judge.replay import Violation
from fsm.judge.trace_files import BadLine, read_numbered
from fsm.judge.trace_line import MAX_LINE, TraceLine
from specs.trace import Kind

_B = TypeVar("_B", Violation, Finding)


@attrs.frozen(kw_only=True)
class LiveProcess:
    """State of a running process's judgement after the last round.

    Attributes:
        records: Number of records that were read.
        is_running: Whether no record says that it ended.
        unjudged: Why its records are no longer judged, as half a sentence; empty: they are judged.
    """

    run: str
    node: str
    records: int
    is_running: bool
    unjudged: str


@attrs.define(kw_only=True)
class Round:
    """New results of one round of judging: the results that earlier rounds did not have.

    Attributes:
        violations: Violations of the claims on machines.
        findings: Violations of the other claims.
        evidence: Evidence for claims across processes.
        processes: The processes that have new records.
        bad: Lines that are not valid records.
    """

    violations: list[Violation] = attrs.field(factory=list)
    findings: list[Finding] = attrs.field(factory=list)
    evidence: list[Evidence] = attrs.field(factory=list)
    processes: list[LiveProcess] = attrs.field(factory=list)
    bad: list[BadLine]


class LiveJudge:
    """Judge of all processes of one folder while files grow; `fsm.frozen` saves and restores it."""

    def __init__(self) -> None:
        self._rests: dict[str, bytes] = {}
        self._lines: Counter[str] = Counter()
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._changed: set[tuple[str, str]] = set()
        self._bad: list[BadLine] = []

    def take(self, name: str, data: bytes) -> None:
        """Read the bytes that were added to a file, and judge their records.

        Args:
            name: Name of the file.
            data: The bytes that follow the ones taken before; a line may be cut in two.
        """
        *lines, rest = (self._rests.get(name, b"") + data).split(b"\n")
        # If a line is too long already, its remaining bytes are not needed.
        self._rests[name] = rest[: MAX_LINE + 1]
        for line in lines:
            self._lines[name] += 1
            record = read_numbered(name, self._lines[name], line)
            if isinstance(record, BadLine):
                self._bad.append(record)
                continue
            process = record.run, record.node
            if process not in self._watched:
                self._watched[process] = _Watched(*process)
            self._watched[process].take(record)
            self._changed.add(process)

    def round(self) -> Round:
        """Judge the records so far and return the results that earlier rounds did not have."""
        news, self._bad = Round(bad=self._bad), []
        for process in sorted(self._changed):
            self._watched[process].judge(news)
        self._changed.clear()
        return news


class _Watched:
    """Process that is judged while it runs; its judge is stored as bytes between rounds."""

    def __init__(self, run: str, node: str) -> None:
        self.process = LiveProcess(run=run, node=node, records=0, is_running=True, unjudged="")
        self._judge: ProcessJudge | None = ProcessJudge(run, node)
        self._kept: bytes | None = None
        self._end: ProcessJudgement | None = None
        self._reported: Counter[Violation | Finding] = Counter()

    def take(self, record: TraceLine) -> None:
        """Pass the next record to the judge of the process."""
        self.process = attrs.evolve(self.process, records=self.process.records + 1)
        if self._kept is not None:
            self._judge, self._kept = restore(self._kept, ProcessJudge), None
        if self._judge is None:
            if not self.process.unjudged:
                self._give_up("it has records behind its end")
            return
        try:
            self._judge.take(record)
        except LateHomeError:
            self._give_up("it says late that it is a runtime")
        except DisorderError:
            self._give_up(f"its records are in disorder from number {record.ln} on")
        else:
            if record.k == Kind.END:
                self._end, self._judge = self._judge.end(), None
                self.process = attrs.evolve(self.process, is_running=False)

    def _give_up(self, reason: str) -> None:
        self._judge = None
        self.process = attrs.evolve(self.process, unjudged=reason)

    def judge(self, news: Round) -> None:
        """Judge the records so far and add the new violations to a round."""
        news.processes.append(self.process)
        so_far, self._end = self._end, None
        if so_far is not None:
            news.evidence += so_far.evidence
        elif self._judge is not None:
            news.evidence += self._judge.handed_over()
            self._kept, self._judge = pickle_state(self._judge), None
            # A copy of the judge is ended, as if the trace were cut off here.
            so_far = restore(self._kept, ProcessJudge).end()
        else:
            return
        broken = (violation for entity in so_far.entities for violation in entity.violations)
        news.violations += self._new(broken)
        news.findings += self._new(so_far.findings)

    def _new(self, broken: Iterable[_B]) -> Iterator[_B]:
        """Yield the violations that were not yielded before; duplicates are counted."""
        times: Counter[_B] = Counter()
        for violation in broken:
            times[violation] += 1
            if times[violation] > self._reported[violation]:
                self._reported[violation] += 1
                yield violation
