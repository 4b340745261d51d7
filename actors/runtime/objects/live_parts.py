"""Where the objects and lists in a live value are, while it changes around them.

The value itself is never changed in place: a write makes another, which shares what it did
not touch. A part is known by its place, the way to it from the whole. It keeps its place
while it is written into and while others are added or removed beside it; once it was
replaced or removed it is a part no more.
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
"""What has parts."""


_NO_PART: Final = "this part of it was replaced or removed: take it from `data` again"


class Whole(ABC):
    """A value that has live parts.

    Attributes:
        url: Of the object whose value it is.
    """

    url: str

    @property
    @abstractmethod
    def now(self) -> JsonObject:
        """What it is now."""

    @abstractmethod
    def become(self, new: JsonObject) -> None:
        """Become another; refused: it is what it was, and an error says why."""


@final
class Place:
    """The place of one object or list in a value.

    Args:
        whole: The value.
        above: The place that holds this one; None: this is the whole.
        key: By which it does.
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
        """The way from the whole.

        Raises:
            ObjectError: 410 there is none any more.
        """
        if not self._is_part:
            raise ObjectError(self._whole.url, Code.GONE, _NO_PART)
        if self._above is None or self._key is None:
            return ()
        return (*self._above.steps, self._key)

    @property
    def now(self) -> Container:
        """What stands here now.

        Raises:
            ObjectError: 410 it is a part no more.
        """
        found: Json = self._whole.now
        for step in self.steps:
            found = _at(found, step)
        if not isinstance(found, dict | list):
            raise ObjectError(self._whole.url, Code.GONE, _NO_PART)
        return found

    def below(self, key: str | int) -> "Place":
        """Return the place of an object or a list that stands in this one."""
        place = self._below.get(key)
        if place is None:
            place = self._below[key] = Place(self._whole, self, key)
        return place

    def become(self, new: Container) -> None:
        """Have something else stand here; parts of it that are in both keep being parts.

        Raises:
            ObjectError: 410 this is no part any more; or it was refused, as SchemaError says.
        """
        old, steps = self.now, self.steps
        whole = _with(self._whole.now, steps, new)
        if isinstance(whole, dict):
            self._whole.become(whole)
            self._settle(old, self.now)

    def follow(self, old: Json, new: Json, path: tuple[str, ...]) -> None:
        """Go along with a change of the whole that was made by its path.

        Args:
            old: What stood here.
            new: What stands here now.
            path: The way on from here to the object or list that the change was made in.
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
        """Let nothing below be a part any more."""
        for place in self._below.values():
            place.end()
        self._below = {}

    def end(self) -> None:
        """Be a part no more."""
        self._is_part = False

    def move(self, key: str | int) -> None:
        """Stand at another key of the same object or list."""
        self._key = key

    def _settle(self, old: Json, new: Json) -> None:
        """Find again, in what stands here now, what stood here before: by being the same thing."""
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
    """Return what stands at a step; None: nothing, or null."""
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
    """Return a value with something else at a place in it."""
    if not steps:
        return new
    step, *rest = steps
    inner = _with(_at(value, step), tuple(rest), new)
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: inner}
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], inner, *value[step + 1 :]]
    return value
