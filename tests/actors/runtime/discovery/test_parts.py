"""The parts of a runtime that its own components read (ADR-03, M-31, M-56)."""

from functools import partial

import pytest

from actors.hyperties import Caller
from actors.kit.http_client import ServerUrl
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import HttpGlobalRecords
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from specs.addresses.address import domain_registry
from specs.message import MessageType
from specs.reply_code import Code
from tests.actors.node.connectors.quality_server import GlobalServer
from tests.actors.node.connectors.test_global_registry import token
from tests.support.node.http_server import open_http_server
from tests.support.runtime.domain import DOMAIN, open_domain
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

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


@pytest.mark.parametrize(
    ("domain", "code"), [("nowhere.example", 404), (7, 400), ("a b", 400), (DOMAIN, 200)]
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


async def test_where_nobody_logs_in_there_is_no_user_and_no_provider(autojump_clock):
    async with open_domain("alice") as domain:
        value = (await read(domain["alice"], "idm")).body["value"]
        key = domain["alice"].runtime.identity.key.thumbprint
        assert value == {
            "user": None,
            "vouchedBy": "none",
            "identityProvider": None,
            "expires": None,
            "key": key,
        }


BOB, GUID = "user://idp.ex/bob", "user-guid://g1"


async def test_global_records_are_read_by_guid_or_user():
    """CON-03, M-56, RES-17."""
    network, fake = MemoryNetwork(), GlobalServer()
    async with open_http_server(fake) as server:
        make = partial(HttpGlobalRecords, ServerUrl.read(server.url))
        serving = NodeConfig(domain=DOMAIN, back_ends=BackEnds(global_registry=make))
        async with open_node(serving, network, MemoryTracer()) as node:
            config = RuntimeConfig(domain=DOMAIN, name="ra", node=node.url, user=BOB)
            async with open_runtime(config, network, MemoryTracer()) as runtime:
                caller = Caller()
                url = await runtime.deploy("caller", lambda: caller)
                where = f"{runtime.url}/graph-connector"

                async def read(what):
                    answer = await caller.ask(where, MessageType.READ, {"resource": what})
                    return answer.code, answer.body.get("value")

                fake.records[GUID] = token()
                assert await read(GUID) == (200, token())
                assert await read("user-guid://other") == (404, None)
                assert await read(BOB) == (404, None)
                change = {"resource": url, "attribute": "guid", "value": GUID}
                registry = domain_registry(DOMAIN)
                await runtime.order("registry", MessageType.UPDATE, registry, change)
                assert await read(BOB) == (200, token())
                assert await read(url) == (400, None)
