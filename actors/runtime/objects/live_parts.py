"""Places of the objects and lists in a live value, which may change around them.

The value is never changed in place: a write makes a new value, which shares what it did not
touch. A part is known by its place, the path to it from the whole. It keeps its place while it
is written to, and while others are added or removed beside it; once it was replaced or removed
it is no part any more.
"""

from abc import ABC, abstractmethod
from typing import Final, TypeAlias, final

from actors.runtime.objects.error import ObjectError
from fsm.sync.value.json import Steps
from fsm.sync.value.value import index_in
from specs.jsonvalue import Json, JsonObject
from specs.reply_code import Code

__all__ = ["Container", "Place", "Whole"]

Container: TypeAlias = "JsonObject | list[Json]"
"""A value with parts."""


_NO_PART: Final = "this part of it was replaced or removed: take it from `data` again"


class Whole(ABC):
    """A value that has live parts.

    Attributes:
        url: Address of the data object that has the value.
    """

    url: str

    @property
    @abstractmethod
    def now(self) -> JsonObject:
        """The present value."""

    @abstractmethod
    def become(self, new: JsonObject) -> None:
        """Write a new value.

        Raises:
            SchemaError: The schema does not allow it; nothing has changed.
            ObjectError: It cannot be written now, or an earlier write failed; nothing has changed.
        """


@final
class Place:
    """The place of one object or list in a value.

    Args:
        whole: The value.
        above: Place of the object or list that holds this one; None: this is the whole.
        key: Key or index in that one.
    """

    __slots__ = ("_above", "_below", "_is_part", "_key", "_whole")

    def __init__(
        self, whole: Whole, above: "Place | None" = None, key: str | int | None = None
    ) -> None:
        self._whole = whole
        self._above = above
        self._key = key
        self._below: dict[str | int, Place] = {}
        self._is_part = True

    @property
    def steps(self) -> Steps:
        """The path from the whole.

        Raises:
            ObjectError: 410: it is no part of the value any more.
        """
        if not self._is_part:
            raise ObjectError(self._whole.url, Code.GONE, _NO_PART)
        if self._above is None or self._key is None:
            return ()
        return (*self._above.steps, self._key)

    @property
    def now(self) -> Container:
        """The object or list at this place now.

        Raises:
            ObjectError: 410: it is no part of the value any more.
        """
        found: Json = self._whole.now
        for step in self.steps:
            found = _at(found, step)
        if not isinstance(found, dict | list):
            raise ObjectError(self._whole.url, Code.GONE, _NO_PART)
        return found

    def below(self, key: str | int) -> "Place":
        """Return the place of an object or list directly inside of this one."""
        place = self._below.get(key)
        if place is None:
            place = self._below[key] = Place(self._whole, self, key)
        return place

    def become(self, new: Container) -> None:
        """Replace what is at this place; parts that are in both values stay parts.

        Raises:
            SchemaError: The schema does not allow it; nothing has changed.
            ObjectError: 410: this is no part of the value any more; or as of `Whole.become`.
        """
        old, steps = self.now, self.steps
        whole = _with(self._whole.now, steps, new)
        if isinstance(whole, dict):
            self._whole.become(whole)
            self._settle(old, self.now)

    def follow(self, old: Json, new: Json, path: tuple[str, ...]) -> None:
        """Adjust the places below to a change that was made by its path.

        Args:
            old: The value at this place before.
            new: The value at this place now.
            path: Path from here to the object or list in which the change was made.
        """
        if path:
            key = _key_of(old, path[0])
            before, after = _at(old, key), _at(new, key)
            place = self._below.get(key)
            if place is not None and type(before) is type(after):
                place.follow(before, after, path[1:])
                return
        self._settle(old, new)

    def forget(self) -> None:
        """Make all places below parts no more."""
        for place in self._below.values():
            place.end()
        self._below = {}

    def end(self) -> None:
        """Make this place a part no more."""
        self._is_part = False

    def move(self, key: str | int) -> None:
        """Take another key in the same object or list."""
        self._key = key

    def _settle(self, old: Json, new: Json) -> None:
        """Find parts of the old value in the new one, by identity; others are parts no more."""
        found = {id(each): key for key, each in _inside(new) if isinstance(each, dict | list)}
        below, self._below = self._below, {}
        for key, place in below.items():
            moved = found.get(id(_at(old, key)))
            if moved is None:
                place.end()
            else:
                place.move(moved)
                self._below[moved] = place


def _at(value: Json, step: str | int) -> Json:
    """Return what is at a step; None: nothing, or null."""
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _key_of(value: Json, segment: str) -> str | int:
    index = index_in(value, segment) if isinstance(value, list) else None
    return segment if index is None else index


def _inside(value: Json) -> list[tuple[str | int, Json]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _with(value: Json, steps: Steps, new: Json) -> Json:
    """Return a value with something else at a path."""
    if not steps:
        return new
    step, *rest = steps
    inner = _with(_at(value, step), tuple(rest), new)
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: inner}
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], inner, *value[step + 1 :]]
    return value
