"""A run as a sequence diagram in Mermaid."""

from collections.abc import Iterator
from typing import Final

from fsm.product.composition import Composition
from fsm.product.run import Run, Taken
from fsm.product.steps import Kind
from specs.trace import ABSENT

__all__ = ["sequence_diagram"]

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
