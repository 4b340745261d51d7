"""A refusal that lasts never says "try again", and has a code that lasts; others are a 503."""

import pytest

import actors
from specs.limits import protocol as limits

LASTING = {400, 403, 404, 413}


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


@pytest.mark.parametrize(
    ("to", "value"),
    [
        ("no address", 1),
        ("hyperty://a.example/nobody", 1),
        ("hyperty://a.example/nobody", "x" * (limits.MAX_JSON_TEXT + 1)),
        ("hyperty://a.example/nobody", ["x" * limits.MAX_JSON_TEXT] * 4),
    ],
)
async def test_a_request_that_can_never_be_granted_has_a_code_that_lasts(to, value, caller):
    answer = await caller.request(to, value)
    assert answer.code in LASTING
    assert "retryAfter" not in answer.body
    assert "again" not in answer.body["description"]
