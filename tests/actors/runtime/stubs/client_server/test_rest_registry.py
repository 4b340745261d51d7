"""A domain that is a registry behind REST, and has no message node (PFY-05, PFY-13, M-21..M-28)."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest

from actors.kit.trace import NULL_TRACER
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Profile
from actors.runtime.registry.registrations import RegistrationError
from specs.message import MessageType
from tests.actors.node.connectors.rest_registry import (
    RestRegistryFake,
    hanging_up,
    talking_garbage,
)
from tests.support.node.http_server import Said, open_http_server
from tests.support.runtime.domain import Echo
from transports.link import Kind
from transports.system import open_system_network

DOMAIN = "a.example"
BOB = "user://a.example/bob"
REGISTRY = f"domain://registry.{DOMAIN}"
ECHO = Profile(
    name="echo",
    descriptor=f"hyperty-catalogue://catalogue.{DOMAIN}/.well-known/hyperty/Echo",
    resources=("chat",),
    data_schemes=("comm",),
)


@attrs.frozen
class World:
    fake: RestRegistryFake
    runtimes: tuple


@asynccontextmanager
async def open_world(*names, kinds=()):
    fake = RestRegistryFake()
    async with AsyncExitStack() as stack:
        server = fake.server = await stack.enter_async_context(open_http_server(fake))
        network = await stack.enter_async_context(open_system_network())
        runtimes = []
        for name in names:
            config = RuntimeConfig(
                domain=DOMAIN, name=name, registry=server.url, user=BOB, kinds=kinds
            )
            runtimes.append(
                await stack.enter_async_context(open_runtime(config, network, NULL_TRACER))
            )
        yield World(fake, tuple(runtimes))


async def deployed(runtime):
    return await runtime.deploy(ECHO, Echo)


async def touch(runtime, url, value):
    body = {"resource": url, "attribute": "status", "value": value}
    return await runtime.order("registry", MessageType.UPDATE, REGISTRY, body)


async def test_a_hyperty_is_registered_found_and_unregistered_without_a_node():
    async with open_world("one", "other") as world:
        one, other = world.runtimes
        await one.enter()
        url = await deployed(one)
        (found,) = [each async for each in other.discoverer.discover(user=BOB)]
        assert (found.url, found.runtime) == (url, one.url)
        read = await other.order("registry", MessageType.READ, REGISTRY, {"resource": url})
        assert (read.code, read.body["value"]["resources"]) == (200, ["chat"])
        await one.undeploy(url)
        assert world.fake.hyperties[url]["status"] == "disconnected"


async def test_a_runtime_that_leaves_takes_its_records_along():
    async with open_world("one") as world:
        url = await deployed(world.runtimes[0])
    assert world.fake.hyperties[url]["status"] == "disconnected"


async def test_only_the_runtime_that_a_record_names_may_change_it():
    async with open_world("one", "other") as world:
        one, other = world.runtimes
        url = await deployed(one)
        assert (await touch(other, url, "disconnected")).code == 403
        assert (await touch(one, "hyperty://a.example/nobody", "live")).code == 404
        assert world.fake.hyperties[url]["status"] == "live"


async def test_messages_that_only_a_node_could_carry_get_404_with_the_reason():
    async with open_world("one", "other", kinds=(Kind.TCP,)) as world:
        one, other = world.runtimes
        url = await deployed(one)
        hyperty = Echo()
        await other.deploy(ECHO, lambda: hyperty)
        answer = await hyperty.request(url, 1)
        assert answer.code == 404
        assert "a.example has no message node" in answer.body["description"]
        assert other.handler is None


@pytest.mark.parametrize(
    ("mood", "code"),
    [
        (hanging_up, 502),
        (talking_garbage, 502),
        (lambda _: Said(409, {"message": "taken"}), 409),
        (lambda _: Said(503), 503),
        (lambda _: Said(500), 502),
    ],
    ids=["hanging up", "garbage", "conflict", "unavailable", "broken"],
)
async def test_what_the_server_says_is_answered_in_the_terms_of_the_protocol(mood, code):
    async with open_world("one") as world:
        world.fake.mood = lambda call: mood(call) if call.method == "GET" else None
        answer = await world.runtimes[0].order(
            "registry", MessageType.READ, REGISTRY, {"resource": BOB}
        )
        assert answer.code == code
        world.fake.mood = None
        await deployed(world.runtimes[0])


async def test_a_domain_without_a_registry_that_answers_registers_nothing_until_it_does():
    async with open_world("one") as world:
        world.fake.mood = hanging_up
        with pytest.raises(RegistrationError, match="502"):
            await deployed(world.runtimes[0])
        world.fake.mood = None
        await deployed(world.runtimes[0])
