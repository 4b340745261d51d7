"""Nodes that share an engine over NATS, on real sockets and with a real server."""

from functools import partial

import pytest
import trio

import actors
from actors.hyperties import Caller, Echo
from tests.support.nats_server import run_server
from transports.engine.nats import open_engine
from transports.nats.connection import ServerUrl, Terms

DOMAIN = "a.example"


@pytest.fixture
def server():
    with run_server() as server:
        yield server


@pytest.mark.timeout(120)
async def test_runtimes_at_two_nodes_talk_over_nats(server):
    terms = Terms((ServerUrl.read(server.url),))
    config = actors.NodeConfig(domain=DOMAIN, engine=partial(open_engine, terms, DOMAIN))
    async with (
        actors.open_node(config) as one,
        actors.open_node(config) as two,
        actors.open_runtime(DOMAIN, "ra", node=one.url) as ra,
        actors.open_runtime(DOMAIN, "rb", node=two.url) as rb,
    ):
        echo = await rb.deploy(Echo, "far")
        caller = await ra.deploy(Caller)
        (found,) = await caller.discover(name="far")
        assert found.url == echo.url
        with trio.fail_after(60):
            for number in range(50):
                assert (await caller.request(echo.url, number)).value == number
