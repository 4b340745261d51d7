"""Generator of the JSON Schema of policy files, from the tables of the reader (POL-03).

Editors of TOML use the schema to complete and to check. It checks single values like the reader;
rules about several values (repeated ids, limits of a whole set, ranges whose end precedes their
beginning) are checked by the reader only.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fsm.policy.attributes import ALIASES, ATTRIBUTES, Attribute, Form
from fsm.policy.operators import OPERATORS, capital
from fsm.policy.reading import ID
from fsm.policy.terms import ALGORITHMS, EFFECTS, Direction, Moment, Operator
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import MAX_POLICY_RULES, MAX_POLICY_TASKS, MAX_POLICY_TEXT
from specs.limits.protocol import MAX_ID, MAX_LIST
from specs.schema.shape import END

SCHEMA_FILE: Final = Path(__file__).with_name("policy.schema.json")
"""File of the schema, which is shipped; a test compares its content with this module's output."""

_TEXT: Final[JsonObject] = {"type": "string", "maxLength": MAX_POLICY_TEXT}
_LABEL: Final[JsonObject] = {
    "oneOf": [{"type": "string", "maxLength": MAX_POLICY_TEXT}, {"type": "integer"}]
}
_TIME: Final = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_NUMBER: Final = "[^ ]+"
_EXACT: Final = (Operator.EQUALS, Operator.IN)
_CLOCK: Final = {Form.TIME: _TIME, Form.DATE: _DATE}


def schema_text() -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(policy_schema(), indent=2) + "\n"


def policy_schema() -> JsonObject:
    """Return the JSON Schema of one policy file, which contains one policy set."""
    attributes = _attributes()
    attributes |= {alias: attributes[name] for alias, name in ALIASES.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "policy.schema.json",
        "title": "Policy set",
        "description": "What a message node permits and denies.",
        **_element(
            {
                "version": _LABEL,
                "update": _TEXT,
                "policyCombiningAlgorithm": _words(ALGORITHMS),
                "policies": _list(_element(_policy()), MAX_POLICY_RULES),
            }
        ),
        "$defs": {
            "condition": {"oneOf": [_joining("condition", attributes), _either("condition")]},
            **{f"of-{name}": attribute for name, attribute in _definitions().items()},
            "tasks": {
                "type": "object",
                "properties": {word: _list(_task(), MAX_POLICY_TASKS) for word in EFFECTS},
                "additionalProperties": False,
            },
        },
    }


def _policy() -> JsonObject:
    rule = _element({"effect": _words(EFFECTS), "condition": _always(), "reason": _TEXT}, "effect")
    return {"ruleCombiningAlgorithm": _words(ALGORITHMS), "rules": _list(rule, MAX_POLICY_RULES)}


def _element(own: JsonObject, *required: str) -> JsonObject:
    """Return the JSON Schema of a set, a policy or a rule."""
    name: JsonObject = {"type": "string", "pattern": f"^{ID}{END}"}
    return {
        "type": "object",
        "required": ["id", *required],
        "additionalProperties": False,
        "properties": {
            "id": {"oneOf": [name, {"type": "integer"}]},
            "description": _TEXT,
            "direction": {"enum": [str(each) for each in Direction]},
            "target": _always(),
            "priority": {"type": "number"},
            "obligations": {"$ref": "#/$defs/tasks"},
            "advice": {"$ref": "#/$defs/tasks"},
            **own,
        },
    }


def _task() -> JsonObject:
    return {
        "type": "object",
        "required": ["do"],
        "additionalProperties": False,
        "properties": {
            "do": {**_TEXT, "minLength": 1},
            "when": {"enum": [str(each) for each in Moment]},
            "name": _TEXT,
            "text": _TEXT,
        },
    }


# ---- conditions


def _always() -> JsonObject:
    """Return the JSON Schema of a condition that may be empty."""
    empty: list[Json] = [{"const": {}}, {"const": []}]
    return {"anyOf": [*empty, {"$ref": "#/$defs/condition"}]}


def _attributes() -> JsonObject:
    """Return the JSON Schemas of all attributes; names with a dot become nested tables."""
    plain: JsonObject = {}
    groups: dict[str, JsonObject] = {}
    for row in ATTRIBUTES.values():
        group, _, member = row.name.rpartition(".")
        if group:
            groups.setdefault(group, {})[member] = _expression(row)
        else:
            plain[row.name] = _expression(row)
    for group, members in groups.items():
        plain[group] = {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": members,
        }
    return plain


def _expression(row: Attribute) -> JsonObject:
    return {"$ref": f"#/$defs/of-{row.name}", "description": row.meaning}


def _definitions() -> JsonObject:
    return {
        name: {"oneOf": [_joining(f"of-{name}", _operators(row)), _either(f"of-{name}")]}
        for name, row in ATTRIBUTES.items()
    }


def _joining(what: str, keys: JsonObject) -> JsonObject:
    """Return the JSON Schema of a table of conditions, which must all be true."""
    ref: JsonObject = {"$ref": f"#/$defs/{what}"}
    some = _list(ref, MAX_LIST, 1)
    return {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {**keys, "not": ref, "anyOf": some, "allOf": some},
    }


def _either(what: str) -> JsonObject:
    """Return the JSON Schema of a list of conditions, of which one must be true."""
    return _list({"$ref": f"#/$defs/{what}"}, MAX_LIST, 1)


def _operators(row: Attribute) -> JsonObject:
    return {str(operator): _parameters(row, operator) for operator in OPERATORS[row.form]}


def _parameters(row: Attribute, operator: Operator) -> JsonObject:
    single = _parameter(row, operator)
    several = _list(single, MAX_LIST, 1)
    return several if operator is Operator.IN else {"oneOf": [single, several]}


def _parameter(row: Attribute, operator: Operator) -> JsonObject:
    if operator is Operator.BETWEEN:
        end = _CLOCK.get(row.form, _NUMBER)
        return {"type": "string", "pattern": f"^ *{end} +{end} *{END}"}
    if operator in {Operator.LIKE, Operator.CONTAINS}:
        return _TEXT
    return _value(row)


def _value(row: Attribute) -> JsonObject:
    match row.form:
        case Form.NUMBER:
            return {"type": "number", "minimum": -MAX_ID, "maximum": MAX_ID}
        case Form.TRUTH:
            return {"type": "boolean"}
        case Form.TIME | Form.DATE:
            return {"type": "string", "pattern": f"^{_CLOCK[row.form]}{END}"}
        case Form.WORD:
            return {"enum": [*row.words, *map(capital, row.words)]}
        case _:
            return _TEXT


def _words(words: Iterable[str]) -> JsonObject:
    return {"enum": list(words)}


def _list(of: JsonObject, most: int, least: int = 0) -> JsonObject:
    schema: JsonObject = {"type": "array", "items": of, "maxItems": most}
    return {**schema, "minItems": least} if least else schema
