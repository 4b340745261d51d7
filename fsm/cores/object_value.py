"""Changing the value of a data object, one attribute at a time (SYN-13..SYN-15).

Values are shared between tasks and never changed in place: a change returns a
new value that shares what it did not touch.
"""

from specs.body_sync import Change, ChangeObject
from specs.jsonvalue import Json, JsonObject

__all__ = ["changed"]

_ARRAY = "array"
_ADD = "add"
_REMOVE = "remove"


def changed(value: JsonObject, change: Change | ChangeObject) -> JsonObject:
    """Return `value` after one change.

    A change without a value removes the attribute; one of an array adds or
    removes elements. Removing what is not there changes nothing.
    """
    if change.attribute is None:
        return value
    return _edit(value, change.attribute.split("."), change)


def _edit(value: JsonObject, path: list[str], change: Change | ChangeObject) -> JsonObject:
    name, *rest = path
    if rest:
        inner = value.get(name)
        if not isinstance(inner, dict):
            if change.value is None or change.operation == _REMOVE:
                return value
            inner = {}
        return {**value, name: _edit(inner, rest, change)}
    if change.attribute_type == _ARRAY and change.operation is not None:
        return _edit_array(value, name, change)
    if change.value is None:
        return {key: kept for key, kept in value.items() if key != name}
    return {**value, name: change.value}


def _edit_array(value: JsonObject, name: str, change: Change | ChangeObject) -> JsonObject:
    present = value.get(name)
    old: list[Json] = present if isinstance(present, list) else []
    elements = change.value if isinstance(change.value, list) else [change.value]
    if change.operation == _ADD:
        return {**value, name: [*old, *elements]}
    if not isinstance(present, list):
        return value
    return {**value, name: [kept for kept in old if kept not in elements]}
