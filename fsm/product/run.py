"""A run of a composition, in words: what counterexamples are written from."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import final

import attrs

from fsm.engine import Step
from fsm.product.composition import Sent
from fsm.product.steps import Kind, Next, Refusal, State, Steps
from specs.trace import ABSENT

__all__ = ["Run", "Taken", "run_of", "taken"]


@final
@attrs.frozen(slots=True)
class Taken:
    """One step.

    Attributes:
        place: Where it was taken.
        happened: The message, or what a place takes at an event; None: a deadline is over.
        what: The same in words.
        channel: Which channel the message came by; empty: it is no message.
        event: Number of the event in the composition; None: it is none.
        moved: The machines' steps, in order.
        sent: In order.
        refused: What was not taken and why; empty: it was taken.
    """

    kind: Kind
    place: str
    happened: Hashable
    what: str
    channel: str = ""
    event: int | None = None
    moved: tuple[Step, ...] = ()
    sent: tuple[Sent, ...] = ()
    refused: str = ""

    @property
    def words(self) -> str:
        """The step as a line for people."""
        moved = [f"{one.machine} {one.key} {one.old or ABSENT} -> {one.new}" for one in self.moved]
        sent = [f"sends {one.message}" for one in self.sent]
        result = ", ".join([*moved, *sent]) or self.refused
        return f"{self._head}: {result}" if result else self._head

    @property
    def _head(self) -> str:
        match self.kind:
            case Kind.LOST:
                return f"{self.what} is lost on {self.channel}"
            case Kind.DELIVERED_AND_KEPT:
                return f"{self.what} comes by {self.channel}, and will once more"
            case Kind.DELIVERED:
                return f"{self.what} comes by {self.channel}"
            case _:
                return self.what


@final
@attrs.frozen(slots=True)
class Run:
    """A run from the beginning.

    Attributes:
        steps: In order.
        refused: What happens then and is not taken; None: nothing of that kind.
        under_way: Messages in the channels at the end, the next one first.
    """

    steps: tuple[Taken, ...]
    refused: Taken | None
    under_way: Mapping[str, tuple[Hashable, ...]]

    def last(self) -> Iterator[tuple[str, Step]]:
        """The last step of each machine, with its place."""
        found: dict[tuple[str, str, str], Step] = {}
        for one in self.steps:
            found |= {(one.place, each.machine, each.key): each for each in one.moved}
        yield from ((place, step) for (place, _, _), step in found.items())


def run_of(steps: Steps, path: Sequence[tuple[State, Next]]) -> tuple[Taken, ...]:
    """Return the run that a path of steps is.

    Args:
        steps: The steps of the composition.
        path: Each step, with the state before it.
    """
    return tuple(taken(steps, state, step) for state, step in path)


def taken(steps: Steps, state: State, step: Next | Refusal) -> Taken:
    """Return what a step does in a state, or what is refused there.

    Args:
        steps: The steps of the composition.
        state: The state.
        step: The step.
    """
    kind, about, _ = step[:3]
    place, reaction = steps.reaction(state, step)
    happened, whole = steps.happened(step), steps.composition
    is_event = kind in {Kind.LOCAL, Kind.REQUEST}
    is_time = kind in {Kind.DEADLINE, Kind.EARLY}
    if is_time:
        what = f"a deadline of {place} is over"
    else:
        what = whole.events[about].name if is_event else str(happened)
    return Taken(
        kind=kind,
        place=place,
        happened=happened,
        what=what,
        channel="" if is_event or is_time else whole.channels[about].name,
        event=about if is_event else None,
        moved=reaction.moved,
        sent=steps.sent(reaction),
        refused=reaction.undeclared or reaction.broken,
    )
