"""Output of an explored run as a trace, a Mermaid sequence diagram and a scenario file.

The trace has one file for each participant of the composition, as if each were a process. Each
record is about a state machine transition, or about a fault that lost a message. The clock counts
the steps of the run.

The scenario (protocol page 09) can be played with real actors. A message is listed when it arrives,
in normal form, with the id of its request if it is an answer. A lost message is listed when it is
sent, with `"drop": "lost"`: actors do not wait until a later step reports the loss. A message that
comes twice is listed when it comes first, with `"doubled": true`; both marks are additions of this
project. An external event is a line of its own before its effects, or a remark if no line can
express it; a deadline is a passage of time; a notice within a process is left out.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from fsm.engine import Step
from fsm.explore.composition import Composition, Event, Wire
from fsm.explore.explorer import Run, Taken
from fsm.explore.steps import Kind
from fsm.judge.trace_line import wire_name
from fsm.machine_list import MACHINES
from specs.jsonvalue import Json, JsonObject
from specs.trace import ABSENT, SCHEMA, Fact, Op, Stamp
from specs.trace import Kind as Of

# --- traces


Lines: TypeAlias = tuple[str, ...]

_STEP: Final = 1_000_000_000
"""Nanoseconds between two steps of a run in its trace: a second."""


def trace_of(composition: Composition, run: Run) -> Mapping[str, Lines]:
    """Return a run as trace lines of each process, by its name.

    Args:
        composition: The composition that was explored.
        run: One run of it.
    """
    lines: dict[str, list[str]] = {place: [] for place in composition.places}
    for now, place, actor, fact in _facts(composition, run):
        stamp = Stamp(
            run=f"check-{composition.name}",
            node=place,
            ln=len(lines[place]) + 1,
            wall_ns=now * _STEP,
            mono_ns=now * _STEP,
            t=float(now),
            actor=actor,
        )
        fields = attrs.asdict(stamp) | attrs.asdict(fact)
        record = {wire_name(name): value for name, value in fields.items() if value is not None}
        lines[place].append(json.dumps(record, ensure_ascii=False))
    return {place: tuple(facts) for place, facts in lines.items()}


def _facts(composition: Composition, run: Run) -> Iterator[tuple[int, str, str, Fact]]:
    """Yield the facts for the trace: number of the step, process, component and fact."""
    machines = "|".join(sorted({step.machine for taken in run.steps for step in taken.moved}))
    for place in composition.places:
        yield 0, place, "trace", Fact(k=Of.START, val=SCHEMA, machine=machines)
    for now, taken in enumerate(run.steps, 1):
        for place in composition.places if taken.kind is Kind.LOST else ():
            yield now, place, "network", Fact(k=Of.FAULT, why=f"lost: {taken.what}")
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
            yield now, taken.place, taken.place, fact
    for place in composition.places:
        yield len(run.steps) + 1, place, "trace", Fact(k=Of.END)


# --- sequence diagrams


_HARMFUL: Final = str.maketrans({";": ",", "#": " ", "<": "(", ">": ")", "\n": " "})
"""Replacements for characters that have a meaning in Mermaid, such as the end of a statement."""


def sequence_diagram(composition: Composition, run: Run, title: str) -> str:
    """Return a run as a Mermaid diagram of messages, losses and state machine transitions.

    Args:
        composition: The composition that was explored.
        run: The run.
        title: Title of the drawing.
    """
    lines = ["sequenceDiagram", f"    title {_text(title)}"]
    lines += [f"    participant {_id(place)}" for place in composition.places]
    for taken in run.steps:
        lines += [f"    {line}" for line in _draw_steps(composition, taken)]
    if run.refused is not None:
        lines += [f"    {line}" for line in _refusal(composition, run.refused)]
    lines += [f"    {line}" for line in _last(composition, run)]
    return "\n".join(lines) + "\n"


def _draw_steps(composition: Composition, taken: Taken) -> Iterator[str]:
    """Yield the lines for a message that arrives or is lost, and for the transitions it causes."""
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
        yield _arrow(composition, taken, "-x", " (unexpected)")
    else:
        yield _note(_id(taken.place), f"{taken.what} (unexpected)")
    yield _note(_id(taken.place), taken.refused)


def _last(composition: Composition, run: Run) -> Iterator[str]:
    for place, step in run.last():
        yield _note(_id(place), f"in the end: {step.machine} {step.key} {step.new}")
    for name, waiting in run.under_way.items():
        unread = ", ".join(map(str, waiting))
        yield _note(_channel(composition, name)[1], f"unread: {unread}")


def _arrow(composition: Composition, taken: Taken, arrow: str, more: str) -> str:
    source, target = _channel(composition, taken.channel)
    return f"{source}{arrow}{target}: {_text(taken.what)}{more}"


def _channel(composition: Composition, name: str) -> tuple[str, str]:
    match = next(channel for channel in composition.channels if channel.name == name)
    return _id(match.source), _id(match.target)


def _id(place: str) -> str:
    return place.replace(" ", "_")


def _note(place: str, words: str) -> str:
    return f"Note over {place}: {_text(words)}"


def _text(words: str) -> str:
    return words.translate(_HARMFUL)


# --- scenarios --------------------------------------------------------------------------


_LINK: Final = "p2p_connection"
"""Machine whose keys a scenario shortens by omitting their last part."""


_MARKS: Final[Mapping[Kind, JsonObject]] = {
    Kind.LOST: {"drop": "lost"},
    Kind.DELIVERED_AND_KEPT: {"doubled": True},
}


def scenario_of(composition: Composition, run: Run, name: str, rest: float = 0.0) -> str:
    """Return a run as the text of a scenario file.

    Args:
        composition: The composition of the run.
        run: The run; its last step is the fault, if the fault is a step.
        name: Name of the scenario.
        rest: Seconds that pass after the run, in which no participant acts.
    """
    writer = _Writer(composition, name)
    taken = [*run.steps] if run.refused is None else [*run.steps, run.refused]
    lines = [line for step in _in_order(taken) for line in writer.lines(step)]
    if rest:
        lines.append(writer.rest(rest))
    if lines:
        lines[:0] = [{"sc": name, **line} for line in composition.given]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _in_order(taken: Sequence[Taken]) -> Iterator[Taken]:
    """Yield the steps, each loss right after the step that sent the lost message."""
    lost: defaultdict[int, list[Taken]] = defaultdict(list)
    kept: set[tuple[str, str]] = set()
    for number, step in enumerate(taken):
        if step.kind is Kind.DELIVERED_AND_KEPT:
            kept.add((step.channel, step.what))
        elif step.kind is Kind.LOST and (step.channel, step.what) not in kept:
            lost[_sender(taken[:number], step)].append(step)
    for number, step in enumerate(taken):
        if step.kind is not Kind.LOST:
            yield step
        yield from lost[number]


def _sender(earlier: Sequence[Taken], lost: Taken) -> int:
    """Return the index of the last step that sent an equal message."""
    sent = lost.channel, lost.input
    return max(number for number, step in enumerate(earlier) if sent in step.sent)


class _Writer:
    """Writer of scenario lines, which numbers the lines, and the messages of each sender."""

    def __init__(self, composition: Composition, name: str) -> None:
        self._name = name
        self._whole = composition
        self._count = 0
        self._ids: Counter[str] = Counter()
        self._asked: dict[str, int] = {}
        self._kept: set[tuple[str, str]] = set()

    def rest(self, seconds: float) -> JsonObject:
        """Return the line that lets time pass at the end, while no participant acts."""
        return self._line("time", dt=seconds, why="nothing happens any more")

    def lines(self, taken: Taken) -> Iterator[JsonObject]:
        """Yield the scenario lines for one step of the run."""
        if taken.channel:
            yield from self._message(taken)
        elif taken.event is not None:
            yield from self._event(taken, self._whole.events[taken.event])
        else:
            yield self._line("time", dt=_seconds(taken), why=taken.what)
        for moved in taken.moved:
            yield self._state(moved)

    def _event(self, taken: Taken, event: Event) -> Iterator[JsonObject]:
        """Yield the line of an event, except an event that actors cause by themselves."""
        if event.budget is None:
            return
        if event.done is not None:
            yield {"sc": self._name, **event.done}
        is_broken = event.is_fault and event.done is not None
        yield self._line("fault" if is_broken else "call", what=f"request: {taken.what}")

    def _message(self, taken: Taken) -> Iterator[JsonObject]:
        """Yield the line of a message, unless it is the repetition of an earlier one."""
        known = taken.channel, taken.what
        is_again = known in self._kept
        self._kept.discard(known)
        if taken.kind is Kind.DELIVERED_AND_KEPT:
            self._kept.add(known)
        wire = None if taken.input is None else self._whole.wire(taken.channel, taken.input)
        if wire is not None and not is_again:
            message = {"id": self._id(wire), **wire.message}
            yield self._line("msg", hop=wire.hop, msg=message, **_MARKS.get(taken.kind, {}))
        elif wire is None and taken.kind is Kind.LOST:
            yield self._line("call", what=f"lost: {taken.what}")

    def _id(self, wire: Wire) -> int:
        if wire.message["type"] == "response":
            return self._asked.get(wire.request, 1)
        sender = str(wire.message["from"])
        self._ids[sender] += 1
        self._asked[wire.request] = self._ids[sender]
        return self._ids[sender]

    def _state(self, moved: Step) -> JsonObject:
        key: list[Json] = [*moved.key.split("|")]
        return self._line(
            "state",
            machine=moved.machine,
            key=key[:3] if moved.machine == _LINK else key,
            old=moved.old,
            new=moved.new,
            cause=moved.cause,
        )

    def _line(self, kind: str, **fields: Json) -> JsonObject:
        self._count += 1
        return {"sc": self._name, "n": self._count, "k": kind, **fields}


def _seconds(taken: Taken) -> float:
    """Return the deadline of the first machine that makes a transition; 1 s if it has none."""
    for moved in taken.moved:
        deadline = MACHINES[moved.machine].deadline(moved.old or ABSENT)
        if deadline is not None and deadline.seconds is not None:
            return deadline.seconds
    return 1.0
