"""The value of a reported object, written like any value of Python (SYN-13..SYN-15).

`data.title = "x"`, `data["a"]["b"] = 1`, `data.items.append(x)`, `del data.note`: each write is
checked, changes the value at once, and is published in the background. An attribute may have
any name, so an object has no methods: only `in`, `len` and iteration over names. Comparison is
that of JSON, also with plain values.

The plain value is never changed in place: a write makes a new value, which shares what it did
not touch. An object or list inside the value is known by its `Place`, the path to it from the
whole. It keeps its place while others are added or removed beside it; once it was replaced or
removed it belongs to the value no more.
"""

from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any, Final, Protocol, TypeAlias, overload

from typing_extensions import override

from actors.runtime.objects.error import ObjectError, SchemaError
from fsm.sync.value.json import NotJsonError, Steps, as_json, dotted
from fsm.sync.value.value import same
from specs.jsonvalue import Json, JsonObject, index_in
from specs.limits.sync import VALUE_DEPTH
from specs.reply_code import Code

Container: TypeAlias = "JsonObject | list[Json]"
"""A value with parts."""


_NO_PART: Final = "this part of it was replaced or removed: take it from `data` again"


class Whole(Protocol):
    """A value that has live parts.

    Attributes:
        url: Address of the data object that has the value.
    """

    url: str

    @property
    def now(self) -> JsonObject:
        """The present value."""

    def become(self, new: JsonObject) -> None:
        """Write a new value.

        Raises:
            SchemaError: The schema does not allow it; nothing has changed.
            ObjectError: It cannot be written now, or an earlier write failed; nothing has changed.
        """


class Place:
    """The place of one object or list in a value.

    Args:
        whole: The value.
        above: Place of the object or list that holds this one; None: this is the whole.
        key: Key or index in that one; it moves with its neighbours.

    Attributes:
        is_part: Whether it is a part of the value.
    """

    __slots__ = ("_above", "_below", "_whole", "is_part", "key")

    def __init__(
        self, whole: Whole, above: "Place | None" = None, key: str | int | None = None
    ) -> None:
        self._whole = whole
        self._above = above
        self.key = key
        self._below: dict[str | int, Place] = {}
        self.is_part = True

    @property
    def steps(self) -> Steps:
        """The path from the whole.

        Raises:
            ObjectError: 410: it is no part of the value any more.
        """
        if not self.is_part:
            raise ObjectError(self._whole.url, Code.GONE, _NO_PART)
        if self._above is None or self.key is None:
            return ()
        return (*self._above.steps, self.key)

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
            place.is_part = False
        self._below = {}

    def _settle(self, old: Json, new: Json) -> None:
        """Find parts of the old value in the new one, by identity; others are parts no more."""
        found = {id(each): key for key, each in _items_of(new) if isinstance(each, dict | list)}
        below, self._below = self._below, {}
        for key, place in below.items():
            moved = found.get(id(_at(old, key)))
            place.is_part = moved is not None
            if moved is not None:
                place.key = moved
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


def _items_of(value: Json) -> list[tuple[str | int, Json]]:
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


_Part: TypeAlias = Any  # type: ignore[explicit-any]  # what there is, the schema knows


def plain_copy(value: object, at: Steps = (), depth: int = VALUE_DEPTH) -> Json:
    """Return a copy of a value, with plain objects and lists for live ones.

    Args:
        value: Anything.
        at: Path of the copy in the object, for the error and the depth.
        depth: Levels of nesting that are allowed.

    Raises:
        SchemaError: The value, or a part of it, is not JSON, or is nested too deep.
        ObjectError: 410: a live part of it is no part of its value any more.
    """
    try:
        return as_json(value, at, unpacked, depth)
    except NotJsonError as exc:
        raise SchemaError(exc.flaw.path, exc.flaw.why) from exc


def unpacked(value: object) -> object:
    """Return the plain value of a live one; any other value as it is."""
    return value.__place__.now if isinstance(value, LiveObject | LiveList) else value


def _live(place: Place, key: str | int, value: Json) -> "Json | LiveObject | LiveList":
    """Return the value at a key, as the program gets it."""
    match value:
        case dict():
            return LiveObject(place.below(key))
        case list():
            return LiveList(place.below(key))
        case _:
            return value


def _equal(place: Place, other: object) -> bool:
    plain = unpacked(other)
    return isinstance(plain, dict | list) and same(place.now, plain)


class LiveObject:
    """An object in the value; an attribute is an item, unless its name is of the form `__name__`.

    Raises:
        AttributeError: By attribute: there is no such one.
        KeyError: By item: there is no such one.
        SchemaError: The schema does not allow the write, or the value is not JSON; nothing has
            changed.
        ObjectError: Nothing can be written: 410: this is no part of the value any more; 503: too
            many writes wait. Or the code with which an earlier write failed.
    """

    __slots__ = ("__place__",)
    __place__: Place
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, place: Place) -> None:
        object.__setattr__(self, "__place__", place)

    # ---- reading

    def __getattr__(self, name: str) -> _Part:
        inside = {} if _is_pythons(name) else _inside(self)
        if name not in inside:
            raise AttributeError(_no_attribute(self, name))
        return _live(self.__place__, name, inside[name])

    def __getitem__(self, name: str) -> _Part:
        return _live(self.__place__, name, _inside(self)[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_inside(self))

    def __contains__(self, name: object) -> bool:
        return name in _inside(self)

    def __len__(self) -> int:
        return len(_inside(self))

    @override
    def __eq__(self, other: object) -> bool:
        return _equal(self.__place__, other)

    @override
    def __repr__(self) -> str:
        return repr(_inside(self))

    def __copy__(self) -> Json:
        return plain_copy(self)

    def __deepcopy__(self, memo: object) -> Json:
        return plain_copy(self)

    @override
    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *(name for name in self if name.isidentifier())]

    # ---- writing

    @override
    def __setattr__(self, name: str, value: object) -> None:
        if _is_pythons(name):
            raise AttributeError(f"{name} is Python's own name: write data[{name!r}]")
        self[name] = value

    @override
    def __delattr__(self, name: str) -> None:
        if _is_pythons(name) or name not in self:
            raise AttributeError(_no_attribute(self, name))
        del self[name]

    def __setitem__(self, name: str, value: object) -> None:
        place = self.__place__
        new = plain_copy({name: value}, place.steps)
        if isinstance(new, dict):
            place.become({**_inside(self), **new})

    def __delitem__(self, name: str) -> None:
        inside = dict(_inside(self))
        del inside[name]
        self.__place__.become(inside)


