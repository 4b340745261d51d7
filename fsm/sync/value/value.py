"""Changing the value of a data object, one attribute at a time (SYN-13..SYN-15).

Values are shared between tasks and never changed in place: a change returns a
new value that shares what it did not touch.

A path is dotted. What a segment means is said by what stands there: of an object it is a
key, of a list the number of an element. A change without a path is the whole value.

How deep a change may reach into the value of a data object.
"""

import json
from enum import Enum, auto, unique
from typing import Final, TypeAlias

from specs.bodies.sync import Change, ChangeObject
from specs.bodies.word import AttributeType, Operation
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_JSON_DEPTH

__all__ = ["changed", "check_path", "has_way", "index_in", "same", "without"]


def check_path(path: str | None) -> None:
    """Refuse a path that leads deeper than any value of a message is nested.

    Values are walked by recursive functions: a peer could end the process by a path of
    thousands of segments.

    Raises:
        BadMessageError: It does.
    """
    if path is not None and path.count(".") >= MAX_JSON_DEPTH:
        raise BadMessageError(f"a path has more than {MAX_JSON_DEPTH} segments")


_ARRAY: Final = AttributeType.ARRAY.value
_ADD: Final = Operation.ADD.value
_REMOVE: Final = Operation.REMOVE.value

_MOST_DIGITS: Final = 9
"""Digits in the number of an element; no list that fits into a message has more."""


@unique
class _Nothing(Enum):
    """What stands where nothing stands; null is something."""

    GONE = auto()


_GONE: Final = _Nothing.GONE
_CANONICAL: Final = json.JSONEncoder(sort_keys=True)
_Place: TypeAlias = "Json | _Nothing"


def changed(value: JsonObject, change: Change | ChangeObject) -> JsonObject:
    """Return a value after one change.

    A change without a value removes the attribute, or the element; a change of an array adds or
    removes elements. Removing an absent attribute changes nothing, nor does a path that names
    an absent element. Missing objects on the path are made.

    Args:
        value: The value before, which is not changed in place.
        change: The change; without an attribute it replaces the whole value.
    """
    if change.attribute is None:
        return change.value if isinstance(change.value, dict) else value
    after = _after(value, change.attribute.split("."), change)
    return after if isinstance(after, dict) else value


def has_way(value: JsonObject, path: str) -> bool:
    """Return whether a value can be set at a path: elements of lists on it must exist.

    Args:
        value: The whole value.
        path: Dotted; segments are keys of objects and indices of lists.
    """
    here: Json = value
    for segment in path.split("."):
        if isinstance(here, list):
            index = index_in(here, segment)
            if index is None:
                return False
            here = here[index]
        else:
            here = here.get(segment) if isinstance(here, dict) else None
    return True


def index_in(elements: list[Json], segment: str) -> int | None:
    """Return the index of the element that a segment of a path names; None: it names none.

    Args:
        elements: The list.
        segment: The segment.
    """
    if not (segment.isascii() and segment.isdigit() and len(segment) <= _MOST_DIGITS):
        return None
    return index if (index := int(segment)) < len(elements) else None


def same(one: Json, other: Json) -> bool:
    """Return whether two values are equal as JSON: 1 and 1.0 are, 1 and true are not.

    Args:
        one: A value.
        other: Another value.
    """
    if one is other:
        return True
    if isinstance(one, dict):
        return isinstance(other, dict) and _same_objects(one, other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    return one == other


def without(elements: list[Json], gone: list[Json]) -> list[Json]:
    """Return a list without all elements that are equal as JSON to one of `gone`.

    Each element is looked up once: the cost is the sum of both sizes, and not their product.

    Args:
        elements: The list.
        gone: The elements to leave out.
    """
    keys = {_key(one) for one in gone}
    return [kept for kept in elements if _key(kept) not in keys]


def _key(value: Json) -> str | tuple[bool, str | float | None]:
    """Return a key that two values share if they are `same`, and only then.

    The key of objects and lists is a text: a peer cannot choose values with colliding hashes.
    """
    if isinstance(value, dict | list):
        return _CANONICAL.encode(_whole(value))
    return isinstance(value, bool), value


def _whole(value: Json) -> Json:
    """Return a value with 1 for each 1.0, which are the same and are not written so."""
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _same_objects(one: JsonObject, other: JsonObject) -> bool:
    return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())


def _after(present: _Place, path: list[str], change: Change | ChangeObject) -> _Place:
    """Return what stands at a place after a change of what is at a path below it."""
    if not path:
        return _changed_here(present, change)
    name, *rest = path
    if isinstance(present, list):
        return _in_list(present, name, rest, change)
    if not isinstance(present, dict):
        if change.value is None or change.operation == _REMOVE:
            return present
        present = {}
    new = _after(present.get(name, _GONE), rest, change)
    if isinstance(new, _Nothing):
        return {key: kept for key, kept in present.items() if key != name}
    return {**present, name: new}


def _in_list(
    elements: list[Json], name: str, rest: list[str], change: Change | ChangeObject
) -> list[Json]:
    index = index_in(elements, name)
    if index is None:
        return elements
    new = _after(elements[index], rest, change)
    kept: list[Json] = [] if isinstance(new, _Nothing) else [new]
    return [*elements[:index], *kept, *elements[index + 1 :]]


def _changed_here(present: _Place, change: Change | ChangeObject) -> _Place:
    if change.attribute_type == _ARRAY and change.operation is not None:
        return _changed_array(present, change)
    return _GONE if change.value is None else change.value


def _changed_array(present: _Place, change: Change | ChangeObject) -> _Place:
    elements: list[Json] = change.value if isinstance(change.value, list) else [change.value]
    if change.operation == _ADD:
        return [*(present if isinstance(present, list) else ()), *elements]
    if not isinstance(present, list):
        return present
    return without(present, elements)
