"""Which schema a value must obey: given, of the catalogue, or shipped (CAT-05, ADR-09, M-32)."""

from contextlib import asynccontextmanager

import pytest

import actors
from actors.catalogue.client import CatalogueAccess
from actors.catalogue.publishing import signed_draft
from actors.runtime.sync.schemas import find_schema
from fsm.sync.value.json import compile_schema
from specs.addresses.address import CatalogueType, Entry
from specs.descriptor import Revoked
from tests.support.catalogues import Publishing, Wall
from transports.memory import MemoryNetwork

A = "a.ex"
HERE = f"hyperty-catalogue://catalogue.{A}/.well-known/dataschema"
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


async def test_a_definition_that_is_given_comes_before_it(publishing, autojump_clock):
    describe(publishing)
    async with (
        reporter(publishing) as hyperty,
        hyperty.report("comm", {}, definition={"type": "object"}) as thing,
    ):
        thing.data.title = 5
        assert await thing.flush() == 2


async def test_schemas_missing_in_the_catalogue_are_shipped(publishing, autojump_clock):
    async with reporter(publishing) as hyperty:
        error = await refused(hyperty, "comm", {"communicationStatus": "ended"})
        assert error.path == "communicationStatus"


async def test_without_any_each_value_is_taken(autojump_clock):
    async with reporter() as hyperty:
        error = await refused(hyperty, "ctxt", {"values": 5})
        assert error.path == "values"
        async with hyperty.report("ctxt", {"anything": [None]}) as thing:
            thing.data.more = {"": 1}
            assert await thing.flush() == 2


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda it: it.files.update({COMMUNICATION.path: b"{}"}), "it is not signed"),
        (lambda it: describe(it, expires=it.now - 9), "it expired"),
        (
            lambda it: it.revokes(Revoked(cguid=COMMUNICATION.address, why="wrong")),
            "revoked by its domain: wrong",
        ),
        (
            lambda it: it.files.update(
                {COMMUNICATION.path: signed_draft(it.entry, it.profile(), it.key).encode()}
            ),
            "it describes a protocolstub and not a schema",
        ),
    ],
)
async def test_an_untrusted_schema_is_refused(publishing, autojump_clock, harm, why):
    """Not taken for a missing one: whoever could harm it could write anything."""
    describe(publishing)
    harm(publishing)
    async with reporter(publishing) as hyperty:
        error = await refused(hyperty, "comm", {"title": "x"}, actors.ObjectError)
        assert error.code == 502
        assert "the dataschema 'Communication' of a.ex" in str(error)
        assert why in str(error)


async def test_an_older_one_than_was_seen_is_refused(publishing, autojump_clock):
    describe(publishing, counter=2)
    async with reporter(publishing) as hyperty:
        await refused(hyperty, "comm", {})
        await actors_rest()
        describe(publishing, counter=1, schema={"type": "object"})
        error = await refused(hyperty, "comm", {}, actors.ObjectError)
        assert "which was seen before" in str(error)


async def actors_rest():
    """Wait until what was fetched is fetched again."""
    import trio

    from specs.limits.foreign_code import DESCRIPTOR_FRESH

    await trio.sleep(DESCRIPTOR_FRESH + 1)


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


@pytest.mark.parametrize("name", ["Communication", "Context"])
async def test_a_shipped_schema_is_valid(name):
    found = await find_schema(None, f"{HERE}/{name}")
    assert compile_schema(found).flaw({"of": "no use"}) is None
    assert await find_schema(None, f"{HERE}/Weather") is None
