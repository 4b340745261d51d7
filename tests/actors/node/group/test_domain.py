"""Whole runtimes at several nodes of one domain: requests, records, data objects."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.hyperties import Caller, Echo
from fsm.registry.node_rights import Observation
from specs.limits.group import GROUP_LEASE
from tests.support.node.group_world import TimedTracer, broken, open_group
from tests.support.node.node_peer import DOMAIN
from tests.support.runtime.apart import Thermometer
from transports.link import Network


@attrs.define
class Balancer(Network):
    """Dials the node that is chosen for a runtime, whatever URL the runtime knows."""

    network: Network
    url: str

    async def dial(self, kind, address, *more):
        return await self.network.dial(kind, self.url, *more)

    def listen(self, *about):
        return self.network.listen(*about)


@attrs.define
class Place:
    """A runtime, and how it gets to its node."""

    runtime: actors.Runtime
    balancer: Balancer

    def go(self, member) -> None:
        """Have it connect to another node, now."""
        self.balancer.url = member.node.url


@asynccontextmanager
async def runtimes(world, count: int = 2, user: str | None = None):
    """Open runtimes, one at each node in turn."""
    tracers = []
    async with AsyncExitStack() as stack:
        places = []
        for number in range(count):
            node = world.nodes[number % len(world.nodes)].node
            balancer, tracer = Balancer(world.network, node.url), TimedTracer(f"r{number}")
            tracers.append(tracer)
            config = actors.RuntimeConfig(
                domain=DOMAIN, name=f"r{number}", node=node.url, user=user
            )
            opened = actors.open_runtime(config, network=balancer, trace=tracer)
            places.append(Place(await stack.enter_async_context(opened), balancer))
        yield places
    for tracer in tracers:
        assert not broken(tracer)


@pytest.fixture
async def group(autojump_clock):
    async with open_group(3, observation=Observation.OWNER) as world:
        yield world


async def test_a_runtime_whose_node_dies_goes_on_at_another(group, autojump_clock):
    """MN-22: its addresses and its observers stay, and it observes as before."""
    one, two, three = group.nodes
    async with runtimes(group, 3) as (first, second, third):
        thermometer = await first.runtime.deploy(Thermometer)
        echo = await second.runtime.deploy(Echo)
        caller = await third.runtime.deploy(Caller)
        url = (await caller.request(thermometer.url)).body["value"]
        async with caller.observe(url) as copy:
            for dead, place, to in ((one, first, two), (three, third, two)):
                place.go(to)
                await group.kill(dead)
                await group.has(to, place.runtime.url, "open")
                await trio.sleep(GROUP_LEASE + 1)
                celsius = copy.value["celsius"] + 1
                assert (await caller.request(thermometer.url)).code == 200
                assert (await caller.request(echo.url, 1)).body["value"] == 1
                with trio.fail_after(60):
                    await copy.wait_for(lambda value, now=celsius: value["celsius"] == now)
