"""A node that was stopped for a moment finds what was registered at another node meanwhile."""

import signal
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.hyperties import Caller, Echo
from tests.support.nats_server import needs_server, run_server
from tests.support.node.node_processes import open_nodes
from tests.support.runtime.apart import Thermometer

pytestmark = [pytest.mark.long, pytest.mark.timeout(240), needs_server]

TIMES = 5


@asynccontextmanager
async def stopped(node):
    """Let a node do nothing; what its runtimes send meanwhile waits for it."""
    node.process.send_signal(signal.SIGSTOP)
    try:
        yield
        await wait_all_tasks_blocked(0.05)
    finally:
        node.process.send_signal(signal.SIGCONT)


async def test_what_was_registered_meanwhile_is_found(tmp_path):
    with run_server() as server:
        async with (
            open_nodes(tmp_path, server, 2) as world,
            world.runtime("r0", 0) as first,
            world.runtime("r1", 1) as second,
        ):
            asker, caller = await first.deploy(Caller), await second.deploy(Caller)
            codes, copies = [], []

            async def ask(url):
                codes.append((await caller.request(url, 1)).code)

            async def keep(url):
                codes.append((await caller.request(url, 1, durable=True)).code)

            async def observe(url):
                async with caller.observe(url) as copy:
                    copies.append(copy.value["celsius"])

            for _ in range(TIMES):
                async with trio.open_nursery() as nursery, stopped(world.nodes[1]):
                    echo = await first.deploy(Echo)
                    nursery.start_soon(ask, echo.url)
                    nursery.start_soon(keep, echo.url)
                    thermometer = await first.deploy(Thermometer)
                    url = (await asker.request(thermometer.url)).value
                    nursery.start_soon(observe, url)
            assert sorted(codes) == [200] * TIMES + [202] * TIMES
            assert copies == [21] * TIMES
