"""Which of many rules hold in a state, without asking them all.

Rules of one cause differ by what they test. So they stand in a tree: each node looks at one
place of the state and goes on with the rules that can still hold. It grows where a state
leads first, and says the same as asking every rule, in the same order.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias, final

from fsm.product.encoding import State, Test

__all__ = ["NOTHING", "Choice"]

_Asked: TypeAlias = tuple[int, tuple[Test, ...]]


@final
class Choice:
    """A node of the tree, and the tree below it.

    Attributes:
        rules: Those that hold, if nothing is left to be looked at.
    """

    __slots__ = ("_after", "_asked", "_place", "rules")

    def __init__(self, asked: Iterable[_Asked]) -> None:
        """Take the numbers of rules, each with what it tests."""
        self._asked = tuple(asked)
        places = Counter(place for _, tests in self._asked for place, _ in tests)
        self._place = max(places, key=lambda one: (places[one], -one)) if places else -1
        self._after: dict[int, Choice] = {}
        self.rules = () if places else tuple(number for number, _ in self._asked)

    @property
    def is_empty(self) -> bool:
        """Whether there is no rule at all."""
        return not self._asked

    def holding(self, state: State) -> tuple[int, ...]:
        """The rules that hold in `state`."""
        node = self
        while (place := node._place) >= 0:
            number = state[place]
            try:
                node = node._after[number]
            except KeyError:
                node = node._grown(number)  # noqa: SLF001 - a node of the same tree
        return node.rules

    def _grown(self, number: int) -> "Choice":
        place = self._place
        left = (
            (rule, tuple(test for test in tests if test[0] != place))
            for rule, tests in self._asked
            if all(bits >> number & 1 for where, bits in tests if where == place)
        )
        grown = self._after[number] = Choice(left)
        return grown


NOTHING: Final = Choice(())
"""No rule at all."""
