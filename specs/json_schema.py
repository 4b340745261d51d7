"""JSON Schemas of the envelope, each body and each descriptor, generated from the classes.

A schema refuses exactly the values that the constructor refuses, with one exception: `normalise`
reads spellings of older peers, and a schema describes the normal form only. Unknown keys are
allowed everywhere.
"""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Final, assert_never

import attrs

from specs.addresses.address import MAX_ADDRESS
from specs.bodies import answer, link, policy, registry, session
from specs.bodies import object as manager
from specs.bodies.object import Wrapped
from specs.descriptor import DESCRIPTOR_BODIES
from specs.dialects.normalise import BODILESS
from specs.jsonvalue import Json, JsonObject
from specs.message import MessageType
from specs.reply_code import FIRST_CODE, LAST_CODE
from specs.schema import shape
from specs.schema.field import (
    Needs,
    ObjectUnless,
    OneOf,
    Rule,
    WordNeeds,
    is_required,
    rules_of,
    shape_at,
    wire_name,
    wire_path,
)

BODIES: Final[tuple[type[attrs.AttrsInstance], ...]] = tuple(
    var
    for module in (link, session, registry, manager, manager, policy, answer)
    for var in vars(module).values()
    if isinstance(var, type) and attrs.has(var) and var.__module__ == module.__name__
    if var is not answer.Success
)
"""All classes of message bodies, and of objects within bodies (M-01..M-59)."""

ADDRESS: Final = (
    r"^[A-Za-z][A-Za-z0-9+.-]*://(?![^/]*\.\.)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~!$&'()*+,;=:@#%-]+)*/?" + shape.END
)
"""The pattern of addresses that `specs.addresses.address.parse` accepts."""

ADDRESS_REF: Final = "#/$defs/Address"
"""JSON pointer from a schema to its definition of addresses."""


def address_schema() -> JsonObject:
    """Return the JSON Schema of an address."""
    return {"type": "string", "maxLength": MAX_ADDRESS, "pattern": ADDRESS}


def shape_schema(holds: shape.Shape) -> JsonObject:
    """Return the JSON Schema for the permitted values of a field."""
    match holds:
        case shape.Maybe(of):
            return {"anyOf": [shape_schema(of), {"type": "null"}]}
        case shape.Many(of, size):
            items: JsonObject = {"type": "array", "items": shape_schema(of)}
            return {**items, "minItems": size.least, "maxItems": size.most}
        case shape.Part(kind):
            return {"$ref": f"#/$defs/{kind.__name__}"}
        case shape.Anything():
            return {}
        case shape.Free():
            return {"type": "object"}
        case _:
            return _plain(holds)


def _plain(
    holds: shape.Text | shape.Address | shape.Word | shape.Whole | shape.Number | shape.Truth,
) -> JsonObject:
    match holds:
        case shape.Text(least, pattern):
            least_: JsonObject = {"minLength": least} if least else {}
            return {"type": "string", **least_, **({"pattern": pattern} if pattern else {})}
        case shape.Address():
            return {"$ref": ADDRESS_REF}
        case shape.Word(words):
            return {"enum": list[Json](words)}
        case shape.Whole(least, most):
            return {"type": "integer", "minimum": least, "maximum": most}
        case shape.Number(least, most):
            return {"type": "number", "minimum": least, "maximum": most}
        case shape.Truth(only):
            return {"type": "boolean"} if only is None else {"const": only}
        case _:
            assert_never(holds)


def rule_schema(kind: type[attrs.AttrsInstance], rule: Rule) -> JsonObject:
    """Return the JSON Schema that expresses a rule between fields of a class."""
    match rule:
        case OneOf(first, second):
            return {"oneOf": [_require_field(kind, first), _require_field(kind, second)]}
        case Needs(field, needed):
            return {"if": _require_field(kind, field), "then": _require_field(kind, needed)}
        case WordNeeds(field, words, needed):
            name = wire_path(kind, field)
            says: JsonObject = {
                "required": [name],
                "properties": {name: {"enum": list[Json](map(str, words))}},
            }
            return {"if": says, "then": _require_field(kind, needed)}
        case ObjectUnless(field, other):
            is_object: JsonObject = {wire_path(kind, field): {"type": ["object", "null"]}}
            return {"if": _require_field(kind, other), "else": {"properties": is_object}}
        case _:
            assert_never(rule)


def _require_field(kind: type[attrs.AttrsInstance], path: str) -> JsonObject:
    """Return the schema of a body in which a field is given and not `null`."""
    first, *rest = wire_path(kind, path).split(".")
    schema: JsonObject = {"not": {"type": "null"}}
    for name in reversed(rest):
        # Strict validators need the type of a value besides its fields.
        schema = {"type": "object", "required": [name], "properties": {name: schema}}
    return {"required": [first], "properties": {first: schema}}


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
URN: Final = "urn:protofly:schema:"
"""The beginning of the identifiers (`$id`) of all schemas; no server is needed."""

_CITED: Final = re.compile(r" ?\([^()]*\b[A-Z][A-Z0-9]*-[A-Z]?[0-9]+[^()]*\)")
"""Citations of the protocol's pages in a docstring, which schemas leave out."""

