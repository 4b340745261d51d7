"""Every property of upstream's JSON Schemas is in ours, or its absence has a stated reason."""

import csv
import re
from pathlib import Path

import pytest

from specs.json_schema import schemas
from tests.support.cases import for_each

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "upstream-properties.csv"
DOCUMENT = (ROOT / "docs" / "schema-differences.md").read_text()
SECTIONS = dict(
    re.findall(r"^## (\S+\.json)\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
)
UPSTREAM = [
    (row["file"], row["definition"], row["property"])
    for row in csv.DictReader(
        line for line in FIXTURE.read_text().splitlines() if not line.startswith("#")
    )
]
SCHEMAS = schemas()
ANSWERS = {name for name, schema in SCHEMAS.items() if "code" in schema["properties"]}
DESCRIPTORS = {name for name, schema in SCHEMAS.items() if "cguid" in schema["properties"]}
BODIES = set(SCHEMAS) - ANSWERS - DESCRIPTORS - {"message"}

COUNTERPARTS = {
    "Message.json": {
        "Message": {"message"},
        "ResponseMessageBody": ANSWERS,
        "FowardMessageBody": {"forward"},
        "SubscribeMessageBody": {"path", "observe", "subscription"},
        "UnsubscribeMessageBody": {"path", "observe", "subscription"},
        "DeleteMessageBody": {"free", "object-name", "child-name", "nothing"},
        "ReadMessageBody": {"read-record", "discover", "object-name", "nothing"},
        None: BODIES,
    },
    "Connection.json": {"ConnectionDescription": {"connection-data"}, None: {"connection-data"}},
    "SyncDataObject.json": {"SyncDataObject": {"create-object", "object-shown"}},
    "RegistryDataObject.json": {None: {"register", "record-found"}},
    "RegistryDataObject.HypertyInstance.json": {None: {"register", "record-found"}},
    "RegistryDataObject.HypertyDataObjectInstance.json": {None: {"register", "record-found"}},
    "RethinkCore.CatalogueDataObject.json": {None: DESCRIPTORS},
    "RethinkCore.CatalogueDataObject.HypertyDescriptor.json": {None: {"hyperty-descriptor"}},
    "RethinkCore.CatalogueDataObject.HypertyRuntimeDescriptor.json": {None: {"runtime-descriptor"}},
    "RethinkCore.CatalogueDataObject.ProtoStubDescriptor.json": {None: {"stub-descriptor"}},
    "RethinkCore.CatalogueDataObject.DataObjectSchema.json": {None: {"schema-descriptor"}},
    "RethinkCore.CatalogueDataObject.IdpProxyDescriptor.json": {None: {"idp-proxy-descriptor"}},
}
"""Which of our schemas stand where an upstream definition stood; the others have none."""

FILES = {
    "Connection.json",
    "Message.json",
    "RegistryDataObject.HypertyDataObjectInstance.json",
    "RegistryDataObject.HypertyInstance.json",
    "RegistryDataObject.HypertyRuntimeInstance.json",
    "RegistryDataObject.ProtoStubInstance.json",
    "RegistryDataObject.json",
    "RethinkCore.CatalogueDataObject.DataObjectSchema.json",
    "RethinkCore.CatalogueDataObject.HypertyDescriptor.json",
    "RethinkCore.CatalogueDataObject.HypertyRuntimeDescriptor.json",
    "RethinkCore.CatalogueDataObject.IdpProxyDescriptor.json",
    "RethinkCore.CatalogueDataObject.ProtoStubDescriptor.json",
    "RethinkCore.CatalogueDataObject.json",
    "SyncDataObject.json",
    "URL.json",
}


def ours(name):
    """Names of the properties of one of our schemas and of its parts."""
    schema = SCHEMAS[name]
    parts = [schema, *schema.get("$defs", {}).values()]
    return {key for part in parts for key in part.get("properties", {})}


def counterparts(file, definition):
    known = COUNTERPARTS.get(file, {})
    return known.get(definition, known.get(None, set()))


def named(file):
    """What the document speaks of in a file's section."""
    return set(re.findall(r"`([^`]+)`", SECTIONS[file]))


def test_every_upstream_file_has_its_section():
    assert set(SECTIONS) == FILES
    assert {file for file, _, _ in UPSTREAM} <= FILES


@for_each(UPSTREAM)
def test_an_upstream_property_is_ours_or_its_absence_is_explained(file, definition, name):
    is_ours = any(name in ours(one) for one in counterparts(file, definition))
    assert is_ours or name in named(file)


@pytest.mark.parametrize("file", sorted(FILES))
def test_the_named_parts_of_upstreams_schemas_exist(file):
    """The first column of each table names upstream's properties, or says it in words."""
    properties = {name for where, _, name in UPSTREAM if where == file}
    definitions = {definition for where, definition, _ in UPSTREAM if where == file}
    rows = re.findall(r"^\| (.+?) \|", SECTIONS[file], re.MULTILINE)
    reported = {name for row in rows for name in re.findall(r"`([^`]+)`", row.partition(":")[0])}
    assert reported <= properties | definitions | {"properties"}


def test_the_document_cites_no_ids():
    assert not re.search(r"\b(C|M|SC|I|MN|P2P|SYN|REG|MSG)-[A-Z]?\d", DOCUMENT)
