"""A run as a sequence diagram in Mermaid."""

from collections.abc import Iterator, Sequence
from typing import Final

from fsm.product.composition import Composition
from fsm.product.run import Run, Taken
from fsm.product.steps import Kind

__all__ = ["sequence_diagram"]

_HARMFUL: Final = str.maketrans({";": ",", "#": " ", "<": "(", ">": ")", "\n": " "})
"""Mermaid ends a statement at a semicolon and takes the others for its own signs."""


def sequence_diagram(composition: Composition, run: Run, title: str) -> str:
    """Draw a run: who tells whom what, what is lost, and how the parts move."""
    lines = ["sequenceDiagram", f"    title {_text(title)}"]
    lines += [f"    participant {place}" for place in _places(composition)]
    for taken in run.steps:
        lines += [f"    {line}" for line in _drawn(composition, taken)]
    if run.refused is not None:
        lines += [f"    {line}" for line in _refusal(composition, run.refused)]
    lines += [f"    {line}" for line in _last(composition, run)]
    return "\n".join(lines) + "\n"


def _places(composition: Composition) -> Sequence[str]:
    named = [part.place for part in composition.parts]
    named += [end for one in composition.channels for end in (one.source, one.target)]
    return tuple(dict.fromkeys(named))


def _drawn(composition: Composition, taken: Taken) -> Iterator[str]:
    """A message is drawn where it arrives, or is lost; what it leads to stands below."""
    if taken.channel:
        arrow = "-x" if taken.kind is Kind.LOST else "->>"
        once_more = " (and once more)" if taken.kind is Kind.DELIVERED_AND_KEPT else ""
        yield _arrow(composition, taken, arrow, once_more)
    else:
        yield _note(_about(composition, taken), taken.what)
    for moved in taken.moved:
        words = f"{moved.part.name}: {moved.old} → {moved.new} by {moved.trigger}"
        yield _note(moved.part.place, words)


def _refusal(composition: Composition, taken: Taken) -> Iterator[str]:
    if taken.channel:
        yield _arrow(composition, taken, "-x", " (nobody expects it)")
    else:
        yield _note(_about(composition, taken), f"{taken.what} (no rule for it)")
    for moved in taken.moved:
        to = moved.new or "undeclared"
        yield _note(moved.part.place, f"{moved.part.name}: {moved.old} → {to} by {moved.trigger}")


def _last(composition: Composition, run: Run) -> Iterator[str]:
    for place in dict.fromkeys(part.place for part in composition.parts):
        here = [part for part in composition.parts if part.place == place]
        told = [f"{part.name} {run.last[part.name]}" for part in here]
        yield _note(place, f"in the end: {', '.join(told)}")
    for name, held in run.under_way.items():
        yield _note(_channel(composition, name)[1], f"unread: {', '.join(held)}")


def _arrow(composition: Composition, taken: Taken, arrow: str, more: str) -> str:
    source, target = _channel(composition, taken.channel)
    return f"{source}{arrow}{target}: {_text(taken.what)}{more}"


def _channel(composition: Composition, name: str) -> tuple[str, str]:
    return next((one.source, one.target) for one in composition.channels if one.name == name)


def _about(composition: Composition, taken: Taken) -> str:
    places = [moved.part.place for moved in taken.moved]
    named = [part.place for part in composition.parts if part.name in taken.what]
    return [*places, *named, composition.parts[0].place][0]


def _note(place: str, words: str) -> str:
    return f"Note over {place}: {_text(words)}"


def _text(words: str) -> str:
    return words.translate(_HARMFUL)
