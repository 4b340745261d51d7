"""Nodes that share an engine over NATS, on real sockets and with a real server."""

import itertools
from functools import partial

import pytest
import trio

import actors
from actors.hyperties import Caller, Echo
from tests.support.nats_server import run_server
from tests.support.node.policing import one_policy, policed, rule
from tests.support.node.web import get
from transports.engine.contract import EngineDownError
from transports.engine.nats import open_engine
from transports.nats.connection import ServerUrl, Terms

DOMAIN = "a.example"


@pytest.fixture
def server():
    with run_server() as server:
        yield server


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_node_is_not_ready_while_the_store_of_nats_is_full_and_recovers_by_itself(tmp_path):
    """JetStream counts what it may store, and refuses every write beyond."""
    config = tmp_path / "nats.conf"
    written = f'jetstream {{ store_dir: "{tmp_path}/js", max_file_store: %d }}'
    config.write_text(written % 200_000)
    with run_server("-c", str(config), has_stream=False) as server:
        opened = partial(open_engine, Terms((ServerUrl.read(server.url),)), DOMAIN)
        http = actors.HttpConfig("127.0.0.1:0")
        node = actors.NodeConfig(domain=DOMAIN, engine=opened, http=http)
        async with actors.open_node(node) as one, opened() as engine:

            async def until(is_ready):
                """Ask until the node is ready or not; return what it lacks then."""
                with trio.fail_after(60):
                    while True:
                        page = (await get(f"{one.http_url}/readyz")).json
                        if page["ready"] is is_ready:
                            return page["missing"]

            while not engine.health.is_up:
                await engine.health_changed()
            with pytest.raises(EngineDownError):
                await fill(engine)
            (lacking,) = await until(is_ready=False)
            assert lacking["part"] == "engine"
            assert "JetStream refuses a write" in lacking["why"]
            server.kill()
            config.write_text(written % 20_000_000)
            server.start()
            await until(is_ready=True)


async def fill(engine):
    """Write rows until there is no room."""
    for number in itertools.count():
        await engine.put(f"junk/{number}", bytes(50_000))


@pytest.mark.timeout(240)
async def test_policies_that_fill_a_row_reach_the_other_node_over_nats(server, tmp_path):
    """POL-03: a change at one node is judged by at both."""
    terms = Terms((ServerUrl.read(server.url),))
    engine = partial(open_engine, terms, DOMAIN)
    config = actors.NodeConfig(domain=DOMAIN, engine=engine, **policed(tmp_path, one_policy()))
    texts = [f'effect = "deny"\nreason = "{"x" * 2000}"' for _ in range(100)]
    rules = [rule(str(number), text) for number, text in enumerate(texts)]
    async with (
        actors.open_node(config) as one,
        actors.open_node(config) as two,
        actors.open_runtime(DOMAIN, "ra", node=one.url) as ra,
        actors.open_runtime(DOMAIN, "rb", node=two.url) as rb,
    ):
        echo, caller = await ra.deploy(Echo), await rb.deploy(Caller)
        assert (await caller.request(echo.url, 1)).value == 1
        (tmp_path / "0.toml").write_text(one_policy(*rules))
        assert await one.reload_policies() == ""
        with trio.fail_after(60):
            while (await caller.request(echo.url, 1)).code != 403:
                pass
