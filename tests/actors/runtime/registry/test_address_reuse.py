"""Hyperties that have an earlier address again, with a real node in memory (ALC-02, SC-10)."""

from contextlib import asynccontextmanager

import pytest
import trio

from actors.hyperties import Echo
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Profile
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

CATALOGUE = "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty"
ECHO = Profile("echo", descriptor=f"{CATALOGUE}/Echo")


def config(name, url):
    return RuntimeConfig(domain="a.ex", name=name, node=url)


@asynccontextmanager
async def open_one():
    network, tracer = MemoryNetwork(), MemoryTracer()
    async with (
        open_node(NodeConfig(domain="a.ex"), network, tracer) as node,
        open_runtime(config("ra", node.url), network, MemoryTracer()) as runtime,
    ):
        yield network, node, runtime, tracer


@pytest.mark.parametrize("checkpoints", range(0, 30, 3))
async def test_a_cancelled_deployment_leaves_a_kept_address_kept(checkpoints, autojump_clock):
    async with open_one() as (_, _, runtime, _):
        first = await runtime.deploy(ECHO, Echo)
        await runtime.rest(first)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.deploy, ECHO, Echo)
            for _ in range(checkpoints):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await runtime.rest(first)
        assert await runtime.deploy(ECHO, Echo) == first
