"""The JSON Schemas keep the rules of strict validators, such as ajv with `strict: true`.

Strict validators refuse schemas that say more than they seem to: a keyword that says nothing of
the values the type allows, a field that is required and described nowhere, a union of types, a
keyword that there is not. The rules are those of ajv's page "Strict mode".
"""

import json
from pathlib import Path

import pytest

import specs
from fsm.policy.schema import SCHEMA_FILE
from specs.json_schema import schemas
from tests.support.cases import for_each

DATA = sorted((Path(specs.__file__).parent / "schemas" / "data").glob("*.json"))
ALL = {
    **schemas(),
    **{f"data/{one.stem}": json.loads(one.read_text()) for one in DATA},
    "policy": json.loads(SCHEMA_FILE.read_text()),
}

ABOUT = {
    "object": {"required", "properties", "additionalProperties", "patternProperties",
               "propertyNames", "minProperties", "maxProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "string": {"pattern", "minLength", "maxLength", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}  # fmt: skip
SAME_VALUE = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
OTHER = {"$schema", "$id", "$ref", "$defs", "title", "description", "default", "type", "enum",
         "const", "examples"}  # fmt: skip
KNOWN = OTHER | SAME_VALUE | set().union(*ABOUT.values())


def faults(schema, place, types=frozenset()):
    """Yield what a strict validator says of a schema; `types`: of its value, as known outside."""
    if isinstance(schema, bool):
        return
    given = schema.get("type", [])
    named = set(given) if isinstance(given, list) else {given}
    types = named or types
    if len(named - {"null"}) > 1:
        yield f"{place}: a union of types"
    yield from (f"{place}: unknown keyword {key}" for key in schema.keys() - KNOWN)
    yield from (f"{place}: {key} without its type" for key in untyped(schema, types))
    undescribed = set(schema.get("required", ())) - set(schema.get("properties", ()))
    yield from (f"{place}: {name} is required, and is no property" for name in undescribed)
    for one, within, known in parts(schema, types):
        yield from faults(one, f"{place}/{within}", known)


def untyped(schema, types):
    """Return the keywords that say nothing of values of these types."""
    for kind, keywords in ABOUT.items():
        fits = {"number", "integer"} if kind == "number" else {kind}
        if not fits & set(types):
            yield from schema.keys() & keywords


def parts(schema, types):
    """Yield the schemas in a schema, where they are, and the types known of their values."""
    for key, value in schema.items():
        if key in SAME_VALUE:
            listed = value if isinstance(value, list) else [value]
            yield from ((one, f"{key}/{number}", types) for number, one in enumerate(listed))
        elif key in {"properties", "patternProperties", "$defs"}:
            yield from ((one, f"{key}/{name}", frozenset()) for name, one in value.items())
        elif key in {"items", "additionalProperties", "propertyNames", "contains"}:
            yield value, key, frozenset()


@for_each(ALL)
def test_a_schema_keeps_the_rules_of_strict_validators(name):
    assert list(faults(ALL[name], name)) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "number"]},
        {"properties": {"a": {}}},
        {"type": "object", "required": ["a"]},
        {"type": "string", "minimum": 1},
        {"type": "object", "propertys": {}},
        {"type": "object", "allOf": [{"properties": {"a": {"items": {}}}}]},
    ],
)
def test_a_schema_that_breaks_one_is_found(schema):
    assert len(list(faults(schema, ""))) == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"], "pattern": "a"},
        {"type": "integer", "minimum": 1},
        {"type": "object", "allOf": [{"if": {"required": ["a"], "properties": {"a": {}}}}]},
    ],
)
def test_a_schema_that_breaks_none_is_let_be(schema):
    assert list(faults(schema, "")) == []
