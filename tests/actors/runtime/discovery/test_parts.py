"""The parts of a runtime that its own components read (ADR-03, M-31, M-56)."""

import time

import pytest

from actors.keys.runtime_key import make_runtime_key
from actors.node.connectors.global_registry import GlobalRecords
from actors.node.connectors.service import Replied
from actors.runtime.stubs.credentials import GivenToken
from specs.addresses.address import domain_registry
from specs.message import MessageType
from specs.reply_code import Code
from tests.support.runtime.domain import DOMAIN, Echo, open_domain

PARTS = ("discovery", "idm", "subscriptions", "graph-connector")


def part(member, name):
    return f"{member.runtime.url}/{name}"


async def read(member, name, **body):
    return await member.hyperty.ask(part(member, name), MessageType.READ, body)


@pytest.mark.parametrize("name", PARTS)
async def test_a_part_is_read_by_its_own_runtime_only(name, autojump_clock):
    """ADR-03."""
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        body = {"resource": "/hyperty/name/alice"}
        foreign = await bob.hyperty.ask(part(alice, name), MessageType.READ, body)
        assert foreign.code == Code.FORBIDDEN
        for kind in (MessageType.CREATE, MessageType.EXECUTE, MessageType.SUBSCRIBE):
            assert (await alice.hyperty.ask(part(alice, name), kind, {})).code == Code.MALFORMED
        if name not in {"idm", "subscriptions"}:
            assert (await read(alice, name)).code == Code.MALFORMED


async def test_the_discovery_of_a_runtime_searches_a_domain(autojump_clock):
    """M-31."""
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        urls = [await bob.runtime.deploy("many", Echo) for _ in range(3)]
        first = await read(alice, "discovery", resource="/hyperty/name/many", limit=2)
        rest = {"resource": "/hyperty/name/many", "after": first.body["next"]}
        second = await read(alice, "discovery", **rest)
        values = [*first.body["value"], *second.body["value"]]
        assert [one["url"] for one in values] == urls[::-1]
        assert "next" not in second.body
        none = {"resource": "/hyperty/name/many", "criteria": {"resources": ["x"]}}
        assert (await read(alice, "discovery", **none)).code == Code.NOT_FOUND
        one = await read(alice, "discovery", resource=f"/hyperty/url/{urls[0]}")
        assert one.body["value"]["name"] == "many"


@pytest.mark.parametrize(
    ("domain", "code"), [("nowhere.example", 503), (7, 400), ("a b", 400), (DOMAIN, 200)]
)
async def test_the_criterion_domain_names_the_registry(domain, code, autojump_clock):
    async with open_domain("alice") as place:
        sought = {"resource": "/hyperty/name/alice", "criteria": {"domain": domain}}
        assert (await read(place["alice"], "discovery", **sought)).code == code


async def test_subscriptions_are_those_of_the_runtime(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        nothing = {"reported": [], "observed": [], "followed": [], "total": 0}
        assert (await read(alice, "subscriptions")).body["value"] == nothing
        async with (
            alice.hyperty.report("comm", {}, public=True) as mine,
            bob.hyperty.report("comm", {}, public=True) as other,
            alice.hyperty.observe(other.url),
            alice.hyperty.watch(name="bob") as watching,
        ):
            await anext(watching)
            assert (await read(alice, "subscriptions")).body["value"] == {
                "reported": [mine.url],
                "observed": [other.url],
                "followed": [bob.address],
                "total": 3,
            }
