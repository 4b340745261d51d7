"""The trace of a whole run: what every process reported, in the one order of the loop."""

import hashlib
from enum import Enum
from operator import attrgetter
from typing import Final

import attrs
import trio

from actors.kit.trace import Tracer
from fsm.judge.trace_line import TraceLine
from specs.trace import BODIES, SCHEMA, Fact, Kind

_STAMP: Final = frozenset({"run", "node", "ln", "wall_ns", "t", "actor"})

_NAMES: Final = tuple(f.name for f in attrs.fields(TraceLine) if f.name not in _STAMP)

_VALUES: Final = attrgetter(*_NAMES)


class Evidence:
    """Everything that was reported.

    Attributes:
        reported: Whose, the line's number there, when, by whom, and what.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.reported: list[tuple[str, int, float, str, Fact]] = []

    def tracer_of(self, process: str) -> "ProcessTracer":
        """Return the pen of one process."""
        return ProcessTracer(process, self)

    def lines(self) -> list[TraceLine]:
        """Return all of it as judges read it: as `fsm.judge.trace_line.line_of`, only faster."""
        return [self._line(*reported) for reported in self.reported]

    def _line(self, process: str, ln: int, t: float, actor: str, fact: Fact) -> TraceLine:
        values = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in zip(_NAMES, _VALUES(fact), strict=True)
            if value is not None
        }
        wall_ns = round(t * 1e9)
        return TraceLine(
            run=self.run, node=process, ln=ln, wall_ns=wall_ns, t=t, actor=actor, **values
        )

    def digest(self) -> str:
        """Return a hash of all of it, to the byte."""
        kept = hashlib.sha256()
        for process, ln, t, actor, fact in self.reported:
            values = attrs.astuple(fact, recurse=False)
            kept.update(f"{process} {ln} {t!r} {actor} {values!r}\n".encode())
        return kept.hexdigest()


class ProcessTracer(Tracer):
    """Writes down what one process reports."""

    hops = True
    bodies = True

    def __init__(self, process: str, evidence: Evidence) -> None:
        self._process = process
        self._evidence = evidence
        self._ln = 0
        self.record("trace", Fact(k=Kind.START, why=SCHEMA, kind=BODIES))

    def record(self, actor: str, fact: Fact) -> None:
        self._ln += 1
        at = trio.current_time()
        self._evidence.reported.append((self._process, self._ln, at, actor, fact))

    def end(self) -> None:
        """Note that the process ended in good order."""
        self.record("trace", Fact(k=Kind.END))
