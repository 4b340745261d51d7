"""Definition of body classes: names of fields on the wire, permitted values, rules between fields.

A body class is `@attrs.frozen(slots=True, field_transformer=add_checks)`. Its annotations define
the permitted values of its fields, which are checked when an instance is made.

Rules are data, from which both the checks of instances and the JSON Schemas are made. They name
fields as in Python, and a field of an object within the body by its path, `params.token`.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Final, TypeAlias, TypeVar

import attrs

from specs.errors import BadMessageError
from specs.jsonvalue import SURE
from specs.reply_code import Code
from specs.schema import shape
from specs.schema.shape import Shape, Size, shape_of

WIRE: Final = "wire"
"""Metadata key for a field's name on the wire."""

SHAPE: Final = "shape"
"""Metadata key for the shape of a field, which defines its permitted values."""

Address: TypeAlias = Annotated[str, shape.Address()]
"""Type of a field for an address: other texts are refused, aliases are made canonical (N12)."""

Addresses: TypeAlias = Annotated[tuple[Address, ...], Size(1)]
"""Type of a field for a list of addresses with at least one element."""

Filled: TypeAlias = Annotated[str, shape.Text(least=1)]
"""Type of a field for a text that is not empty."""

Names: TypeAlias = tuple[Filled, ...]
"""Type of a field for a list of names, which may be empty."""

_SURE_OF: Final = {shape.Text(): frozenset[type[object]]({str}), shape.Anything(): SURE}

_Fields: TypeAlias = list["attrs.Attribute[object]"]


def wire(name: str) -> dict[str, str]:
    """Return the metadata for a field whose name on the wire differs from that in Python."""
    return {WIRE: name}


def wire_name(field: "attrs.Attribute[object]") -> str:
    """Return the name of a field on the wire."""
    return str(field.metadata.get(WIRE, field.name))


def wire_path(kind: type[object], path: str) -> str:
    """Return the path of a field with names on the wire: `params.runtimeURL`.

    The given path has names in Python, such as `params.runtime_url`.
    """
    names = []
    inside: type[object] = kind
    for name in path.split("."):
        field = attrs.fields_dict(inside)[name]  # type: ignore[arg-type] # a body class
        names.append(wire_name(field))
        holds = shape_at(field)
        inside = holds.kind if isinstance(holds, shape.Part) else inside
    return ".".join(names)


def shape_at(field: "attrs.Attribute[object]") -> Shape:
    """Return the shape of a field, which defines and checks the permitted values."""
    field_shape: Shape = field.metadata[SHAPE]
    return field_shape


def is_required(field: "attrs.Attribute[object]") -> bool:
    """Return whether a field has no default, and so must be present in a body."""
    return field.default is attrs.NOTHING


def add_checks(kind: type[object], fields: _Fields) -> _Fields:
    """Make every new instance of a body class check its fields and its rules (for attrs).

    Raises:
        SpecError: An annotation does not say what its field holds.
    """
    known = [
        field.evolve(metadata={**field.metadata, SHAPE: shape_of(field.type)})
        for field in sorted(fields, key=attrgetter("kw_only"))
    ]
    checks = [(field.name, *_check_of(shape_at(field)), wire_name(field)) for field in known]
    rules = [
        (None if isinstance(rule, OneOf) else _value_at(rule.field), rule)
        for rule in rules_of(kind)
    ]

    def check(body: object) -> None:
        for name, holds, sure, where in checks:
            value = getattr(body, name)
            # Most fields are absent, plain text, or a plain value of free JSON.
            if type(value) in sure:
                continue
            canonical = holds.check(value, where)
            if canonical is not value:
                object.__setattr__(body, name, canonical)
        for value_of, rule in rules:
            # Most rules are about an absent field.
            is_kept = value_of is not None and value_of(body) is None
            why = None if is_kept else rule.violation(body)
            if why is not None:
                raise BadMessageError(why, rule.code)

    setattr(kind, "__attrs_post_init__", check)  # noqa: B010 - attrs calls it
    return known


def _check_of(holds: Shape) -> tuple[Shape, frozenset[type[object]]]:
    """Return the shape that checks a present value, and the types whose values need no check."""
    if isinstance(holds, shape.Maybe):
        return holds.of, _check_of(holds.of)[1] | {type(None)}
    return holds, _SURE_OF.get(holds, frozenset())


_RULES: Final = "__rules__"

K = TypeVar("K", bound=type[object])


@attrs.frozen(slots=True)
class OneOf:
    """Rule that exactly one of two fields of a body must be present."""

    first: str
    second: str
    code: Code = Code.MALFORMED

    def violation(self, body: object) -> str | None:
        """Return how a body breaks the rule, or None."""
        if (_value_at(self.first)(body) is None) != (_value_at(self.second)(body) is None):
            return None
        first, second = wire_path(type(body), self.first), wire_path(type(body), self.second)
        return f"exactly one of {first} and {second} must be given"


@attrs.frozen(slots=True)
class Needs:
    """Rule that a body with one field must contain another field, too."""

    field: str
    needed: str
    code: Code = Code.MALFORMED

    def violation(self, body: object) -> str | None:
        """Return how a body breaks the rule, or None."""
        if _value_at(self.field)(body) is None or _value_at(self.needed)(body) is not None:
            return None
        field, needed = wire_path(type(body), self.field), wire_path(type(body), self.needed)
        return f"{needed} is missing, which {field} needs"


@attrs.frozen(slots=True)
class WordNeeds:
    """Rule that a body with certain words in one field must contain another field, too.

    Attributes:
        code: Code of the answer if the rule is broken.
    """

    field: str
    words: tuple[str, ...]
    needed: str
    code: Code = Code.MALFORMED

    def violation(self, body: object) -> str | None:
        """Return how a body breaks the rule, or None."""
        word = _value_at(self.field)(body)
        if word not in self.words or _value_at(self.needed)(body) is not None:
            return None
        return f"{wire_path(type(body), self.needed)} is missing, which {word} needs"


@attrs.frozen(slots=True)
class ObjectUnless:
    """Rule that a field of any JSON must be an object, unless another field is present."""

    field: str
    other: str
    code: Code = Code.MALFORMED

    def violation(self, body: object) -> str | None:
        """Return how a body breaks the rule, or None."""
        value = _value_at(self.field)(body)
        if value is None or isinstance(value, dict) or _value_at(self.other)(body) is not None:
            return None
        field, other = wire_path(type(body), self.field), wire_path(type(body), self.other)
        return f"{field} must be an object where no {other} is named"


Rule: TypeAlias = OneOf | Needs | WordNeeds | ObjectUnless


def obeys(*rules: Rule) -> Callable[[K], K]:
    """Return a decorator that adds rules to a body class; write it below `attrs.frozen`."""

    def give(kind: K) -> K:
        setattr(kind, _RULES, rules)
        return kind

    return give


def rules_of(kind: type[object]) -> tuple[Rule, ...]:
    """Return the rules that were added to a body class by `obeys`."""
    rules: tuple[Rule, ...] = getattr(kind, _RULES, ())
    return rules


_value_at: Final = lru_cache(maxsize=None)(attrgetter)
"""Returns a function that reads the field at a path from a body."""
