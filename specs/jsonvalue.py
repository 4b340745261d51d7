"""Free JSON, as it stands in message bodies, and JSON that cannot be changed in place.

Frozen values are shared between any number of readers. Their objects and lists are equal to
plain ones, are written as JSON, and `isinstance` knows them. An attempt to change one raises
`TypeError`. `copy.deepcopy(value)` is plain through and through, `dict(value)` and `list(value)`
are so at the top.

Freezing copies what is not frozen yet, and nothing else: a value that shares most of its
parts with a frozen one costs what it does not share.
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
"""A JSON object. Bodies are shared between tasks: they are never changed in place."""

JsonInput: TypeAlias = (
    "Mapping[str, JsonInput] | Sequence[JsonInput] | str | int | float | bool | None"
)
"""What is taken as JSON where a value is only read: `dict[str, int]`, a tuple, any mapping.

`Json` itself is invariant: a `dict[str, int]` is none, as a text could be put into that.
"""

_PLAIN: Final = (str, int, NoneType)
"""Types of which every value is JSON; booleans are integers."""

_NAMES: Final = frozenset({str})
"""Types of keys."""

SURE: Final[frozenset[type[object]]] = frozenset({str, int, bool, NoneType})
"""Types of which every value is JSON; most objects and lists hold nothing else."""

_MAX_DEPTH: Final = 64
"""Nesting that is looked into; no peer takes half as much, and Python has an end, too."""


def is_json(value: object, depth: int = _MAX_DEPTH) -> bool:
    """Return whether a value can be written as JSON and read again as what it was.

    NaN cannot: it would be written as `null`, which means something else.
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
    """The absence of a value; null is a value."""

    ABSENT = auto()


ABSENT: Final = Absence.ABSENT

_MOST_DIGITS: Final = 9
"""Digits in the number of an element; no list that fits into a message has more."""


def index_in(elements: list[Json], segment: str) -> int | None:
    """Return the index of the element that a segment of a path names; None: it names none.

    Args:
        elements: The list.
        segment: The segment.
    """
    if not (segment.isascii() and segment.isdigit() and len(segment) <= _MOST_DIGITS):
        return None
    return index if (index := int(segment)) < len(elements) else None


def value_at(value: Json, path: str) -> "Json | Absence":
    """Return the value at a path, which may be null; `ABSENT`: there is none.

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
    """A JSON object that stays as it is."""

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
    """A JSON array that stays as it is."""

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
"""Types of what is frozen already."""


def freeze(value: Json) -> Json:
    """Return a value as one that cannot be changed in place; one that is so is itself."""
    if type(value) in _STILL:
        return value
    if isinstance(value, dict):
        return frozen_object(value)
    return _frozen_array(value) if isinstance(value, list) else value


def frozen_object(value: JsonObject) -> FrozenObject:
    """Return a JSON object as one that cannot be changed in place."""
    if isinstance(value, FrozenObject):
        return value
    made = FrozenObject(value)
    if not _are_still(value.values()):
        for name in [name for name, part in value.items() if type(part) not in _STILL]:
            dict.__setitem__(made, name, freeze(value[name]))
    return made


def _frozen_array(value: list[Json]) -> FrozenArray:
    made = FrozenArray(value)
    if not _are_still(value):
        for index in [index for index, part in enumerate(value) if type(part) not in _STILL]:
            list.__setitem__(made, index, freeze(value[index]))
    return made


def _are_still(parts: Iterable[Json]) -> bool:
    # Most are, once the whole was frozen: this asks for the price of a copy.
    return set(map(type, parts)) <= _STILL


# Texts of others, as a terminal, a log and a page may show them.

_ACTIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that are no text: controls, marks of direction, invisible ones, half surrogates."""

_BREAKS: Final = str.maketrans({"\n": "\\n", "\t": "\\t"})


def visible(text: str) -> str:
    """Return a text with all that is no text spelt out; line breaks and tabs stay.

    Args:
        text: Any text; also lines of JSON, which stay the same JSON.
    """
    return _ACTIVE.sub(_spelt_out, text)


def one_line(text: str) -> str:
    """Return a text as a part of one line, line breaks and tabs spelt out, too.

    Args:
        text: Any text.
    """
    return visible(text).translate(_BREAKS)


def _spelt_out(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
