"""What stands in for a function of the product takes what the function takes, and is called.

A stand-in of another shape raises a `TypeError` where the product calls it. A test that expects
something to go wrong then passes for a reason of its own. One that the product never calls, because
it uses another name, makes a test pass that says something of the product as it is.
"""

import functools
import inspect
import pkgutil
from collections.abc import Callable
from typing import Final

import pytest
from typing_extensions import override

_NOTHING: Final = object()


class Stand(pytest.MonkeyPatch):
    """Puts stand-ins in place of attributes, and knows which of the functions were called.

    Attributes:
        silent: What was replaced by a function that has not been called.
    """

    def __init__(self) -> None:
        super().__init__()
        self.silent: set[str] = set()

    @override
    def setattr(self, target, name, value=_NOTHING, raising=True) -> None:
        if value is _NOTHING:
            place, _, attribute = target.rpartition(".")
            target, name, value = pkgutil.resolve_name(place), attribute, name
        is_class = inspect.isclass(target)
        old = (inspect.getattr_static if is_class else getattr)(target, name, None)
        assert_same_shape(old, value)
        if inspect.isfunction(value) and _function(old) is not None:
            value = self._noted(value, f"{target}.{name}")
        super().setattr(target, name, value, raising)

    def _noted(self, function: Callable, what: str) -> Callable:
        self.silent.add(what)

        @functools.wraps(function)
        def noted(*args, **kwargs):
            self.silent.discard(what)
            return function(*args, **kwargs)

        return noted


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
