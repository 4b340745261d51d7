"""Changes of the value of a data object, one attribute at a time (SYN-13..SYN-15).

Values are shared between tasks and never changed in place: a change returns a new value that shares
all unchanged parts with the old one. Shared parts are compared by identity.

A path is a dotted text. The value at a segment decides what the segment means: a key of an object,
or the index of an element of a list. A change without a path replaces the whole value. Some
differences cannot be expressed at their own path: keys that are empty or contain a dot, a new null
(a change to null removes), and arrays of another length. Then the change names a shorter path.
"""

import json
from typing import Final, TypeAlias, final

import attrs

from specs.bodies.object import Change, ChangeObject
from specs.bodies.word import AttributeType, Operation
from specs.errors import BadMessageError
from specs.jsonvalue import ABSENT, Absence, Json, JsonObject, frozen_object, index_in, value_at
from specs.limits.protocol import MAX_JSON_DEPTH


def check_path(path: str | None) -> None:
    """Refuse a path that is longer than the permitted nesting of values.

    Values are processed by recursive functions: a peer could end the process by a path of thousands
    of segments.

    Raises:
        BadMessageError: The path is too long.
    """
    if path is not None and path.count(".") >= MAX_JSON_DEPTH:
        raise BadMessageError(f"a path has more than {MAX_JSON_DEPTH} segments")


ARRAY: Final = AttributeType.ARRAY.value
ADD: Final = Operation.ADD.value
_REMOVE: Final = Operation.REMOVE.value
_URL: Final = "://"

_CANONICAL: Final = json.JSONEncoder(sort_keys=True)
_Place: TypeAlias = "Json | Absence"


def apply_change(value: JsonObject, change: Change | ChangeObject) -> JsonObject:
    """Return the value of an object after one change.

    A change without a value removes the attribute or the element; a change of an array adds or
    removes elements. Removing an absent attribute changes nothing, nor does a path through an
    absent element. Missing objects on the path are created.

    Args:
        value: The value before, which is not changed in place.
        change: The change; without an attribute it replaces the whole value.
    """
    if change.attribute is None:
        return change.value if isinstance(change.value, dict) else value
    after = _after(value, change.attribute.split("."), change)
    return after if isinstance(after, dict) else value


def is_applicable(value: JsonObject, change: Change) -> bool:
    """Return whether a published change fits a value; if not, a version in between is missing.

    Missing objects on the path are created; all other parts must exist.

    Args:
        value: The value before.
        change: The change.
    """
    if change.attribute is None:
        return isinstance(change.value, dict)
    place: _Place = value
    for segment in change.attribute.split("."):
        if not isinstance(place, dict | list):
            return isinstance(place, Absence) and change.index is None
        if isinstance(place, list) and index_in(place, segment) is None:
            return False
        place = value_at(place, segment)
    if not _is_of_array(change):
        return True
    if not isinstance(place, list):
        return isinstance(place, Absence) and change.index is None
    return change.index is None or _is_within(place, change.index, change)


def _is_within(elements: list[Json], index: int, change: Change) -> bool:
    """Return whether a list is long enough for inserting or removing elements at an index."""
    if change.operation == ADD:
        return index <= len(elements)
    count = len(change.value) if isinstance(change.value, list) else change.value
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        return False
    return index + count <= len(elements) if count else index == len(elements) - 1


def published_change(
    before: JsonObject, after: JsonObject, asked: ChangeObject, version: int, by: str
) -> Change:
    """Return a change in the form that every peer, also an older one, can apply.

    A peer in upstream's form creates no objects on the way to an attribute, removes elements of
    lists by their indices only, and reads a URL in a path as one segment.

    Args:
        before: The whole value before the change.
        after: The whole value after the change.
        asked: The change, as the reporter requested it.
        version: Version of the object after the change.
        by: Address of the reporter.
    """
    if asked.attribute is None:
        return Change(version, value=after, source=by)
    steps = asked.attribute.split(".")
    change: Change | None = None
    if _nameable(before, steps) == len(steps):
        change = _list_change(before, asked, version, by)
    return change or _setting(before, after, steps, version, by)


def _list_change(before: JsonObject, asked: ChangeObject, version: int, by: str) -> Change | None:
    """Return a requested change in the form that all peers understand; None: set the whole list."""
    path = asked.attribute or ""
    parent, _, name = path.rpartition(".")
    if not _is_of_array(asked):
        if asked.value is None and isinstance(value_at(before, parent), list):
            return _cut(parent, int(name), 1, version, by)
        return Change(version, path, asked.value, asked.attribute_type, source=by)
    place = value_at(before, path)
    value: list[Json] = asked.value if isinstance(asked.value, list) else [asked.value]
    if isinstance(place, Absence) and asked.operation == ADD:
        return Change(version, path, value, ARRAY, ADD, source=by)
    if not isinstance(place, list):
        return None
    if asked.operation == ADD:
        return Change(version, path, value, ARRAY, ADD, source=by, index=len(place))
    return _removal(path, place, value, version, by)


