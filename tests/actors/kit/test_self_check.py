"""A process that judges itself: what it reports, and that it needs no trace."""

import pytest

from actors.hyperties import Caller, Echo
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.bus.open_requests import OpenRequests
from actors.runtime.config import RuntimeConfig
from specs.trace import Op
from tests.support.log import text_log
from transports.memory import MemoryNetwork


@pytest.fixture(autouse=True)
def log():
    with text_log() as stream:
        yield stream


async def asked(monitor, requests=20):
    """Counters of a runtime without a trace, after requests within it."""
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain="a.ex"), network, NULL_TRACER) as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, monitor=monitor)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            caller = Caller()
            await runtime.deploy("caller", lambda: caller)
            echo = await runtime.deploy("echo", Echo)
            for _ in range(requests):
                await caller.request(echo)
            return dict(runtime.counters.broken_claims)


@pytest.mark.parametrize(("monitor", "broken"), [(True, {"I-T2"}), (False, set())])
async def test_a_bus_that_answers_twice_is_found_without_a_trace(
    monitor, broken, monkeypatch, autojump_clock
):
    def give_twice(self, response, waiter):
        give(self, response, waiter)
        self._hops.say(Op.CALLBACK, response)

    give = OpenRequests.give_answer
    monkeypatch.setattr(OpenRequests, "give_answer", give_twice)

    assert set(await asked(monitor)) == broken


async def test_a_node_that_judges_itself_breaks_nothing(autojump_clock):
    network = MemoryNetwork()
    config = NodeConfig(domain="a.ex", monitor=True)
    async with open_node(config, network, NULL_TRACER) as node:
        runtime = RuntimeConfig(domain="a.ex", name="ra", node=node.url, monitor=True)
        async with open_runtime(runtime, network, NULL_TRACER) as running:
            await running.deploy("echo", Echo)
        assert node.counters.broken_claims == {}
