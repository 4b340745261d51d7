"""Values against the schema of their object, and schemas that are none (CAT-05, M-32)."""

import subprocess
import sys

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.sync.value.json import NoSchemaError, compile_schema
from specs.limits.sync import DEFINITION_BYTES, SCHEMA_WORDS
from tests.support.json_values import VALUES

TODO = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 10},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"done": {"type": "boolean"}},
                "required": ["done"],
                "additionalProperties": False,
            },
        },
    },
}


def test_an_obeying_value_is_accepted():
    assert (
        compile_schema(TODO).flaw({"title": "x", "items": [{"done": True}], "other": None}) is None
    )


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        ({"items": [{"done": True}, {"done": 1}]}, "items.1.done", 'it is not of type "boolean"'),
        ({"items": [{}]}, "items.0", '"done" is a required property'),
        ({"items": [{"done": True, "x": 1}]}, "items.0", "('x' was unexpected)"),
        ({"title": "x" * 11}, "title", "it is longer than 10 characters"),
        ([], "", 'it is not of type "object"'),
    ],
)
def test_a_violating_value_is_named(value, path, why):
    flaw = compile_schema(TODO).flaw(value)
    assert flaw.path == path
    assert why in flaw.why


def test_a_sentence_stays_short_however_long_the_value():
    flaw = compile_schema({"enum": ["a" * 9000]}).flaw({"b": "c" * 9000})
    assert len(flaw.why) <= SCHEMA_WORDS + 3


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ({"type": 5}, "type: it is not valid"),
        ({"properties": {"a": {"pattern": "("}}}, 'properties.a.pattern: it is not a "regex"'),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "Unknown meta-schema"),
        ({"$ref": "#/$defs/none"}, "does not exist"),
        ({"title": "x" * DEFINITION_BYTES}, f"more than {DEFINITION_BYTES} bytes"),
    ],
)
def test_an_invalid_schema_is_one_sentence(definition, why):
    with pytest.raises(NoSchemaError, match=r"^the definition is no JSON Schema: ") as refused:
        compile_schema(definition)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "definition",
    [
        {"$ref": "http://127.0.0.1:9/never"},
        {"$ref": "file:///etc/passwd"},
        {"$id": "http://127.0.0.1:9/here", "$ref": "there"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/never#/x"}}},
        {"$schema": "http://127.0.0.1:9/meta"},
    ],
)
def test_nothing_is_fetched(definition):
    """Who refers to something elsewhere is notified so at once; nobody is dialled."""
    program = (
        "import sys, socket\n"
        "sys.addaudithook(lambda name, args: name.startswith('socket.') and sys.exit('dialled'))\n"
        "from fsm.sync.value.json import NoSchemaError, compile_schema\n"
        f"try: compile_schema({definition!r})\n"
        "except NoSchemaError: print('refused')\n"
    )
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")


@pytest.mark.parametrize(
    "definition",
    [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"$dynamicRef": "#a", "$dynamicAnchor": "a"}],
)
def test_a_schema_that_leads_back_to_itself_ends(definition):
    compile_schema(definition).flaw({"a": [1]})


def test_a_pattern_that_would_take_for_ever_is_given_up():
    flaw = compile_schema({"pattern": "^(a|aa)+\\1$"}).flaw("a" * 60 + "b")
    assert flaw is None or "regex" in flaw.why or "match" in flaw.why


SCHEMAS = st.sampled_from(
    [
        {"type": ["object", "array", "null"]},
        {"minimum": 1},
        {"enum": [1, "a", None, [], {}, True]},
        {"additionalProperties": {"type": "integer"}},
        {"items": {"type": "string"}, "minItems": 1},
        {"uniqueItems": True},
        {"$defs": {"n": {"const": 1}}, "items": {"$ref": "#/$defs/n"}},
        {"not": {"required": ["a"]}},
    ]
)


@given(SCHEMAS, VALUES)
def test_our_validator_agrees_with_another_one(definition, value):
    said = jsonschema.Draft202012Validator(definition).is_valid(value)
    assert (compile_schema(definition).flaw(value) is None) is said


def test_nothing_is_imported_before_a_schema_is_used():
    program = (
        "import sys, actors\n"
        "from actors import open_runtime\n"
        "import actors.runtime.objects.reported_object\n"
        "print('jsonschema_rs' in sys.modules)\n"
    )
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "False\n", done.stderr
