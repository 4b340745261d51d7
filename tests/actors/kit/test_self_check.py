"""A process that judges itself: what it reports, and that it needs no trace."""

import pytest

from actors.hyperties import Caller, Echo
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from tests.support.log import text_log
from transports.memory import MemoryNetwork


@pytest.fixture(autouse=True)
def log():
    with text_log() as stream:
        yield stream


async def ask_many(requests=20):
    """Counters of a runtime without a trace, after requests within it."""
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain="a.ex"), network, NULL_TRACER) as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, monitor=True)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            caller = Caller()
            await runtime.deploy("caller", lambda: caller)
            echo = await runtime.deploy("echo", Echo)
            for _ in range(requests):
                await caller.request(echo)
            return dict(runtime.counters.broken_claims)


async def test_a_runtime_that_judges_itself_breaks_nothing(autojump_clock):
    assert await ask_many() == {}


async def test_a_node_that_judges_itself_breaks_nothing(autojump_clock):
    network = MemoryNetwork()
    config = NodeConfig(domain="a.ex", monitor=True)
    async with open_node(config, network, NULL_TRACER) as node:
        runtime = RuntimeConfig(domain="a.ex", name="ra", node=node.url, monitor=True)
        async with open_runtime(runtime, network, NULL_TRACER) as running:
            await running.deploy("echo", Echo)
        assert node.counters.broken_claims == {}
