"""Whole runtimes at several nodes of one domain: requests, records, data objects."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest

import actors
from fsm.registry.node_rights import Observation
from tests.support.node.group_world import TimedTracer, broken, open_group
from tests.support.node.node_peer import DOMAIN
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
