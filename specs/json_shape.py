"""What one field may hold, and rules between fields, as JSON Schema."""

from typing import Final, assert_never

import attrs

from specs.addresses.address import MAX_ADDRESS
from specs.jsonvalue import Json, JsonObject
from specs.schema.field import wire_way
from specs.schema.rule import Needs, ObjectUnless, OneOf, Rule, WordNeeds
from specs.schema.shape import (
    END,
    Address,
    Anything,
    Free,
    Many,
    Maybe,
    Number,
    Part,
    Shape,
    Text,
    Truth,
    Whole,
    Word,
)

ADDRESS: Final = (
    r"^[A-Za-z][A-Za-z0-9+.-]*://(?![^/]*\.\.)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~!$&'()*+,;=:@#%-]+)*/?" + END
)
"""What `specs.addresses.address.parse` takes."""

ADDRESS_REF: Final = "#/$defs/Address"
"""Where a schema with addresses defines what an address is."""


def address_schema() -> JsonObject:
    """Return the schema of an address."""
    return {"type": "string", "maxLength": MAX_ADDRESS, "pattern": ADDRESS}


def shape_schema(holds: Shape) -> JsonObject:
    """Return the schema of a field."""
    match holds:
        case Maybe(of):
            return {"anyOf": [shape_schema(of), {"type": "null"}]}
        case Many(of, size):
            items: JsonObject = {"type": "array", "items": shape_schema(of)}
            return {**items, "minItems": size.least, "maxItems": size.most}
        case Part(kind):
            return {"$ref": f"#/$defs/{kind.__name__}"}
        case Anything():
            return {}
        case Free():
            return {"type": "object"}
        case _:
            return _plain(holds)


def _plain(holds: Text | Address | Word | Whole | Number | Truth) -> JsonObject:
    match holds:
        case Text(least, pattern):
            least_: JsonObject = {"minLength": least} if least else {}
            return {"type": "string", **least_, **({"pattern": pattern} if pattern else {})}
        case Address():
            return {"$ref": ADDRESS_REF}
        case Word(words):
            return {"enum": list[Json](words)}
        case Whole(least, most):
            return {"type": "integer", "minimum": least, "maximum": most}
        case Number(least, most):
            return {"type": "number", "minimum": least, "maximum": most}
        case Truth(only):
            return {"type": "boolean"} if only is None else {"const": only}
        case _:
            assert_never(holds)


def rule_schema(kind: type[attrs.AttrsInstance], rule: Rule) -> JsonObject:
    """Return the schema of a rule of a class."""
    match rule:
        case OneOf(first, second):
            return {"oneOf": [_given(kind, first), _given(kind, second)]}
        case Needs(field, needed):
            return {"if": _given(kind, field), "then": _given(kind, needed)}
        case WordNeeds(field, words, needed):
            name = wire_way(kind, field)
            says: JsonObject = {
                "required": [name],
                "properties": {name: {"enum": list[Json](map(str, words))}},
            }
            return {"if": says, "then": _given(kind, needed)}
        case ObjectUnless(field, other):
            is_object: JsonObject = {wire_way(kind, field): {"type": ["object", "null"]}}
            return {"if": _given(kind, other), "else": {"properties": is_object}}
        case _:
            assert_never(rule)


def _given(kind: type[attrs.AttrsInstance], way: str) -> JsonObject:
    """Return the schema of a body in which a field is given; `null` is not."""
    schema: JsonObject = {"not": {"type": "null"}}
    for name in reversed(wire_way(kind, way).split(".")):
        schema = {"required": [name], "properties": {name: schema}}
    return schema