def _is_pythons(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _inside(part: LiveObject) -> JsonObject:
    found = part.__place__.now
    return found if isinstance(found, dict) else {}


def _no_attribute(part: LiveObject, name: str) -> str:
    where = dotted(part.__place__.steps)
    return f"the value has no {f'{where}.' if where else ''}{name}"


class LiveList(MutableSequence[_Part]):
    """A list in the value; each call of a method is one write, for any number of changes.

    Raises:
        IndexError: There is no such element.
        ValueError: `remove` or `index`: there is no equal element.
        SchemaError: As of `LiveObject`.
        ObjectError: As of `LiveObject`.
    """

    __slots__ = ("__place__",)
    __place__: Place
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, place: Place) -> None:
        self.__place__ = place

    # ---- reading

    @overload
    def __getitem__(self, index: int) -> _Part: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Part]: ...  # type: ignore[explicit-any]
    @override
    def __getitem__(self, index: int | slice) -> _Part:  # type: ignore[explicit-any]
        elements = _elements(self)
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(elements)))]
        number = range(len(elements))[index]
        return _live(self.__place__, number, elements[number])

    @override
    def __len__(self) -> int:
        return len(_elements(self))

    @override
    def __eq__(self, other: object) -> bool:
        return _equal(self.__place__, other)

    @override
    def __repr__(self) -> str:
        return repr(_elements(self))

    def __copy__(self) -> Json:
        return plain_copy(self)

    def __deepcopy__(self, memo: object) -> Json:
        return plain_copy(self)

    @override
    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        elements, wanted = _elements(self), plain_copy(value)
        for number in range(*slice(start, stop).indices(len(elements))):
            if same(elements[number], wanted):
                return number
        raise ValueError(f"{value!r} is not in the list")

    @override
    def count(self, value: object) -> int:
        wanted = plain_copy(value)
        return sum(same(each, wanted) for each in _elements(self))

    @override
    def __contains__(self, value: object) -> bool:
        return self.count(value) > 0

    # ---- writing

    @overload
    def __setitem__(self, index: int, value: object) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[object]) -> None: ...  # type: ignore[explicit-any]
    @override
    def __setitem__(self, index: int | slice, value: object) -> None:  # type: ignore[explicit-any]
        elements = list(_elements(self))
        if isinstance(index, slice):
            if not isinstance(value, Iterable):
                raise TypeError("what takes the place of several elements is a list, too")
            elements[index] = _copies(self, value)
        else:
            number = range(len(elements))[index]
            elements[number] = plain_copy(value, (*self.__place__.steps, number))
        self.__place__.become(elements)

    @override
    def __delitem__(self, index: int | slice) -> None:  # type: ignore[explicit-any]
        elements = list(_elements(self))
        del elements[index]
        self.__place__.become(elements)

    @override
    def insert(self, index: int, value: object) -> None:
        elements = list(_elements(self))
        elements[index:index] = _copies(self, [value])
        self.__place__.become(elements)

    @override
    def extend(self, values: Iterable[object]) -> None:
        self.__place__.become([*_elements(self), *_copies(self, values)])

    @override
    def pop(self, index: int = -1) -> Json:
        gone = plain_copy(self[index])
        del self[index]
        return gone

    @override
    def clear(self) -> None:
        self.__place__.become([])

    @override
    def reverse(self) -> None:
        self.__place__.become(_elements(self)[::-1])

    def sort(self, *, key: Callable[[_Part], _Part] | None = None, reverse: bool = False) -> None:
        """Sort the elements, in one write, as `list.sort` does.

        Args:
            key: Returns what an element is compared by; None: the element itself.
            reverse: Sort in descending order.

        Raises:
            TypeError: The elements or keys cannot be compared.
            SchemaError: As of `LiveObject`.
            ObjectError: As of `LiveObject`.
        """
        elements = _elements(self)
        keys = [each if key is None else key(each) for each in self]
        order = sorted(range(len(elements)), key=keys.__getitem__, reverse=reverse)
        self.__place__.become([elements[number] for number in order])


def _elements(part: LiveList) -> list[Json]:
    found = part.__place__.now
    return found if isinstance(found, list) else []


def _copies(part: LiveList, values: Iterable[object]) -> list[Json]:
    """Return copies of values that are to be elements of a list."""
    steps, end = part.__place__.steps, len(part)
    return [plain_copy(each, (*steps, end + number)) for number, each in enumerate(values)]
