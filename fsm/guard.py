"""Guards: the conditions under which a row is followed, as data.

A guard is a conjunction of named conditions: some hold, others do not. It is not code,
so whether two guards exclude each other is read off them, and whoever explores a table
can try every case. What is true of the world at a step is said by whoever takes it.
"""

from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final, final

import attrs
from typing_extensions import override

__all__ = ["ALWAYS", "Guard", "unless", "when"]


@final
@attrs.frozen(slots=True)
class Guard:
    """When a row is followed.

    Attributes:
        when: Conditions that hold.
        unless: Conditions that do not.
    """

    when: frozenset[StrEnum] = frozenset()
    unless: frozenset[StrEnum] = frozenset()

    def holds(self, given: AbstractSet[str]) -> bool:
        """Whether this is the case where exactly the conditions `given` are true.

        They may be the table's own, or their words, as a file tells them.
        """
        return self.when <= given and self.unless.isdisjoint(given)

    def excludes(self, other: "Guard") -> bool:
        """Whether the two can never hold at once."""
        return bool(self.when & other.unless or self.unless & other.when)

    def but_not(self, *conditions: StrEnum) -> "Guard":
        """This guard, and none of `conditions` true."""
        return attrs.evolve(self, unless=self.unless | set(conditions))

    @override
    def __str__(self) -> str:
        words = sorted(one.value for one in self.when)
        words += [f"not {one}" for one in sorted(one.value for one in self.unless)]
        return " and ".join(words)


ALWAYS: Final = Guard()
"""No condition: the row is followed whenever its trigger happens."""


def when(*conditions: StrEnum) -> Guard:
    """Return the guard of a row that needs all of `conditions`."""
    return Guard(when=frozenset(conditions))


def unless(*conditions: StrEnum) -> Guard:
    """Return the guard of a row that needs all of `conditions` to be false."""
    return Guard(unless=frozenset(conditions))
