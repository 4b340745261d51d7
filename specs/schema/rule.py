"""Rules between the fields of one body: data, for constructors and JSON Schemas alike.

Fields are named as in Python; a field of a part by its way, `params.token`.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

import attrs

from specs.errors import BadMessageError
from specs.reply_code import Code
from specs.schema.field import wire_way

_RULES: Final = "__rules__"

K = TypeVar("K", bound=type[object])


@attrs.frozen(slots=True)
class OneOf:
    """Exactly one of two fields is given."""

    first: str
    second: str
    code: Code = Code.MALFORMED

    def broken(self, body: object) -> str | None:
        """Say how a body breaks the rule; None if it does not."""
        if (_of(body, self.first) is None) != (_of(body, self.second) is None):
            return None
        first, second = wire_way(type(body), self.first), wire_way(type(body), self.second)
        return f"exactly one of {first} and {second} must be given"


@attrs.frozen(slots=True)
class Needs:
    """Where one field is given, another one is."""

    field: str
    needed: str
    code: Code = Code.MALFORMED

    def broken(self, body: object) -> str | None:
        """Say how a body breaks the rule; None if it does not."""
        if _of(body, self.field) is None or _of(body, self.needed) is not None:
            return None
        field, needed = wire_way(type(body), self.field), wire_way(type(body), self.needed)
        return f"{needed} is missing, which {field} needs"


@attrs.frozen(slots=True)
class WordNeeds:
    """Where a field says one of some words, another field is given.

    Attributes:
        code: What is answered where it is not.
    """

    field: str
    words: tuple[str, ...]
    needed: str
    code: Code = Code.MALFORMED

    def broken(self, body: object) -> str | None:
        """Say how a body breaks the rule; None if it does not."""
        word = _of(body, self.field)
        if word not in self.words or _of(body, self.needed) is not None:
            return None
        return f"{wire_way(type(body), self.needed)} is missing, which {word} needs"


@attrs.frozen(slots=True)
class ObjectUnless:
    """A field of free JSON is an object or absent, unless another one is given."""

    field: str
    other: str
    code: Code = Code.MALFORMED

    def broken(self, body: object) -> str | None:
        """Say how a body breaks the rule; None if it does not."""
        value = _of(body, self.field)
        if value is None or isinstance(value, dict) or _of(body, self.other) is not None:
            return None
        field, other = wire_way(type(body), self.field), wire_way(type(body), self.other)
        return f"{field} must be an object where no {other} is named"


Rule: TypeAlias = OneOf | Needs | WordNeeds | ObjectUnless


def ruled(*rules: Rule) -> Callable[[K], K]:
    """Return a decorator, to stand below `attrs.frozen`: no body breaks these rules."""

    def give(kind: K) -> K:
        setattr(kind, _RULES, rules)
        setattr(kind, "__attrs_post_init__", _obey)  # noqa: B010 - attrs calls it
        return kind

    return give


def rules_of(kind: type[object]) -> tuple[Rule, ...]:
    """Return the rules of a body class."""
    found: tuple[Rule, ...] = getattr(kind, _RULES, ())
    return found


def _obey(body: object) -> None:
    for rule in rules_of(type(body)):
        why = rule.broken(body)
        if why is not None:
            raise BadMessageError(why, rule.code)


def _of(body: object, way: str) -> object:
    found: object = _getter(way)(body)
    return found


_getter: Final = lru_cache(maxsize=None)(attrgetter)
