"""The generated JSON Schemas: up to date, true of the golden messages, as strict as the classes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import specs
from specs.dialects.normalise import normalise
from specs.json_schema import DIALECT, URN, name_of, schema_files, schemas
from specs.message import MessageType
from tests.specs.golden_kinds import IN_CATALOGUE, MALFORMED, STEPS, class_of, named, place
from tests.support.bodies import ADDRESSES, ALICE, NO_ADDRESSES
from tests.support.cases import for_each
from tests.support.chance import examples

FOLDER = Path(specs.__file__).parent / "schemas"
SCHEMAS = schemas()
ENVELOPE = Draft202012Validator(SCHEMAS["message"])


# --- files ------------------------------------------------------------------------------


def test_the_files_are_those_that_are_generated():
    """Else run `python -m specs schemas`, and remove what is no more."""
    assert {path.name: path.read_text() for path in FOLDER.glob("*.json")} == schema_files()


@for_each(SCHEMAS)
def test_a_schema_is_one_and_has_a_name_that_needs_no_host(name):
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert (schema["$schema"], schema["$id"]) == (DIALECT, URN + name)
    assert "additionalProperties" not in json.dumps(schema)


@for_each(SCHEMAS)
def test_a_schema_is_described_without_citations(name):
    described = SCHEMAS[name]["description"]
    assert described.endswith(".")
    assert not any(character.isdigit() for character in described.replace("P2P", ""))


def test_a_field_is_described_where_its_name_does_not_say_all():
    fields = SCHEMAS["change"]["properties"]
    assert fields["version"]["description"] == "Version of the object after the change."
    assert fields["attribute"]["description"].startswith("Dotted path; absent: ")
    assert "description" not in fields["lastModified"]
    (candidate,) = [SCHEMAS["connection-data"]["$defs"]["Candidate"]["properties"]]
    assert candidate["host"]["description"].endswith("is dialled only there.")


def test_no_description_cites_what_a_reader_does_not_have():
    reported = re.findall(r'"description": "([^"]*)"', json.dumps(SCHEMAS))
    assert [one for one in reported if re.search(r"\b[A-Z][A-Z0-9]*-[A-Z]?\d|MEASURED", one)] == []


@pytest.mark.parametrize("where", ["missing/parent", "file"])
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, where):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" if where == "file" else tmp_path / "file" / where
    command = [sys.executable, "-m", "specs", "schemas", "-o", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"protofly: {folder} cannot be written: ")
    assert ended.stderr.count("\n") == 1


# --- golden messages --------------------------------------------------------------------


@for_each(STEPS, named)
def test_a_golden_message_has_the_envelope(step):
    ENVELOPE.validate(step["msg"])


@for_each(IN_CATALOGUE, named)
def test_a_golden_body_has_the_schema_of_its_class(step):
    schema = SCHEMAS[name_of(class_of(step, normalise(step["msg"])))]
    is_valid = Draft202012Validator(schema).is_valid(step["msg"].get("body", {}))
    assert is_valid == (place(step) not in MALFORMED)


# --- the envelope -----------------------------------------------------------------------

envelopes = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from([1, 7, 2.0, 2**53 - 1]) | st.sampled_from([0, -1, 2**53, 1.5, True]),
        "type": st.sampled_from([*map(str, MessageType), "dance", 5]),
        "from": ADDRESSES | NO_ADDRESSES,
        "to": ADDRESSES | NO_ADDRESSES | st.just([ALICE]),
        "body": st.sampled_from([{}, {"code": 200}, {"code": 7}, {"x": 1}, [], None]),
    },
)


@settings(max_examples=examples(80))
@given(raw=envelopes)
def test_all_messages_that_the_envelope_schema_accepts_are_decoded(raw):
    """Not the other way round: the door reads spellings of old peers, too."""
    if ENVELOPE.is_valid(raw) and raw["type"] != "forward" and raw["id"] != 2.0:
        assert normalise(raw).to


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, True),
        ({"more": 1}, True),
        ({"body": {}}, True),
        ({"type": "create"}, False),
        ({"type": "create", "body": {}}, True),
        ({"type": "response", "body": {}}, False),
        ({"type": "response", "body": {"code": 200}}, True),
        ({"type": "response", "body": {"code": 99}}, False),
        ({"body": {"code": 200}}, False),
        ({"id": "1"}, False),
        ({"id": 0}, False),
        ({"to": [ALICE]}, False),
        ({"from": "nobody"}, False),
        ({"body": None}, False),
    ],
)
def test_the_envelope(changes, verdict):
    message = {"id": 1, "type": "read", "from": ALICE, "to": ALICE, **changes}
    assert ENVELOPE.is_valid(message) is verdict
