"""A run of a composition as a trace, one file per process, and as a Mermaid sequence diagram.

The processes of the trace are the places of the composition. Each record is of a step that a
machine took; what was lost is a fault. The clock counts the steps of the run.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.trace_line import wire_name
from fsm.product.composition import Composition
from fsm.product.run import Run, Taken
from fsm.product.steps import Kind
from specs.trace import ABSENT, SCHEMA, Fact, Op, Stamp
from specs.trace import Kind as Of

__all__ = ["Lines", "sequence_diagram", "trace_of"]


# ---- traces


Lines: TypeAlias = tuple[str, ...]

_STEP: Final = 1_000_000_000
"""Nanoseconds between two steps: a second."""


def trace_of(composition: Composition, run: Run) -> Mapping[str, Lines]:
    """Return the trace lines of each process, by its name.

    Args:
        composition: What was explored.
        run: One run of it.
    """
    pens = _Pens(composition, run)
    for taken in run.steps:
        pens.write(taken)
    return pens.done()


@final
class _Pens:
    """Writes the traces of all processes side by side."""

    def __init__(self, composition: Composition, run: Run) -> None:
        self._composition = composition
        self._lines: defaultdict[str, list[str]] = defaultdict(list)
        self._now = 0
        fields = {step.machine for taken in run.steps for step in taken.moved}
        machines = "|".join(sorted(fields))
        for place in composition.places:
            self._line(place.name, "trace", Fact(k=Of.START, val=SCHEMA, machine=machines))

    def write(self, taken: Taken) -> None:
        """Write what one step leads to."""
        self._now += 1
        if taken.kind is Kind.LOST:
            for place in self._lines:
                self._line(place, "network", Fact(k=Of.FAULT, why=f"lost: {taken.what}"))
        for moved in taken.moved:
            fact = Fact(
                k=Of.STATE,
                op=Op.STEP,
                machine=moved.machine,
                key=moved.key,
                old=moved.old or ABSENT,
                new=moved.new,
                cause=moved.cause,
                why=taken.what,
            )
            self._line(taken.place, taken.place, fact)

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


def _fields(record: Stamp | Fact) -> Sequence[tuple[str, object]]:
    fields = attrs.asdict(record)
    return [(wire_name(name), value) for name, value in fields.items() if value is not None]


# ---- sequence diagrams


_HARMFUL: Final = str.maketrans({";": ",", "#": " ", "<": "(", ">": ")", "\n": " "})
"""Mermaid ends a statement at a semicolon and takes the others for its own signs."""


def sequence_diagram(composition: Composition, run: Run, title: str) -> str:
    """Draw a run: its messages, its losses, and the steps of the machines.

    Args:
        composition: What was explored.
        run: The run.
        title: Title of the drawing.
    """
    lines = ["sequenceDiagram", f"    title {_text(title)}"]
    lines += [f"    participant {_id(place.name)}" for place in composition.places]
    for taken in run.steps:
        lines += [f"    {line}" for line in _drawn(composition, taken)]
    if run.refused is not None:
        lines += [f"    {line}" for line in _refusal(composition, run.refused)]
    lines += [f"    {line}" for line in _last(composition, run)]
    return "\n".join(lines) + "\n"


def _drawn(composition: Composition, taken: Taken) -> Iterator[str]:
    """A message is drawn where it arrives, or is lost; what it leads to stands below."""
    if taken.channel:
        arrow = "-x" if taken.kind is Kind.LOST else "->>"
        once_more = " (and once more)" if taken.kind is Kind.DELIVERED_AND_KEPT else ""
        yield _arrow(composition, taken, arrow, once_more)
    else:
        yield _note(_id(taken.place), taken.what)
    for moved in taken.moved:
        words = f"{moved.machine} {moved.key}: {moved.old or ABSENT} → {moved.new}"
        yield _note(_id(taken.place), f"{words} by {moved.cause}")


def _refusal(composition: Composition, taken: Taken) -> Iterator[str]:
    if taken.channel:
        yield _arrow(composition, taken, "-x", " (nobody expects it)")
    else:
        yield _note(_id(taken.place), f"{taken.what} (nobody expects it)")
    yield _note(_id(taken.place), taken.refused)


def _last(composition: Composition, run: Run) -> Iterator[str]:
    for place, step in run.last():
        yield _note(_id(place), f"in the end: {step.machine} {step.key} {step.new}")
    for name, held in run.under_way.items():
        unread = ", ".join(map(str, held))
        yield _note(_channel(composition, name)[1], f"unread: {unread}")


def _arrow(composition: Composition, taken: Taken, arrow: str, more: str) -> str:
    source, target = _channel(composition, taken.channel)
    return f"{source}{arrow}{target}: {_text(taken.what)}{more}"


def _channel(composition: Composition, name: str) -> tuple[str, str]:
    found = next(one for one in composition.channels if one.name == name)
    return _id(found.source), _id(found.target)


def _id(place: str) -> str:
    return place.replace(" ", "_")


def _note(place: str, words: str) -> str:
    return f"Note over {place}: {_text(words)}"


def _text(words: str) -> str:
    return words.translate(_HARMFUL)
