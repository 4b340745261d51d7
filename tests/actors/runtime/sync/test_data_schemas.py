"""Which schema a value must obey: given, of the catalogue, or shipped (CAT-05, ADR-09, M-32)."""

from contextlib import asynccontextmanager

import pytest

import actors
from actors.catalogue.client import CatalogueAccess
from actors.catalogue.publishing import signed_draft
from specs.addresses.address import CatalogueType, Entry
from tests.support.catalogues import Publishing, Wall
from transports.memory import MemoryNetwork

A = "a.ex"
COMMUNICATION = Entry(A, CatalogueType.SCHEMA, "Communication")
SCHEMA = {"type": "object", "required": ["title"]}


@pytest.fixture
def publishing():
    return Publishing(domain=A)


def describe(publishing, entry=COMMUNICATION, schema=None, **more):
    draft = publishing.draft(schema=schema or SCHEMA, scheme="comm", **more)
    publishing.files[entry.path] = signed_draft(entry, draft, publishing.key).encode()


@asynccontextmanager
async def reporter(publishing=None):
    access = None
    if publishing is not None:
        offset = Wall(publishing).offset
        access = CatalogueAccess(publishing.places, publishing.trust(), clock_offset=offset)
    network = MemoryNetwork()
    async with actors.open_node(A, network=network) as node:
        config = actors.RuntimeConfig(domain=A, name="ra", node=node.url, catalogues=access)
        async with (
            actors.open_runtime(config, network=network) as runtime,
            await runtime.deploy(actors.Hyperty, "reporter") as hyperty,
        ):
            yield hyperty


async def refused(hyperty, schema, value, error=actors.SchemaError, **more):
    with pytest.raises(error) as caught:
        async with hyperty.report(schema, value, **more):
            pytest.fail("it was reported")
    return caught.value


async def test_the_schema_of_the_catalogue_is_obeyed(publishing, autojump_clock):
    """CAT-05."""
    describe(publishing)
    async with reporter(publishing) as hyperty:
        error = await refused(hyperty, "comm", {})
        assert (error.path, error.why) == ("", '"title" is a required property')
        async with hyperty.report("comm", {"title": "x"}) as thing:
            with pytest.raises(actors.SchemaError):
                del thing.data.title
            assert thing.value == {"title": "x"}


async def test_schemas_missing_in_the_catalogue_are_shipped(publishing, autojump_clock):
    async with reporter(publishing) as hyperty:
        error = await refused(hyperty, "comm", {"communicationStatus": "ended"})
        assert error.path == "communicationStatus"


async def test_a_catalogue_that_is_away_is_no_empty_one(publishing, autojump_clock):
    publishing.is_away = True
    async with reporter(publishing) as hyperty:
        error = await refused(hyperty, "comm", {}, actors.ObjectError)
        assert error.code == 504


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ({"type": 5}, "the definition is no JSON Schema: type: "),
        ({"$ref": "https://b.ex/schema"}, "the definition is no JSON Schema: "),
        ([], "the definition is no JSON object"),
        ({"const": {1, 2}}, "const: a value of type set is no JSON"),
    ],
)
async def test_a_definition_that_is_none_is_one_sentence(autojump_clock, definition, why):
    async with reporter() as hyperty:
        error = await refused(hyperty, "comm", {}, definition=definition)
        assert str(error).startswith(why)
        assert "\n" not in str(error)
