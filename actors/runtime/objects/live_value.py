"""The value of a reported object, written like any value of Python (SYN-13..SYN-15).

`data.title = "x"`, `data["a"]["b"] = 1`, `data.items.append(x)`, `del data.note`: each write is
checked, changes the value at once, and is published in the background. An attribute may have
any name, so an object has no methods: only `in`, `len` and iteration over names. Comparison is
that of JSON, also with plain values.
"""

from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any, TypeAlias, final, overload

from typing_extensions import override

from actors.runtime.objects.error import SchemaError
from actors.runtime.objects.live_parts import Place
from fsm.sync.value.json import NotJsonError, Steps, as_json, dotted
from fsm.sync.value.value import same
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import VALUE_DEPTH

__all__ = ["LiveList", "LiveObject", "plain_copy", "unpacked"]

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


@final
class LiveObject:
    """An object in the value; an attribute is an item, unless its name is of the form `__name__`.

    Raises:
        AttributeError: By attribute: there is no such one.
        KeyError: By item: there is no such one.
        SchemaError: The schema does not allow the write, or the value is not JSON; nothing has
            changed.
        ObjectError: Nothing can be written: 409: the object is being delegated; 410: this is no
            part of the value any more, or another hyperty reports the object; 503: too many writes
            wait. Or the code with which an earlier write failed.
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


@final
class LiveList(MutableSequence[_Part]):
    """A list in the value; each call of a method is one write, whatever it changes.

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
    def append(self, value: object) -> None:
        self.extend([value])

    @override
    def extend(self, values: Iterable[object]) -> None:
        self.__place__.become([*_elements(self), *_copies(self, values)])

    @override
    def remove(self, value: object) -> None:
        del self[self.index(value)]

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
