"""Types of JSON values, frozen JSON values, and functions that make texts safe to show.

Frozen values cannot be changed in place, so any number of readers may share them. Frozen objects
and lists are equal to plain ones, can be written as JSON, and are instances of `dict` and `list`.
An attempt to change one raises `TypeError`. `copy.deepcopy(value)` returns a value that is plain at
all levels; `dict(value)` and `list(value)` return one that is plain at the top level.

Freezing copies only the objects and lists that are not frozen yet.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto
from types import NoneType
from typing import Final, NoReturn, TypeAlias

from typing_extensions import override

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, Json]
"""A JSON object. Message bodies have this type, and are never changed, as tasks share them."""

JsonInput: TypeAlias = (
    "Mapping[str, JsonInput] | Sequence[JsonInput] | str | int | float | bool | None"
)
"""Type of parameters that accept any JSON value and do not change it: also a tuple or a mapping.

For a type checker, `dict[str, int]` is no `Json`, since any JSON value could be put into a `Json`.
"""

_PLAIN: Final = (str, int, NoneType)
"""Types of which every value is JSON; booleans are integers."""

_NAMES: Final = frozenset({str})
"""Permitted types of keys of JSON objects."""

SURE: Final[frozenset[type[object]]] = frozenset({str, int, bool, NoneType})
"""Types whose values are JSON and need no check; most objects and lists contain only these."""

_MAX_DEPTH: Final = 64
"""Deepest nesting of values that `is_json` accepts: the recursion must fit into Python's stack."""


def is_json(value: object, depth: int = _MAX_DEPTH) -> bool:
    """Return whether a value can be written as JSON and read again unchanged.

    NaN is refused: a writer of JSON would write `null`, which has another meaning.
    """
    if isinstance(value, dict):
        return set(map(type, value)) <= _NAMES and _are_json(value.values(), depth)
    if isinstance(value, list):
        return _are_json(value, depth)
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, _PLAIN)


def _are_json(values: Collection[object], depth: int) -> bool:
    if set(map(type, values)) <= SURE:
        return True
    return depth > 0 and all(is_json(value, depth - 1) for value in values)


class Absence(Enum):
    """Type of `ABSENT`, which marks that there is no value; `None` is the JSON value null."""

    ABSENT = auto()


ABSENT: Final = Absence.ABSENT

_MOST_DIGITS: Final = 9
"""Largest number of digits of an index; no list that fits into a message needs more."""


def index_in(elements: list[Json], segment: str) -> int | None:
    """Return the index in a list that a segment of a dotted path names, or None if there is none.

    Args:
        elements: The list.
        segment: The segment, which should consist of digits.
    """
    if not (segment.isascii() and segment.isdigit() and len(segment) <= _MOST_DIGITS):
        return None
    return index if (index := int(segment)) < len(elements) else None


def value_at(value: Json, path: str) -> "Json | Absence":
    """Return the value at a dotted path in a JSON value, or `ABSENT` if there is none.

    Args:
        value: The whole value.
        path: Dotted; segments are keys of objects and indices of lists.
    """
    for name in path.split("."):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and (index := index_in(value, name)) is not None:
            value = value[index]
        else:
            return ABSENT
    return value


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("the value of a data object is not changed in place: copy it first")


class FrozenObject(dict[str, Json]):
    """A JSON object that cannot be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    @override
    def __reduce__(self) -> tuple[type[JsonObject], tuple[JsonObject]]:
        return dict, (dict(self),)

    @override
    def __repr__(self) -> str:
        return dict.__repr__(self)


class FrozenArray(list[Json]):
    """A JSON array that cannot be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = _refuse
    remove = reverse = sort = _refuse

    @override
    def __reduce__(self) -> tuple[type[list[Json]], tuple[list[Json]]]:
        return list, (list(self),)

    @override
    def __repr__(self) -> str:
        return list.__repr__(self)


_STILL: Final = frozenset({FrozenObject, FrozenArray, str, int, bool, float, type(None)})
"""Types whose values cannot be changed, so that `freeze` returns them unchanged."""


def freeze(value: Json) -> Json:
    """Return a frozen copy of a value, or the value itself if it is frozen already."""
    if type(value) in _STILL:
        return value
    if isinstance(value, dict):
        return frozen_object(value)
    return _frozen_array(value) if isinstance(value, list) else value


def frozen_object(value: JsonObject) -> FrozenObject:
    """Return a frozen copy of a JSON object."""
    if isinstance(value, FrozenObject):
        return value
    frozen = FrozenObject(value)
    if not _are_still(value.values()):
        for name in [name for name, part in value.items() if type(part) not in _STILL]:
            dict.__setitem__(frozen, name, freeze(value[name]))
    return frozen


def _frozen_array(value: list[Json]) -> FrozenArray:
    frozen = FrozenArray(value)
    if not _are_still(value):
        for index in [index for index, part in enumerate(value) if type(part) not in _STILL]:
            list.__setitem__(frozen, index, freeze(value[index]))
    return frozen


def _are_still(parts: Iterable[Json]) -> bool:
    # After the first freezing most parts are frozen: this check costs as much as a copy.
    return set(map(type, parts)) <= _STILL


# Texts from peers and users, made safe for a terminal, a log and a web page.

_ACTIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Unsafe characters: controls, marks of direction, invisible ones, half surrogates."""

_BREAKS: Final = str.maketrans({"\n": "\\n", "\t": "\\t"})


def visible(text: str) -> str:
    """Return a text with unsafe characters written as escapes; line breaks and tabs stay.

    Args:
        text: Any text; a line of JSON stays equivalent.
    """
    return _ACTIVE.sub(_spelt_out, text)


def one_line(text: str) -> str:
    """Return a text for one line, with line breaks and tabs written as escapes, too.

    Args:
        text: Any text.
    """
    return visible(text).translate(_BREAKS)


def _spelt_out(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
