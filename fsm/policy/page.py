"""Access to values of a policy document, with type checks and errors that name paths (POL-03)."""

import math
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, TypeAlias, TypeGuard, TypeVar

import attrs

from specs.errors import ProtoflyError
from specs.limits.node import MAX_POLICY_TEXT
from specs.limits.protocol import MAX_ID


class BadPolicyError(ProtoflyError):
    """Error: a policy document breaks a rule, and is refused as a whole.

    Attributes:
        source: The file, or the sender of the message.
        path: Path of the value, such as `policies[0].rules[2].effect`; empty: the whole document.
        reason: The rule that it breaks and the remedy, as half a sentence.
    """

    def __init__(self, source: str, path: str, reason: str) -> None:
        super().__init__(": ".join(part for part in (source, path, reason) if part))
        self.source = source
        self.path = path
        self.reason = reason


Table: TypeAlias = Mapping[str, object]
"""Table of TOML, or object of JSON."""

_W = TypeVar("_W")

_SHOWN: Final = 40


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that every reader of JSON reads exactly."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_ID


@attrs.frozen
class Place:
    """Value in a policy document, with its path.

    Attributes:
        source: The file, or the sender of the message.
        path: Path such as `policies[0].rules[2].effect`; empty: the whole document.
        value: The value; None: absent.
    """

    source: str
    path: str
    value: object

    def bad(self, reason: str) -> BadPolicyError:
        """Return an error about this value."""
        return BadPolicyError(self.source, self.path, reason)

    def table(self) -> Table:
        """Return the value as a table.

        Raises:
            BadPolicyError: It is no table. The other methods raise it for other types, too.
        """
        if not isinstance(self.value, dict):
            raise self.bad(f"must be a table, not {self._describe()}")
        return self.value

    def key(self, name: str) -> "Place":
        """Return the value at a key of this table, with its path."""
        path = f"{self.path}.{name}" if self.path else name
        return Place(self.source, path, self.table().get(name))

    def keys(self, known: Collection[str]) -> Iterator["Place"]:
        """Yield the values of all keys of this table, with their paths.

        Args:
            known: The permitted keys.

        Raises:
            BadPolicyError: There is another key, or no table.
        """
        for name in self.table():
            if name not in known:
                similar = get_close_matches(str(name), known, 1)
                hint = f"write {similar[0]}" if similar else f"known are {', '.join(known)}"
                raise self.bad(f"{str(name)[:_SHOWN]!r} is no key here; {hint}")
            yield self.key(name)

    def items(self, most: int) -> list["Place"]:
        """Return the items of a list with their paths; empty if it is absent.

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
        """Return the value as a text; empty if it is absent.

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
        """Return the value as a text; whole numbers are permitted, too."""
        is_whole = isinstance(self.value, int) and is_number(self.value)
        return str(self.value) if is_whole else self.text()

    def number(self) -> float:
        """Return the value as a number; 0 if it is absent.

        Raises:
            BadPolicyError: It is no number.
        """
        if self.value is None:
            return 0
        if not is_number(self.value):
            raise self.bad(f"must be a number, not {self._describe()}")
        return self.value

    def word(self, words: Mapping[str, _W], default: _W) -> _W:
        """Return the meaning of the value, a word of a fixed vocabulary.

        Args:
            words: The vocabulary.
            default: The result if the word is absent.

        Raises:
            BadPolicyError: It is no word of the vocabulary.
        """
        if self.value is None:
            return default
        meaning = words.get(self.value) if isinstance(self.value, str) else None
        if meaning is None:
            raise self.bad(f"must be one of {', '.join(words)}, not {self._describe()}")
        return meaning

    def _describe(self) -> str:
        if self.value is None:
            return "absent"
        if isinstance(self.value, dict):
            return "a table"
        return "a list" if isinstance(self.value, list) else repr(self.value)[:_SHOWN]
