"""A run of a composition, in words: what counterexamples are written from."""

from collections.abc import Iterator, Mapping, Sequence
from typing import final

import attrs

from fsm.product.compiled import follow
from fsm.product.composition import Part
from fsm.product.encoding import Encoding, State, states_of
from fsm.product.rule import Move, Rule, Send
from fsm.product.steps import NO_RULE, Kind, Next, Refusal
from specs.trace import ABSENT

__all__ = ["Moved", "Run", "Taken", "refused", "run_of"]


@final
@attrs.frozen(slots=True)
class Moved:
    """A part moved, or should have and has no row: then `new` is empty."""

    part: Part
    old: str
    trigger: str
    new: str


@final
@attrs.frozen(slots=True)
class Taken:
    """One step.

    Attributes:
        what: What happened: the message, deadline, wish or local event.
        channel: Which channel the message came by; empty: it is no message.
        moved: In order.
        sent: In order.
        cite: What the rule follows from.
        why: Why nothing was done, if nothing was.
    """

    kind: Kind
    what: str
    channel: str = ""
    moved: tuple[Moved, ...] = ()
    sent: tuple[Send, ...] = ()
    cite: str = ""
    why: str = ""

    @property
    def words(self) -> str:
        """The step as a line for people."""
        moved = [
            f"{each.part.name} {each.old} -> {each.new or 'undeclared'}" for each in self.moved
        ]
        sent = [f"sends {each.message}" for each in self.sent]
        told = ", ".join([*moved, *sent]) or self.why
        return f"{self._head}: {told}" if told else self._head

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
        refused: What happens then and has no rule or row; None: nothing of that kind.
        last: Values of parts and variables at the end.
        under_way: Messages in the channels at the end, the next one first.
    """

    steps: tuple[Taken, ...]
    refused: Taken | None
    last: Mapping[str, str]
    under_way: Mapping[str, tuple[str, ...]]


def run_of(code: Encoding, taken: Sequence[tuple[State, Next]]) -> tuple[Taken, ...]:
    """Tell steps, each with the state that it was taken in."""
    return tuple(_told(code, state, step) for state, step in taken)


def _told(code: Encoding, state: State, step: Next) -> Taken:
    kind, number, place, _ = step
    rule = None if number == NO_RULE else code.composition.rules[number]
    moved = () if rule is None else tuple(_moves(code, state, rule.act.moves))
    return _taken(code, (state, kind, place), rule, moved)


def refused(code: Encoding, state: State, refusal: Refusal) -> Taken:
    """Tell what has no rule or no row."""
    kind, number, place, count = refusal
    rule = None if number == NO_RULE else code.composition.rules[number]
    moves = () if rule is None else rule.act.moves[: count + 1]
    told = _taken(code, (state, kind, place), rule, tuple(_moves(code, state, moves)))
    return attrs.evolve(told, sent=())


def _taken(
    code: Encoding, at: tuple[State, Kind, int], rule: Rule | None, moved: tuple[Moved, ...]
) -> Taken:
    state, kind, place = at
    is_message = place >= code.first_channel
    head = code.contents.heads[state[place]] if is_message else -1
    what = code.names[head] if is_message else "" if rule is None else str(rule.cause)
    channel = code.name_at(place) if is_message else ""
    if rule is None:
        return Taken(kind, what or f"the deadline of {code.name_at(place)} is over", channel)
    done = rule.act
    return Taken(kind, what, channel, moved, done.sends, rule.cite, done.ignored)


def _moves(code: Encoding, state: State, moves: Sequence[Move]) -> Iterator[Moved]:
    parts = {part.name: part for part in code.composition.parts}
    now = {name: state[code.place[name]] for name in parts}
    for move in moves:
        part = parts[move.part]
        target = follow(part, move)[now[part.name]]
        old = ABSENT if move.begins else states_of(part)[now[part.name]]
        yield Moved(part, old, move.trigger, "" if target < 0 else states_of(part)[target])
        now[part.name] = max(target, 0)
