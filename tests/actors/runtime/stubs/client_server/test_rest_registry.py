"""A domain that is a registry behind REST, and has no message node (PFY-05, PFY-13, M-21..M-28)."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs

from actors.kit.trace import NULL_TRACER
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Profile
from specs.message import MessageType
from tests.actors.node.connectors.rest_registry import RestRegistryFake
from tests.support.node.http_server import open_http_server
from tests.support.runtime.domain import Echo
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