_FIELD: Final = re.compile(r"^    (\w+): (.+(?:\n {5,}.+)*)", re.MULTILINE)
"""The description of one field in a docstring, which may have several lines."""


def schemas() -> dict[str, JsonObject]:
    """Return all JSON Schemas by name: of the envelope, of each body, and of each descriptor.

    A class that is used only within other bodies has no schema of its own.
    """
    kinds = (*BODIES, *DESCRIPTOR_BODIES)
    parts = {part for kind in kinds for part in _parts(kind)}
    whole = {name_of(kind): body_schema(kind) for kind in kinds if kind not in parts}
    return {"message": _envelope(), **whole}


def schema_files() -> dict[str, str]:
    """Return the contents of the files of all schemas, by the name of the file."""
    return {
        f"{name}.json": json.dumps(schema, indent=2) + "\n" for name, schema in schemas().items()
    }


def name_of(kind: type[attrs.AttrsInstance]) -> str:
    """Return the name of the schema of a class: `link-status` for `LinkStatus`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def body_schema(kind: type[attrs.AttrsInstance]) -> JsonObject:
    """Return the JSON Schema of a body; the classes of objects in the body are in its `$defs`."""
    return _complete(name_of(kind), _object(kind), tuple(_all_parts(kind)))


def _complete(
    name: str, schema: JsonObject, parts: tuple[type[attrs.AttrsInstance], ...] = ()
) -> JsonObject:
    """Return a schema with its identifier and with the definitions that the schema refers to."""
    defs: JsonObject = {part.__name__: _object(part) for part in parts}
    if ADDRESS_REF in json.dumps([schema, defs]):
        defs["Address"] = address_schema()
    known: JsonObject = {"$defs": {each: defs[each] for each in sorted(defs)}} if defs else {}
    return {"$schema": DIALECT, "$id": URN + name, **schema, **known}


def _envelope() -> JsonObject:
    """Return the JSON Schema of a message in normal form, with any body."""
    has_code: JsonObject = {
        "type": "object",
        "required": ["code"],
        "properties": {"code": {"type": "integer", "minimum": FIRST_CODE, "maximum": LAST_CODE}},
    }
    any_code: JsonObject = {"type": "object", "required": ["code"], "properties": {"code": {}}}
    bodiless: list[Json] = [str(each) for each in sorted(BODILESS)]
    is_answer: JsonObject = {"properties": {"type": {"const": str(MessageType.RESPONSE)}}}
    rules: list[Json] = [
        {
            "if": {"properties": {"type": {"not": {"enum": bodiless}}}},
            "then": {"required": ["body"], "properties": {"body": {"type": "object"}}},
        },
        {
            "if": is_answer,
            "then": {"properties": {"body": has_code}},
            "else": {"properties": {"body": {"not": any_code}}},
        },
    ]
    envelope = _object(Wrapped)
    properties = envelope["properties"]
    fields = dict(properties) if isinstance(properties, dict) else {}
    schema: JsonObject = {
        **envelope,
        "title": "Message",
        "description": "A message in normal form.",
        "properties": {**fields, "body": {"type": "object"}},
        "allOf": rules,
    }
    return _complete("message", schema)


# --- classes ------------------------------------------------------------------------------


def _object(kind: type[attrs.AttrsInstance]) -> JsonObject:
    fields, texts = attrs.fields(kind), field_texts(kind)
    properties: JsonObject = {
        wire_name(field): _field(field) | texts.get(field.name, {}) for field in fields
    }
    required: list[Json] = [wire_name(field) for field in fields if is_required(field)]
    rules: list[Json] = [rule_schema(kind, rule) for rule in rules_of(kind)]
    return {
        "title": kind.__name__,
        "description": describe(kind),
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **({"allOf": rules} if rules else {}),
    }


def describe(kind: type) -> str:
    """Return the first paragraph of a class's docstring, without citations of protocol pages."""
    return _without_citations((kind.__doc__ or "").strip().split("\n\n")[0])


def _without_citations(text: str) -> str:
    return _CITED.sub("", " ".join(text.split()))


def field_texts(kind: type) -> dict[str, JsonObject]:
    """Return the descriptions of fields in a docstring, by their names in Python."""
    _, _, section = inspect.cleandoc(kind.__doc__ or "").partition("\nAttributes:\n")
    texts = _FIELD.findall(section)
    return {name: {"description": _without_citations(text)} for name, text in texts}


def _field(field: "attrs.Attribute[object]") -> JsonObject:
    texts = field.default
    default: JsonObject = {"default": texts} if isinstance(texts, str | int | float) else {}
    return {**shape_schema(shape_at(field)), **default}


def _parts(kind: type[attrs.AttrsInstance]) -> Iterator[type[attrs.AttrsInstance]]:
    for field in attrs.fields(kind):
        holds = shape_at(field)
        while isinstance(holds, shape.Maybe | shape.Many):
            holds = holds.of
        if isinstance(holds, shape.Part):
            yield holds.kind


def _all_parts(kind: type[attrs.AttrsInstance]) -> Iterator[type[attrs.AttrsInstance]]:
    for part in _parts(kind):
        yield part
        yield from _all_parts(part)
