"""What stands in for a function of the product takes what the function takes.

A stand-in of another shape raises a `TypeError` where the product calls it. A test that expects
something to go wrong then passes for a reason of its own.
"""

import inspect
from collections.abc import Callable

_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


def assert_same_shape(old: object, new: object) -> None:
    """Fail if one function cannot be called as the other; other objects are not looked at."""
    old, new = _function(old), _function(new)
    if old is None or new is None:
        return
    parameters = inspect.signature(old).parameters.values()
    positional = [one for one in parameters if one.kind in _POSITIONAL]
    required = [one for one in positional if one.default is inspect.Parameter.empty]
    named = {one.name: None for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}
    try:
        inspect.signature(new).bind(*required, **named)
    except TypeError as exc:
        raise AssertionError(f"{new} cannot stand in for {old}: {exc}") from None


def _function(value: object) -> Callable | None:
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    return value if inspect.isfunction(value) or inspect.ismethod(value) else None
