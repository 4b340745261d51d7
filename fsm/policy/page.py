"""Reading one value of a policy document: its form, its place, and its error (POL-03)."""

import math
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, TypeAlias, TypeGuard, TypeVar

import attrs

from specs.errors import ProtoflyError
from specs.limits.node import MAX_POLICY_TEXT
from specs.limits.protocol import MAX_ID


class BadPolicyError(ProtoflyError):
    """A policy does not say what a policy must say: it is refused as a whole.

    Attributes:
        source: Which file, or by whose message.
        path: Where in it, such as `policies[0].rules[2].effect`; empty: all of it.
        reason: Which rule it breaks and what to write instead, as half a sentence.
    """

    def __init__(self, source: str, path: str, reason: str) -> None:
        super().__init__(": ".join(part for part in (source, path, reason) if part))
        self.source = source
        self.path = path
        self.reason = reason


Table: TypeAlias = Mapping[str, object]
"""A table of TOML, or an object of JSON."""

_W = TypeVar("_W")

_SHOWN: Final = 40


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that every reader of JSON keeps exactly."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_ID


@attrs.frozen
class Place:
    """One value and its path.

    Attributes:
        source: The file, or by whose message it came.
        path: Such as `policies[0].rules[2].effect`; empty: all of it.
        value: What stands there; None: nothing.
    """

    source: str
    path: str
    value: object

    def bad(self, reason: str) -> BadPolicyError:
        """Return the error that says what is wrong here."""
        return BadPolicyError(self.source, self.path, reason)

    def table(self) -> Table:
        """Return a table.

        Raises:
            BadPolicyError: It is none. So do all methods below, for what they return.
        """
        if not isinstance(self.value, dict):
            raise self.bad(f"must be a table, not {self._describe()}")
        return self.value

    def key(self, name: str) -> "Place":
        """Go to a key of this table."""
        path = f"{self.path}.{name}" if self.path else name
        return Place(self.source, path, self.table().get(name))

    def keys(self, known: Collection[str]) -> Iterator["Place"]:
        """Visit each key that is there.

        Args:
            known: The keys that there may be.

        Raises:
            BadPolicyError: There is another key, or no table.
        """
        for name in self.table():
            if name not in known:
                close = get_close_matches(str(name), known, 1)
                what = f"write {close[0]}" if close else f"known are {', '.join(known)}"
                raise self.bad(f"{str(name)[:_SHOWN]!r} is no key here; {what}")
            yield self.key(name)

    def items(self, most: int) -> list["Place"]:
        """Return the items of a list; none, if nothing is there.

        Raises:
            BadPolicyError: It is no list, or has too many items.
        """
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.bad(f"must be a list, not {self._describe()}")
        if len(self.value) > most:
            raise self.bad(f"lists {len(self.value)}; more than {most} are too many")
        return [
            Place(self.source, f"{self.path}[{number}]", each)
            for number, each in enumerate(self.value)
        ]

    def text(self) -> str:
        """Return a text; empty, if nothing is there.

        Raises:
            BadPolicyError: It is no text, or too long.
        """
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.bad(f"must be text in quotes, not {self._describe()}")
        if len(self.value) > MAX_POLICY_TEXT:
            raise self.bad(f"a text has at most {MAX_POLICY_TEXT} characters")
        return self.value

    def label(self) -> str:
        """Return a text or a whole number, as text."""
        is_whole = isinstance(self.value, int) and is_number(self.value)
        return str(self.value) if is_whole else self.text()

    def number(self) -> float:
        """Return a number; 0, if nothing is there.

        Raises:
            BadPolicyError: It is no number.
        """
        if self.value is None:
            return 0
        if not is_number(self.value):
            raise self.bad(f"must be a number, not {self._describe()}")
        return self.value

    def word(self, words: Mapping[str, _W], default: _W) -> _W:
        """Return the value that a word of a vocabulary stands for.

        Args:
            words: The vocabulary.
            default: The value if nothing is there.

        Raises:
            BadPolicyError: It is no word of the vocabulary.
        """
        if self.value is None:
            return default
        found = words.get(self.value) if isinstance(self.value, str) else None
        if found is None:
            raise self.bad(f"must be one of {', '.join(words)}, not {self._describe()}")
        return found

    def _describe(self) -> str:
        if self.value is None:
            return "absent"
        if isinstance(self.value, dict):
            return "a table"
        return "a list" if isinstance(self.value, list) else repr(self.value)[:_SHOWN]
