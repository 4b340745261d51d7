"""What has changed between two values of a data object, one attribute at a time.

A path is dotted, as in changes that are published; where there is an array its segment is
an index. Where a path cannot say it, a step nearer to the root can: names that are empty or
hold a dot, a null that was none before (a change to nothing removes), arrays of another
length. The empty path is the whole value.

Values derived from each other share what did not change, and what is shared costs nothing.
"""

from typing import Final, TypeAlias, final

import attrs

from fsm.sync.value.value import changed, index_in
from specs.bodies.sync import Change
from specs.jsonvalue import Json, JsonObject
from specs.schema.frozen_json import frozen_object

__all__ = ["ObjectChange", "at", "described", "difference"]


@final
@attrs.frozen(slots=True)
class ObjectChange:
    """The old and the new value of one attribute.

    Attributes:
        path: Dotted path; `items.0.done` within an array; empty: the whole value.
        old: The value before; None: there was none.
        new: The value now; None: it was removed.
        version: Of the object after the change.
    """

    path: str
    old: Json
    new: Json
    version: int

    def apply_to(self, value: JsonObject) -> JsonObject:
        """Return a value after this change; it is not changed in place."""
        change = Change(self.version, self.path or None, self.new)
        return frozen_object(changed(value, change))


_Place: TypeAlias = tuple[str, ...]
_Edit: TypeAlias = tuple[_Place, Json, Json]

_NOTHING: Final[list[_Edit]] = []


def described(before: JsonObject, after: JsonObject, change: Change) -> ObjectChange:
    """Return the effect of a published change on the attribute that it names.

    Args:
        before: The whole value before the change.
        after: The whole value after the change.
        change: The change.
    """
    path = change.attribute
    if path is None:
        return ObjectChange("", before, after, change.version)
    is_removal = change.value is None and change.operation is None
    new = None if is_removal else at(after, path)
    return ObjectChange(path, at(before, path), new, change.version)


def difference(before: JsonObject, after: JsonObject, version: int) -> tuple[ObjectChange, ...]:
    """Return the changes that turn one value into another, in order; empty: they are equal.

    Args:
        before: The one value.
        after: The other value.
        version: Version of the object with the value `after`.
    """
    return tuple(
        ObjectChange(".".join(place), old, new, version)
        for place, old, new in _between((), before, after)
    )


def at(value: Json, path: str) -> Json:
    """Return the value at a path; None: there is none.

    Args:
        value: The whole value.
        path: Dotted; segments are keys of objects and indices of lists.
    """
    for name in path.split("."):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and (index := index_in(value, name)) is not None:
            value = value[index]
        else:
            return None
    return value


# --- between ------------------------------------------------------------------------------


def _between(place: _Place, old: Json, new: Json) -> list[_Edit]:
    if old is new:
        return _NOTHING
    if isinstance(old, dict) and isinstance(new, dict):
        return _between_objects(place, old, new)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return _between_arrays(place, old, new)
    # Equal is not enough: to Python, true is 1.
    is_same = old == new and type(old) is type(new) and not isinstance(old, dict | list)
    return _NOTHING if is_same else [(place, old, new)]


def _between_objects(place: _Place, old: JsonObject, new: JsonObject) -> list[_Edit]:
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


def _between_arrays(place: _Place, old: list[Json], new: list[Json]) -> list[_Edit]:
    edits: list[_Edit] = []
    for index, (was, now) in enumerate(zip(old, new, strict=True)):
        if now is None and was is not None:
            return [(place, old, new)]
        edits += _between((*place, str(index)), was, now)
    return edits