def _removal(
    path: str, place: list[Json], elements: list[Json], version: int, by: str
) -> Change | None:
    """Return a change that removes elements at adjacent indices; None: they are not adjacent."""
    keys = {_key(each) for each in elements}
    indices = [number for number, each in enumerate(place) if _key(each) in keys]
    if not indices:
        return Change(version, path, [], ARRAY, ADD, source=by, index=len(place))
    if indices[-1] - indices[0] != len(indices) - 1:
        return None
    if len(indices) != len(elements):
        return _cut(path, indices[0], len(indices), version, by)
    return Change(version, path, elements, ARRAY, _REMOVE, source=by, index=indices[0])


def _cut(path: str, index: int, count: int, version: int, by: str) -> Change:
    return Change(version, path, count, ARRAY, _REMOVE, source=by, index=index)


def _nameable(value: JsonObject, steps: list[str]) -> int:
    """Return how many segments of a path lead through existing values; the last may be new."""
    place: _Place = value
    for depth, step in enumerate(steps):
        if not isinstance(place, dict | list) or _URL in step:
            return depth
        if isinstance(place, list) and index_in(place, step) is None:
            return depth
        place = value_at(place, step)
    return len(steps)


def _setting(
    before: JsonObject, after: JsonObject, steps: list[str], version: int, by: str
) -> Change:
    """Return a change that sets or removes the deepest value on a path that changes can name."""
    for depth in range(_nameable(before, steps), 0, -1):
        path = ".".join(steps[:depth])
        value = value_at(after, path)
        holder = value_at(before, ".".join(steps[: depth - 1])) if depth > 1 else before
        if isinstance(value, Absence):
            if isinstance(holder, dict):
                return Change(version, path, source=by)
        elif value is not None:
            return Change(version, path, value, source=by)
    return Change(version, value=after, source=by)


def _is_of_array(change: Change | ChangeObject) -> bool:
    return change.operation is not None and change.attribute_type == ARRAY


def without_attribute(value: Json, path: str) -> Json:
    """Return a value without the part at a path, or the same value if nothing is at the path.

    Args:
        value: The value before, which is not changed in place.
        path: Dotted; segments are keys of objects and indices of lists.
    """
    after = _after(value, path.split("."), Change(1, path))
    return value if isinstance(after, Absence) else after


def can_be_set(value: JsonObject, path: str) -> bool:
    """Return whether a value can be set at a path: all list elements on the path must exist.

    Args:
        value: The whole value.
        path: Dotted; segments are keys of objects and indices of lists.
    """
    place: _Place = value
    for segment in path.split("."):
        if isinstance(place, list) and index_in(place, segment) is None:
            return False
        place = value_at(place, segment) if isinstance(place, dict | list) else ABSENT
    return True


def same(left: Json, right: Json) -> bool:
    """Return whether two values are equal as JSON: 1 equals 1.0, but 1 does not equal true.

    Args:
        left: A value.
        right: Another value.
    """
    if left is right:
        return True
    if isinstance(left, dict):
        return isinstance(right, dict) and _same_objects(left, right)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return left == right


def without(elements: list[Json], gone: list[Json]) -> list[Json]:
    """Return a list without the elements that are equal as JSON to an element of `gone`.

    Each element is looked up once: the cost is the sum of both sizes, not their product.

    Args:
        elements: The list.
        gone: The elements to leave out.
    """
    keys = {_key(each) for each in gone}
    return [kept for kept in elements if _key(kept) not in keys]


def _key(value: Json) -> str | tuple[bool, str | float | None]:
    """Return a hashable key that is equal for two values if and only if they are `same`.

    The key of objects and lists is a text: a peer cannot choose values with colliding hashes.
    """
    if isinstance(value, dict | list):
        return _CANONICAL.encode(_whole(value))
    return isinstance(value, bool), value


def _whole(value: Json) -> Json:
    """Return a value with 1 instead of 1.0, since JSON can write the same number in both forms."""
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _same_objects(left: JsonObject, right: JsonObject) -> bool:
    return left.keys() == right.keys() and all(same(each, right[key]) for key, each in left.items())


def _after(present: _Place, path: list[str], change: Change | ChangeObject) -> _Place:
    """Return the value that results from a change at a path; an empty path is the value itself."""
    if not path:
        if _is_of_array(change):
            return _changed_array(present, change)
        return ABSENT if change.value is None else change.value
    name, *rest = path
    if isinstance(present, list):
        index = index_in(present, name)
        if index is not None:
            changed = _after(present[index], rest, change)
            elements: list[Json] = [] if isinstance(changed, Absence) else [changed]
            present = [*present[:index], *elements, *present[index + 1 :]]
        return present
    if not isinstance(present, dict):
        if change.value is None or change.operation == _REMOVE:
            return present
        present = {}
    changed = _after(present.get(name, ABSENT), rest, change)
    if isinstance(changed, Absence):
        return {key: each for key, each in present.items() if key != name}
    return {**present, name: changed}


