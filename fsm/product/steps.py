"""What may happen next in a composition: its rules, and nothing besides."""

from enum import Enum, unique
from typing import Final, TypeAlias, final

from fsm.product.choice import NOTHING, Choice
from fsm.product.compiled import UNDECLARED, compile_rules
from fsm.product.composition import Composition, Haste, Medium, Patience
from fsm.product.encoding import Encoding, State

__all__ = ["FAIR", "NO_RULE", "Kind", "Next", "Refusal", "Steps"]


@unique
class Kind(Enum):
    """What sort of step it is."""

    DELIVERED = "delivered"
    DELIVERED_AND_KEPT = "delivered, and once more"
    LOST = "lost"
    DEADLINE = "deadline"
    LOCAL = "local"
    WISH = "wish"


FAIR: Final = frozenset({Kind.DELIVERED, Kind.DEADLINE, Kind.LOCAL})
"""What goes on by itself: no fault, and nothing that the surroundings must want."""

NO_RULE: Final = -1
"""Number of the rule of a step that has none."""

Next: TypeAlias = tuple[Kind, int, int, State]
"""A step that may be taken: its kind, the number of its rule (`NO_RULE`: a loss), the place
of the channel, part or wish that it is about (-1: none), and the state entered."""

Refusal: TypeAlias = tuple[Kind, int, int, int]
"""Something for which there is no rule or no row: kind, rule (`NO_RULE`: none says
anything), place, and which move of the rule is undeclared (-1: there is no rule)."""


@final
class Steps:
    """The steps of a composition.

    Attributes:
        encoding: How its states are written.
        held_back: How many steps waited for room in a network so far.

    Raises:
        SpecError: A rule speaks of something that the composition does not have.
    """

    def __init__(self, composition: Composition) -> None:
        self.composition = composition
        self.encoding = Encoding(composition)
        self.held_back = 0
        self._waits = composition.patience is Patience.AT_REST
        self._hastes = composition.haste is Haste.LOCAL_FIRST
        self._program = compile_rules(composition, self.encoding)
        self._contents = self.encoding.contents
        self._found: list[Next] = []
        self._refused: list[Refusal] = []
        media = [(self.encoding.place[one.name], one.medium) for one in composition.channels]
        self._inner = tuple(place for place, medium in media if medium is Medium.LOCAL)
        self._outer = tuple(
            (place, medium is Medium.NETWORK)
            for place, medium in media
            if medium is not Medium.LOCAL
        )

    def of(self, state: State) -> tuple[list[Next], list[Refusal]]:
        """Every step that may be taken in `state`, and what is refused there."""
        self._found, self._refused = [], []
        self._within(state)
        if not self._hastes or not (self._found or self._refused):
            self._between(state)
        return self._found, self._refused

    def _within(self, state: State) -> None:
        """What the parts of one process tell each other."""
        for place in self._inner:
            if state[place]:
                self._message(state, place)

    def _between(self, state: State) -> None:
        """All the rest."""
        for place, is_network in self._outer:
            if state[place]:
                self._message(state, place)
                if is_network:
                    self._faults(state, place)
        self._each(Kind.LOCAL, self._program.local, state)
        if not self._waits or all(step[0] not in FAIR for step in self._found):
            self._time(state)
        for place, choice in self._program.on_wish:
            if state[place]:
                self._try_all(Kind.WISH, choice, place, _less(state, place))

    def _time(self, state: State) -> None:
        for place, by_state in self._program.on_deadline:
            choice = by_state[state[place]]
            if choice is not None and choice.is_empty:
                self._refused.append((Kind.DEADLINE, NO_RULE, place, -1))
            elif choice is not None:
                self._by_itself(Kind.DEADLINE, choice, place, state)
        self._each(Kind.DEADLINE, self._program.late, state)

    def _message(self, state: State, place: int) -> None:
        content = state[place]
        choice = self._program.on_message.get((place, self._contents.heads[content]), NOTHING)
        after = _with(state, place, self._contents.tails[content])
        if not self._try_all(Kind.DELIVERED, choice, place, after):
            self._refused.append((Kind.DELIVERED, NO_RULE, place, -1))

    def _faults(self, state: State, place: int) -> None:
        content, code = state[place], self.encoding
        if state[code.losses]:
            left = _with(_less(state, code.losses), place, self._contents.tails[content])
            self._found.append((Kind.LOST, NO_RULE, place, left))
        if state[code.duplicates]:
            choice = self._program.on_message.get((place, self._contents.heads[content]), NOTHING)
            self._try_all(Kind.DELIVERED_AND_KEPT, choice, place, _less(state, code.duplicates))

    def _each(self, kind: Kind, choices: tuple[Choice, ...], state: State) -> None:
        for choice in choices:
            if choice.holding(state):
                self._by_itself(kind, choice, -1, state)

    def _by_itself(self, kind: Kind, choice: Choice, place: int, state: State) -> None:
        """A step that changes nothing is none: else nothing would ever come to rest."""
        for number in choice.holding(state):
            after = self._take(kind, number, place, state)
            if after is not None and after != state:
                self._found.append((kind, number, place, after))

    def _try_all(self, kind: Kind, choice: Choice, place: int, state: State) -> bool:
        """Take each rule that holds; False: none does."""
        holding = choice.holding(state)
        for number in holding:
            after = self._take(kind, number, place, state)
            if after is not None:
                self._found.append((kind, number, place, after))
        return bool(holding)

    def _take(self, kind: Kind, number: int, place: int, state: State) -> State | None:
        """The state after a rule; None: a row is missing, or a network has no room."""
        rule = self._program.rules[number]
        new = list(state)
        for count, (part, targets) in enumerate(rule.moves):
            target = targets[new[part]]
            if target == UNDECLARED:
                self._refused.append((kind, number, place, count))
                return None
            new[part] = target
        for variable, value in rule.sets:
            new[variable] = value
        contents = self._contents
        for channel, message, room in rule.sends:
            if contents.lengths[new[channel]] >= room:
                self.held_back += 1
                return None
            new[channel] = contents.push(new[channel], message)
        return tuple(new)


def _with(state: State, place: int, value: int) -> State:
    return (*state[:place], value, *state[place + 1 :])


def _less(state: State, place: int) -> State:
    return _with(state, place, state[place] - 1)
