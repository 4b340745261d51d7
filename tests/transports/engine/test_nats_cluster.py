"""A cluster of three NATS servers, one of which dies at a time."""

from contextlib import AsyncExitStack

import pytest
import trio

from specs.limits.engine import LOG_UNITS
from tests.support.nats_server import needs_server, run_server
from tests.support.ports import free_port
from tests.transports.engine.engines import until_current, until_health
from tests.transports.engine.test_nats_engine import Appender, Writer
from transports.engine.contract import EngineDownError
from transports.engine.nats import open_engine
from transports.nats.connection import ServerUrl, Terms
from transports.nats.wire import NatsError
from transports.sockets import open_background

pytestmark = [
    needs_server,
    pytest.mark.long,  # a cluster takes five seconds to find another leader
]
NAMES = ("one", "two", "three")


def run_cluster(stack):
    """Run three servers, each of which is told where the others are."""
    routes = {name: f"nats://127.0.0.1:{free_port()}" for name in NAMES}
    return {
        name: stack.enter_context(
            run_server(
                "-n", name, "--cluster_name", "test", "--cluster", routes[name],
                "--routes", ",".join(routes.values()),
            )
        )
        for name in NAMES
    }  # fmt: skip


async def leader(engine, stream):
    """Return the server that leads a stream, once there is one."""
    while True:
        try:
            found = await engine.stream.state(stream)
        except NatsError:
            await trio.sleep(0.1)  # real time: it asks again
            continue
        name = found["cluster"].get("leader")
        if name:
            return name
        await trio.sleep(0.1)  # real time: it asks again


async def fetched(engine, log):
    """Return all entries of a log, once there is a server that leads their stream."""
    while True:
        try:
            return await engine.fetch(log, 0, LOG_UNITS)
        except EngineDownError:
            await trio.sleep(0.1)  # real time: it asks again


async def test_rows_and_entries_outlive_any_server():
    async with AsyncExitStack() as stack:
        servers = run_cluster(stack)
        urls = [ServerUrl.read(one.url) for one in servers.values()]
        engine, other = [
            await stack.enter_async_context(open_engine(Terms(tuple(order)), "c.example"))
            for order in (urls, urls[::-1])
        ]
        await until_health(engine, is_up=True)
        for stream in (engine.stream.rows, engine.stream.logs):
            assert (await engine.stream.state(stream))["config"]["num_replicas"] == 3
        writer, appender = Writer(engine), Appender(engine)
        async with open_background() as nursery:
            nursery.start_soon(writer.run, 0)
            nursery.start_soon(appender.run)
            for stream in (engine.stream.rows, engine.stream.logs):
                await writer.until_done(len(writer.done) + 50)
                dead = servers[await leader(engine, stream)]
                dead.kill()
                await writer.until_done(len(writer.done) + 50)
                dead.start()
        await until_health(engine, is_up=True)
        await until_health(other, is_up=True)
        async with other.watch() as rows:
            there = set(await until_current(rows))
        assert there >= set(writer.done)
        assert not there & writer.failed

        read = {(one.position, one.payload) for one in await fetched(other, "a/b")}
        assert read >= set(appender.done)
