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
    """What one attribute was and is.

    Attributes:
        path: Where, dotted; `items.0.done` within an array; empty: the whole value.
        old: What was there; None: nothing.
        new: What is there now; None: nothing, it was removed.
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
    """Return what a published change has done to the attribute that it names."""
    path = change.attribute
    if path is None:
        return ObjectChange("", before, after, change.version)
    is_removal = change.value is None and change.operation is None
    new = None if is_removal else at(after, path)
    return ObjectChange(path, at(before, path), new, change.version)


def difference(before: JsonObject, after: JsonObject, version: int) -> tuple[ObjectChange, ...]:
    """Return what turns one value into another, in this order; empty: nothing."""
    return tuple(
        ObjectChange(".".join(place), old, new, version)
        for place, old, new in _between((), before, after)
    )


def at(value: Json, path: str) -> Json:
    """Return what is at a path; None: nothing."""
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
