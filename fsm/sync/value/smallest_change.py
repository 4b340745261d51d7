"""The smallest change that makes one value of a data object another (SYN-13..SYN-15).

There is always one, of the form that goes over the wire: a path and what is to stand
there. What a path cannot name (a key that is empty or holds a dot) and what a change cannot
say (that null stands somewhere: no value means that nothing does) is said by setting what
holds it, in the last resort the whole value.
"""

import json
from typing import Final, TypeAlias, final

import attrs

from fsm.sync.value.value import same, without
from specs.bodies.sync import ChangeObject
from specs.bodies.word import AttributeType, Operation
from specs.jsonvalue import Json, JsonObject

__all__ = ["smallest_change"]

_ARRAY: Final = AttributeType.ARRAY.value

_Path: TypeAlias = tuple[str, ...]


@final
@attrs.frozen(slots=True)
class _Edit:
    """One change.

    Attributes:
        path: Where.
        value: What is set there; None: what is there goes.
        operation: For lists: what is done with the elements in `value`.
    """

    path: _Path
    value: Json = None
    operation: Operation | None = None


def smallest_change(url: str, old: JsonObject, new: JsonObject) -> ChangeObject | None:
    """Return the change of an object that makes one value of another; None: they are equal.

    No smaller part of the value holds all differences. A change of a list whose elements were
    added at its end, or removed, names these elements, unless the list itself is shorter.

    Args:
        url: Address of the object.
        old: Its value.
        new: The value that it is to have.
    """
    if same(old, new):
        return None
    edit = _within_object((), old, new)
    if edit is None:
        return ChangeObject(url, value=new)
    path = ".".join(edit.path)
    if edit.operation is None:
        return ChangeObject(url, path, edit.value)
    return ChangeObject(url, path, edit.value, _ARRAY, edit.operation.value)


def _between(path: _Path, old: Json, new: Json) -> _Edit | None:
    """Return the smallest edit at or below a path; None: no edit there can say it."""
    if not _can_be_named(path[-1]):
        return None
    edit: _Edit | None = None
    if isinstance(old, dict) and isinstance(new, dict):
        edit = _within_object(path, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        edit = _within_list(path, old, new)
    return edit or _set(path, new)


def _can_be_named(segment: str) -> bool:
    return bool(segment) and "." not in segment


def _set(path: _Path, new: Json) -> _Edit | None:
    return None if new is None or not _can_be_named(path[-1]) else _Edit(path, new)


def _within_object(path: _Path, old: JsonObject, new: JsonObject) -> _Edit | None:
    """Return the edit of the one attribute that differs; None: several do, or it has no name."""
    differing = [
        key
        for key in {**old, **new}
        if not (key in old and key in new and same(old[key], new[key]))
    ]
    if len(differing) > 1:
        return None
    (key,) = differing
    below = (*path, key)
    if key not in old:
        return _set(below, new[key])
    if key not in new:
        return _Edit(below) if _can_be_named(key) else None
    return _between(below, old[key], new[key])


def _within_list(path: _Path, old: list[Json], new: list[Json]) -> _Edit | None:
    if len(old) < len(new):
        is_longer = all(map(same, old, new))
        return _Edit(path, new[len(old) :], Operation.ADD) if is_longer else None
    if len(old) > len(new):
        return _shortened(path, old, new)
    differing = [n for n, is_same in enumerate(map(same, old, new)) if not is_same]
    if len(differing) > 1:
        return None
    (index,) = differing
    return _between((*path, str(index)), old[index], new[index])


def _shortened(path: _Path, old: list[Json], new: list[Json]) -> _Edit | None:
    """Return the edit that takes elements out of a list; None: it takes setting it."""
    gone = _missing(old, new)
    if gone is None:
        return None
    elements = [old[index] for index in gone]
    is_one = len(gone) == 1
    if is_one and isinstance(elements[0], dict | list):
        # Its number says less than it.
        return _Edit((*path, str(gone[0])))
    if _are_only_these(old, elements) and _is_shorter(elements, new):
        return _Edit(path, elements, Operation.REMOVE)
    return _Edit((*path, str(gone[0]))) if is_one else None


def _missing(old: list[Json], new: list[Json]) -> list[int] | None:
    """Return which elements of `old` are to go so that `new` remains; None: it is no part."""
    gone: list[int] = []
    for index, element in enumerate(old):
        place = index - len(gone)
        if place >= len(new) or not same(element, new[place]):
            gone.append(index)
    return gone if len(old) - len(gone) == len(new) else None


def _are_only_these(old: list[Json], elements: list[Json]) -> bool:
    """Say whether no others in a list are equal to these: they would go, too."""
    return len(without(old, elements)) == len(old) - len(elements)


def _is_shorter(elements: list[Json], new: list[Json]) -> bool:
    return len(json.dumps(elements)) <= len(json.dumps(new))
