"""Global states as tuples of small numbers, and back.

One place per part, variable, budget and channel. A part's number is 0 for `[*]`, then its
table's states in their order; a variable's is that of its value. A channel's content is
numbered once and for all (`Contents`), 0 is the empty one; so a global state is one flat
tuple, which is quick to copy and to look up.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, final

from fsm.product.composition import Composition, Medium, Part
from fsm.product.condition import EMPTY, Among, Conditions
from specs.errors import SpecError
from specs.trace import ABSENT

__all__ = ["Contents", "Encoding", "State", "Test"]

State: TypeAlias = tuple[int, ...]
Test: TypeAlias = tuple[int, int]
"""A place, and the bits of the numbers that are wanted there."""

_LOSSES: Final = "losses left"
_DUPLICATES: Final = "duplicates left"


@final
class Contents:
    """What channels hold, each content with a number: 0 is nothing."""

    def __init__(self) -> None:
        self._held: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._pushed: dict[tuple[int, int], int] = {}
        self.heads: list[int] = [-1]
        self.tails: list[int] = [0]
        self.lengths: list[int] = [0]

    def held(self, number: int) -> tuple[int, ...]:
        """The messages of a content, the next one first."""
        return self._held[number]

    def push(self, number: int, message: int) -> int:
        """The content with `message` put behind."""
        key = number, message
        found = self._pushed.get(key)
        if found is None:
            found = self._pushed[key] = self._number((*self._held[number], message))
        return found

    def _number(self, held: tuple[int, ...]) -> int:
        known = self._numbers.get(held)
        if known is not None:
            return known
        number = self._numbers[held] = len(self._held)
        self._held.append(held)
        self.heads.append(held[0])
        self.lengths.append(len(held))
        self.tails.append(-1)
        self.tails[number] = self._number(held[1:])
        return number


@final
class Encoding:
    """Where each thing of a composition stands in a state, and what its numbers mean.

    Attributes:
        place: Of each part, variable, wish and channel, by name.
        values: What the numbers of each place mean; channels have none.
        messages: Number of each message.
        contents: Of all channels.

    Raises:
        SpecError: A name is used twice.
    """

    def __init__(self, composition: Composition) -> None:
        self.composition = composition
        self.values: list[tuple[str, ...]] = []
        self.place: dict[str, int] = {}
        self._start: list[int] = []
        self._add_all()
        self.losses = self.place[_LOSSES]
        self.duplicates = self.place[_DUPLICATES]
        self.messages = {one.name: n for n, one in enumerate(composition.messages)}
        self.names = tuple(self.messages)
        self.contents = Contents()

    def _add_all(self) -> None:
        whole = self.composition
        for part in whole.parts:
            self._add(part.name, states_of(part), 0)
        for variable in whole.variables:
            self._add(variable.name, variable.values, 0)
        bounds = whole.bounds
        self._add(_LOSSES, _counted(bounds.losses), bounds.losses)
        self._add(_DUPLICATES, _counted(bounds.duplicates), bounds.duplicates)
        for wish in whole.wishes:
            self._add(wish.name, _counted(wish.budget), wish.budget)
        self.first_channel = len(self.values)
        for channel in whole.channels:
            self._add(channel.name, (EMPTY,), 0)

    def _add(self, name: str, values: tuple[str, ...], start: int) -> None:
        if name in self.place:
            raise SpecError(f"composition {self.composition.name}: two things are named {name!r}")
        self.place[name] = len(self.values)
        self.values.append(values)
        self._start.append(start)

    @property
    def start(self) -> State:
        """The state in which every run begins."""
        return tuple(self._start)

    def channel(self, name: str) -> int:
        """The place of a channel.

        Raises:
            SpecError: None is named so.
        """
        if self.place.get(name, -1) < self.first_channel:
            raise self.wrong(f"no channel is named {name!r}")
        return self.place[name]

    def message(self, name: str) -> int:
        """The number of a message.

        Raises:
            SpecError: None is named so.
        """
        if name not in self.messages:
            raise self.wrong(f"no message is named {name!r}")
        return self.messages[name]

    def number(self, name: str, value: str) -> int:
        """The number of a value.

        Raises:
            SpecError: There is no such thing, or it has no such value.
        """
        values = self.values[self._place(name)]
        if value not in values:
            raise self.wrong(f"{name!r} is never {value!r}: it is one of {', '.join(values)}")
        return values.index(value)

    def tests(self, conditions: Conditions) -> tuple[Test, ...]:
        """Conditions as the places and bits that a state is held against.

        Raises:
            SpecError: There is no such thing, or it has no such value.
        """
        return tuple(
            (self._place(name), self._bits(name, wanted)) for name, wanted in conditions.items()
        )

    def _place(self, name: str) -> int:
        if name not in self.place:
            raise self.wrong(f"nothing is named {name!r}")
        return self.place[name]

    def _bits(self, name: str, wanted: Among) -> int:
        bits = sum(1 << self.number(name, value) for value in wanted.values)
        return bits if wanted.is_wanted else ~bits

    def wrong(self, why: str) -> SpecError:
        """Return the error that says what is wrong with the composition."""
        return SpecError(f"composition {self.composition.name}: {why}")

    def name_at(self, place: int) -> str:
        """The name of what stands at a place."""
        return next(name for name, where in self.place.items() if where == place)

    def told(self, state: State) -> Mapping[str, str]:
        """The values of parts and variables in `state`, by name."""
        return {
            name: self.values[place][state[place]]
            for name, place in self.place.items()
            if place < self.first_channel
        }

    def under_way(self, state: State) -> Mapping[str, tuple[str, ...]]:
        """The messages in each channel that is not empty, the next one first."""
        return {
            channel.name: tuple(self.names[one] for one in held)
            for channel in self.composition.channels
            if (held := self.contents.held(state[self.place[channel.name]]))
        }

    def room(self, name: str) -> int:
        """How many messages a channel holds at most."""
        kinds = {channel.name: channel.medium for channel in self.composition.channels}
        return self.composition.bounds.channel if kinds[name] is Medium.NETWORK else _PLENTY


_PLENTY: Final = 1_000_000
"""Room of a channel without bound: within a process nothing waits for room."""


def states_of(part: Part) -> tuple[str, ...]:
    """The states of a part, absent first."""
    return (ABSENT, *(state.value for state in part.table.states))


def _counted(most: int) -> tuple[str, ...]:
    return tuple(str(count) for count in range(most + 1))
