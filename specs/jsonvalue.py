"""The type of free JSON, as it stands in message bodies."""

import math
from collections.abc import Collection
from types import NoneType
from typing import Final, TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, Json]
"""A JSON object. Bodies are shared between tasks: nobody changes one in place."""

_PLAIN: Final = (str, int, NoneType)
"""What is JSON whatever it holds; booleans are integers."""

_NAMES: Final = frozenset({str})
"""Types of keys."""

_SURE: Final = frozenset({str, int, bool, NoneType})
"""Types of which every value is JSON; most objects and lists hold nothing else."""

_MAX_DEPTH: Final = 64
"""Nesting that is looked into; no peer takes half as much, and Python has an end, too."""


def is_json(value: object, depth: int = _MAX_DEPTH) -> bool:
    """Say whether a value can be written as JSON and read again as what it was.

    NaN cannot: it would be written as `null`, which means something else.
    """
    if isinstance(value, dict):
        return set(map(type, value)) <= _NAMES and _are_json(value.values(), depth)
    if isinstance(value, list):
        return _are_json(value, depth)
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, _PLAIN)


def _are_json(values: Collection[object], depth: int) -> bool:
    if set(map(type, values)) <= _SURE:
        return True
    return depth > 0 and all(is_json(one, depth - 1) for one in values)
