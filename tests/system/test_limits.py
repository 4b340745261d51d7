"""A program meets no limit that it cannot see: it waits, and a refusal says why (RELIABILITY L5).

A node process and real sockets. One runtime asks, another one answers.
"""

from collections import Counter
from contextlib import asynccontextmanager

import pytest
import trio

import actors
from actors.runtime.config import RuntimeConfig
from tests.support.node.node_peer import DOMAIN, Peer
from tests.support.node.node_process import node_process
from transports.link import Kind
from transports.system import open_system_network

pytestmark = pytest.mark.timeout(300)

LOW = ("--message-rate", "50")
"""So that a few requests take seconds, and none of them takes the time that a request has.

Also a busy machine is faster than that.
"""


class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body.get("value")


def started(tmp_path, *options):
    own = ("--domain", DOMAIN, "--listen", "127.0.0.1:0", "--allow-legacy")
    return node_process(tmp_path / "node.log", *own, *options)


@asynccontextmanager
async def asking(node):
    """Yield a hyperty, its runtime, and the address of an echo in another runtime."""
    configs = [RuntimeConfig(domain=DOMAIN, name=name, node=node.ready["url"]) for name in "ab"]
    async with actors.open_runtime(configs[0]) as here, actors.open_runtime(configs[1]) as there:
        echo = await there.deploy(Echo)
        yield await here.deploy(Echo), here, echo.url


async def asked_at_once(caller, to, count):
    """Return how many requests got each answer."""
    got = Counter()

    async def ask(number):
        answer = await caller.request(to, number)
        got[answer.code, answer.body.get("value") == number] += 1

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(ask, number)
    return got


@pytest.mark.parametrize("count", [2000, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_all_requests_at_once_are_answered(count, tmp_path):
    with started(tmp_path) as node:
        async with asking(node) as (caller, here, echo):
            assert await asked_at_once(caller, echo, count) == {(200, True): count}
            assert here.drops().total == 0
        assert node.complaints == []


async def test_requests_one_after_the_other_are_answered(tmp_path):
    with started(tmp_path) as node:
        async with asking(node) as (caller, here, echo):
            got = [(await caller.request(echo, number)).code for number in range(1000)]
            assert (set(got), here.drops().total) == ({200}, 0)
        assert node.complaints == []


async def test_a_program_above_the_rate_waits_and_its_log_says_so_once(tmp_path, caplog):
    """The runtime keeps to the rate by itself, so the node has nothing to log."""
    with started(tmp_path, *LOW) as node:
        async with asking(node) as (caller, _, echo):
            assert await asked_at_once(caller, echo, 225) == {(200, True): 225}
        assert "above the rate" not in node.log.read_text()
    warnings = [one.fields for one in caplog.records if "more come than" in one.getMessage()]
    assert [(one["limit"], one["value"]) for one in warnings][:1] == [("message-rate", 50.0)]
    assert len(warnings) <= 2  # one of each runtime


async def test_a_peer_that_ignores_the_rate_is_read_late_and_others_are_not(tmp_path):
    """L5: its messages are not lost, and the log of the node names the limit."""
    with started(tmp_path, *LOW) as node:
        async with asking(node) as (caller, _, echo), open_system_network() as network:
            link = await network.dial(Kind.WEBSOCKET, node.ready["url"])
            flooder = await Peer(link, f"hyperty-runtime://{DOMAIN}/flooder").open()
            (own,) = await flooder.allocate()
            codes = Counter()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(flood, flooder, own, 225)
                assert (await caller.request(echo, 1)).code == 200
                while codes.total() < 225:
                    codes[(await flooder.hear()).code] += 1
            assert codes == {404: 225}
        (line,) = [text for text in node.log.read_text().splitlines() if "read late" in text]
        assert "limit=message-rate value=50.0" in line


async def flood(peer, from_, count):
    for _ in range(count):
        await peer.post("create", from_, f"hyperty://{DOMAIN}/nobody", value=1)
