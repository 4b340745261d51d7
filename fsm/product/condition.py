"""Conditions of rules and properties: which values are wanted, as data.

A condition is written `"created|live"`, or `"not created|live"`; `[*]` is an entity that
does not exist. For a channel, the one value that can be asked for is `empty`.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, final

import attrs

__all__ = ["EMPTY", "Among", "Case", "Conditions", "both", "read"]

EMPTY: Final = "empty"
"""The value of a channel with nothing under way."""

_NOT: Final = "not "

Case: TypeAlias = Mapping[str, str]
"""Conditions as they are written: name of a part, variable or channel to values."""


@final
@attrs.frozen(slots=True)
class Among:
    """Which values are wanted of one thing.

    Attributes:
        values: Those that are named.
        is_wanted: Whether one of them is wanted, or none of them.
    """

    values: frozenset[str]
    is_wanted: bool = True

    def holds(self, value: str) -> bool:
        """Whether `value` is as wanted."""
        return (value in self.values) is self.is_wanted

    def both(self, other: "Among") -> "Among":
        """What both want."""
        match self.is_wanted, other.is_wanted:
            case True, True:
                return Among(self.values & other.values)
            case True, False:
                return Among(self.values - other.values)
            case False, True:
                return Among(other.values - self.values)
            case _:
                return Among(self.values | other.values, is_wanted=False)


Conditions: TypeAlias = Mapping[str, Among]
"""Conditions as they are used; all of them must hold."""


def read(case: Case) -> Conditions:
    """Read conditions as they are written."""
    return dict(_each(case))


def _each(case: Case) -> Iterator[tuple[str, Among]]:
    for name, text in case.items():
        words = text.removeprefix(_NOT)
        yield name, Among(frozenset(words.split("|")), is_wanted=words == text)


def both(one: Conditions, other: Conditions) -> Conditions | None:
    """Join conditions; None: they can never hold together."""
    joined = dict(one)
    for name, wanted in other.items():
        joined[name] = joined[name].both(wanted) if name in joined else wanted
        if joined[name].is_wanted and not joined[name].values:
            return None
    return joined