def _changed_array(present: _Place, change: Change | ChangeObject) -> _Place:
    elements: list[Json] = change.value if isinstance(change.value, list) else [change.value]
    is_by_value = change.operation == _REMOVE and isinstance(change.value, list)
    if isinstance(change, Change) and change.index is not None and not is_by_value:
        return _changed_at(present, change.index, change.operation, change.value)
    if change.operation == ADD:
        return [*(present if isinstance(present, list) else ()), *elements]
    if not isinstance(present, list):
        return present
    return without(present, elements)


def _changed_at(present: _Place, index: int, operation: str | None, value: Json) -> _Place:
    """Return a list with elements inserted before an index, or removed from that index onward."""
    if not isinstance(present, list):
        return present
    if operation == ADD:
        return [
            *present[:index],
            *(value if isinstance(value, list) else [value]),
            *present[index:],
        ]
    count = value if isinstance(value, int) else 0
    return [*present[:index], *present[index + max(count, 1) :]]


@final
@attrs.frozen(slots=True)
class ObjectChange:
    """Change of one attribute of a data object: its old and new value.

    Attributes:
        path: Dotted path; `items.0.done` within an array; empty: the whole value.
        old: The value before; None: there was none.
        new: The value now; None: it was removed.
        version: Version of the object after the change.
    """

    path: str
    old: Json
    new: Json
    version: int

    def apply_to(self, value: JsonObject) -> JsonObject:
        """Return a value after this change; the given value is not modified."""
        change = Change(self.version, self.path or None, self.new)
        return frozen_object(apply_change(value, change))


_Path: TypeAlias = tuple[str, ...]
_Edit: TypeAlias = tuple[_Path, Json, Json]

_NOTHING: Final[list[_Edit]] = []


def describe_change(before: JsonObject, after: JsonObject, change: Change) -> ObjectChange:
    """Return the old and the new value of the attribute that a published change names.

    If the changed attribute is null afterwards, the whole value is named, since a change to null
    removes.

    Args:
        before: The whole value before the change.
        after: The whole value after the change.
        change: The change.
    """
    path = change.attribute
    if path is None:
        return ObjectChange("", before, after, change.version)
    is_removal = change.value is None and change.operation is None
    if change.index is not None and change.operation == _REMOVE and change.value in (0, 1):
        path, is_removal = f"{path}.{change.index}", True
    new_value = None if is_removal else _at(after, path)
    if new_value is None and not is_removal and same(before, after):
        return ObjectChange("", before, after, change.version)
    return ObjectChange(path, _at(before, path), new_value, change.version)


def difference(before: JsonObject, after: JsonObject, version: int) -> tuple[ObjectChange, ...]:
    """Return the changes that turn one value into another, in order; empty: the values are equal.

    Args:
        before: The first value.
        after: The second value.
        version: Version of the object with the value `after`.
    """
    return tuple(
        ObjectChange(".".join(place), old, new, version)
        for place, old, new in _between((), before, after)
    )


def _at(value: JsonObject, path: str) -> Json:
    """Return the value at a path, or None if it is null or absent."""
    value_there = value_at(value, path)
    return None if isinstance(value_there, Absence) else value_there


# --- differences -----------------------------------------------------------------------------


def _between(place: _Path, old: Json, new: Json) -> list[_Edit]:
    if old is new:
        return _NOTHING
    if isinstance(old, dict) and isinstance(new, dict):
        return _between_objects(place, old, new)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return _between_arrays(place, old, new)
    # `==` is not enough: in Python, True equals 1.
    is_same = old == new and type(old) is type(new) and not isinstance(old, dict | list)
    return _NOTHING if is_same else [(place, old, new)]


def _between_objects(place: _Path, old: JsonObject, new: JsonObject) -> list[_Edit]:
    edits: list[_Edit] = []
    for name in {**old, **new}:
        was, now = old.get(name), new.get(name)
        if was is now and (name in old) is (name in new):
            continue
        if name not in new:
            below: list[_Edit] = [((*place, name), was, None)]
        elif now is None:
            return [(place, old, new)]
        else:
            below = _between((*place, name), was, now)
        if below and (not name or "." in name):
            return [(place, old, new)]
        edits += below
    return edits


def _between_arrays(place: _Path, old: list[Json], new: list[Json]) -> list[_Edit]:
    edits: list[_Edit] = []
    for index, (was, now) in enumerate(zip(old, new, strict=True)):
        if now is None and was is not None:
            return [(place, old, new)]
        edits += _between((*place, str(index)), was, now)
    return edits
