"""Differences between a run and its scenario, in the scenario's words."""

from typing import Final, final

import attrs
import orjson

from specs.message import Message
from specs.message_catalogue import message_kind
from tests.conformance.play.match.names import Names
from tests.conformance.play.match.order import Match
from tests.conformance.play.script.steps import (
    AuthzStep,
    CallStep,
    FaultStep,
    IngestStep,
    MessageStep,
    ResolveStep,
    StateStep,
    Step,
    TableStep,
    TimeStep,
)

_SHOWN: Final = 300


@final
@attrs.frozen
class Candidate:
    """Something seen that can be a step.

    Attributes:
        names: The names as they are if it is.
        text: What it is, in the scenario's words.
    """

    match: Match
    names: Names
    text: str = ""


@final
@attrs.frozen
class NearMiss:
    """Something seen that cannot be a step, but nearly.

    Attributes:
        likeness: How near; larger is nearer.
        text: What it is, and what is wrong with it, in the scenario's words.
    """

    likeness: int
    text: str


@final
@attrs.frozen
class Difference:
    """The first step that was not seen as the scenario has it.

    Attributes:
        number: Of the step; 0 for something that contradicts the scenario as a whole.
        expected: The step of the scenario.
        seen: What was seen instead: the nearest first; empty: nothing like it.
    """

    number: int
    expected: str
    seen: tuple[str, ...]


def show_message(message: Message, names: Names | None = None) -> str:
    """Write a message in one line, in the scenario's words if `names` are given.

    What it is for is said behind it, where it is one of the catalogue.

    Args:
        message: The message.
        names: Values that stand for names of the scenario.
    """

    def said(address: str) -> str:
        return address if names is None else names.golden(address)

    body = message.body if names is None else names.in_golden(message.body)
    ends = f"{said(message.from_)} -> {said(message.to)}"
    kind = message_kind(message)
    what = "" if kind is None else f" ({kind.name})"
    return f"#{message.id} {message.type} {ends} {_short(body)}{what}"


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def show_step(step: Step) -> str:
    """Write a step in one line."""
    match step:
        case MessageStep(message=message):
            marks = step.marks
            marks += [f"drop:{step.drop}"] if step.drop is not None else []
            marks += [f"p2p:{step.link}"] if step.link is not None else []
            ending = f" [{' '.join(marks)}]" if marks else ""
            return f"{step.hop.text} {show_message(message)}{ending}"
        case StateStep():
            return f"{step.machine}({'|'.join(step.key)}): {step.old or 'nothing'} -> {step.new}"
        case TableStep():
            val = "" if step.val is None else f" = {_short(step.val)}"
            return f"table {step.table} {step.op} at {step.at.text}: {step.key}{val}"
        case ResolveStep():
            return f"resolve at {step.at.text}: {step.to} => {step.result or 'none'}"
        case AuthzStep():
            return f"authz at {step.at.text}: step {step.ref} => {step.decision}"
        case _:
            return _show_cue(step)


def _show_cue(step: TimeStep | FaultStep | CallStep | IngestStep) -> str:
    match step:
        case TimeStep():
            return f"{step.seconds:g} s pass"
        case FaultStep():
            return f"fault: {step.what}"
        case CallStep():
            return f"call: {step.what}"
        case IngestStep():
            return f"ingest: {_short(step.raw)}"
