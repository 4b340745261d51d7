"""The fields of one line of a scenario file."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar, final

from actors.play.script.vocabulary import nearest
from specs.jsonvalue import Json, JsonObject

__all__ = ["Fields"]

T = TypeVar("T")

_LONGEST: Final = 30 * 86_400
"""Seconds that may pass at once (ours); sessions are pinged all the while."""


@final
class Fields:
    """The fields of one line; each is taken once, and none may be left.

    All methods raise `ValueError` saying what is wrong.
    """

    def __init__(self, line: JsonObject) -> None:
        # A name that ends so is a remark: it is not read.
        self._left = {name: value for name, value in line.items() if not name.endswith("_")}
        self._asked: dict[str, None] = {}

    def take(self, name: str) -> Json:
        """Take a field, of any type.

        Raises:
            ValueError: The field is missing.
        """
        if not self.has(name):
            raise ValueError(f"{name} is missing")
        return self._left.pop(name)

    def text(self, name: str) -> str:
        """Take a text.

        Raises:
            ValueError: The field is missing, or no text.
        """
        value = self.take(name)
        if isinstance(value, str):
            return value
        raise ValueError(f"{name} must be a text")

    def some_text(self, name: str) -> str:
        """Take a text that may be missing."""
        return self.text(name) if self.has(name) else ""

    def text_or_null(self, name: str) -> str | None:
        """Take a text or null."""
        if self.has(name) and self._left[name] is None:
            self._left.pop(name)
            return None
        return self.text(name)

    def whole(self, name: str) -> int:
        """Take a whole number from 1.

        Raises:
            ValueError: The field is missing, or no whole number from 1.
        """
        value = self.take(name)
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} must be a whole number from 1")
        return value

    def mark(self, name: str) -> bool:
        """Take a mark: true, or false as if it were missing.

        Raises:
            ValueError: The field is neither true nor false.
        """
        value = self.take(name)
        if isinstance(value, bool):
            return value
        raise ValueError(f"{name} must be true or false")

    def seconds(self, name: str) -> float:
        """Take a number of seconds.

        Raises:
            ValueError: The field is missing, or no permitted number of seconds.
        """
        value = self.take(name)
        if isinstance(value, bool | str | list | dict | None) or not 0 <= value <= _LONGEST:
            raise ValueError(f"{name} must be a number of seconds up to {_LONGEST}: 30 days")
        return float(value)

    def object(self, name: str) -> JsonObject:
        """Take an object.

        Raises:
            ValueError: The field is missing, or no object.
        """
        value = self.take(name)
        if isinstance(value, dict):
            return value
        raise ValueError(f"{name} must be an object")

    def objects(self, name: str) -> tuple[JsonObject, ...]:
        """Take a list of objects.

        Raises:
            ValueError: The field is missing, or no list of objects.
        """
        value = self.take(name)
        found = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(found) != len(value):
            raise ValueError(f"{name} must be a list of objects")
        return tuple(found)

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts.

        Raises:
            ValueError: The field is missing, or no list of texts.
        """
        value = self.take(name)
        listed = value if isinstance(value, list) else [value]
        found = tuple(one for one in listed if isinstance(one, str))
        if listed is not value or len(found) != len(listed):
            raise ValueError(f"{name} must be a list of texts")
        return found

    def maybe(self, name: str, take: Callable[[str], T]) -> T | None:
        """Take a field by one of the methods above if it is there.

        Args:
            name: Name of the field.
            take: Reads the field.
        """
        return take(name) if self.has(name) else None

    def has(self, name: str) -> bool:
        """Say whether a field is there."""
        self._asked[name] = None
        return name in self._left

    def nearest(self, known: Iterable[str]) -> str:
        """Say which known name is nearest to one of the fields that are left."""
        left = next((one for one in self._left if one not in {"sc", "n"}), "")
        return nearest(left, known)

    def check_names(self, known: Iterable[str] = ()) -> None:
        """Make sure that all fields that are left have known names.

        Args:
            known: The names; none: those that were looked for.

        Raises:
            ValueError: A remaining field has an unknown name.
        """
        names = [*known] or [*self._asked]
        for name in self._left:
            if name not in names:
                raise ValueError(
                    f"unknown field {name}: {nearest(name, names)}; end the name of a remark with _"
                )
