"""A run as a trace: one file per process, as the judges read it.

The processes of the trace are the places of the composition's parts. Each record is of the
steps that a part took; what was asked of a part without a row is a refused step; what was
lost is a fault. The clock counts the steps of the run.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.trace_line import wire_name
from fsm.product.composition import Composition, Part
from fsm.product.run import Moved, Run, Taken
from fsm.product.steps import Kind
from specs.trace import ABSENT, SCHEMA, Fact, Op, Stamp
from specs.trace import Kind as Of

__all__ = ["Lines", "trace_of"]

Lines: TypeAlias = tuple[str, ...]

_STEP: Final = 1_000_000_000
"""Nanoseconds between two steps: a second."""


def trace_of(composition: Composition, run: Run) -> Mapping[str, Lines]:
    """The lines of each process's trace, by its name."""
    pens = _Pens(composition)
    for taken in run.steps:
        pens.write(taken)
    if run.refused is not None:
        pens.write(run.refused)
    return pens.done()


@final
class _Pens:
    """Writes the traces of all processes side by side."""

    def __init__(self, composition: Composition) -> None:
        self._composition = composition
        self._lines: defaultdict[str, list[str]] = defaultdict(list)
        self._begun: Counter[str] = Counter()
        self._now = 0
        machines = "|".join(sorted({part.table.name for part in composition.parts}))
        for place in dict.fromkeys(part.place for part in composition.parts):
            self._line(place, "trace", Fact(k=Of.START, val=SCHEMA, machine=machines))

    def write(self, taken: Taken) -> None:
        """Write what one step leads to."""
        self._now += 1
        if taken.kind is Kind.LOST:
            for place in self._lines:
                self._line(place, "network", Fact(k=Of.FAULT, why=f"lost: {taken.what}"))
        for moved in taken.moved:
            self._line(moved.part.place, moved.part.name, self._fact(moved, taken))

    def _fact(self, moved: Moved, taken: Taken) -> Fact:
        if moved.old == ABSENT:
            self._begun[moved.part.name] += 1
        told = Fact(
            k=Of.STATE,
            op=Op.STEP if moved.new else Op.REFUSED,
            machine=moved.part.table.name,
            key=_key(moved.part, self._begun[moved.part.name]),
            old=moved.old,
            cause=moved.trigger,
            why=taken.what,
        )
        return attrs.evolve(told, new=moved.new) if moved.new else told

    def done(self) -> Mapping[str, Lines]:
        """End all traces."""
        self._now += 1
        for place in list(self._lines):
            self._line(place, "trace", Fact(k=Of.END))
        return {place: tuple(lines) for place, lines in self._lines.items()}

    def _line(self, place: str, actor: str, fact: Fact) -> None:
        stamp = Stamp(
            run=f"check-{self._composition.name}",
            node=place,
            ln=len(self._lines[place]) + 1,
            wall_ns=self._now * _STEP,
            mono_ns=self._now * _STEP,
            t=float(self._now),
            actor=actor,
        )
        fields = [*_fields(stamp), *_fields(fact)]
        self._lines[place].append(json.dumps(dict(fields), ensure_ascii=False))


def _key(part: Part, count: int) -> str:
    return part.key.replace("{n}", str(count))


def _fields(record: Stamp | Fact) -> Sequence[tuple[str, object]]:
    told = attrs.asdict(record)
    return [(wire_name(name), value) for name, value in told.items() if value is not None]
