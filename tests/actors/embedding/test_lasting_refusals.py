"""A refusal that lasts never says "try again", and has a code that lasts; others are a 503."""

import pytest

import actors


class Caller(actors.Hyperty):
    """Asks only."""


@pytest.fixture
async def caller():
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "ra", node=node.url) as runtime,
    ):
        yield await runtime.deploy(Caller)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("colour", "no addresses of scheme 'colour' are allocated here"),
        ("hyperty-catalogue://c.a.example/.well-known/dataschema/Colour", "scheme 'colour'"),
        ("hyperty", "no data object has an address of the scheme hyperty"),
    ],
)
async def test_an_object_of_a_scheme_that_the_node_does_not_know_is_malformed(schema, why, caller):
    with pytest.raises(actors.ObjectError, match=why) as caught:
        await caller.report(schema, {}).__aenter__()
    assert caught.value.code == 400
    assert "try again" not in str(caught.value)
