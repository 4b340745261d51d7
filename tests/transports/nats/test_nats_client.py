"""What a client writes: in order, in few system calls, and a lease before all that waits."""

from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from transports import socket_link
from transports.engine.contract import Health, Put
from transports.engine.nats import NatsEngine
from transports.link import Kind, Upgrade
from transports.nats.client import Missing, NatsClient, Request
from transports.nats.connection import NatsConnection, ServerUrl, Terms
from transports.nats.wire import Wire
from transports.socket_link import RawLink

TERMS = Terms((ServerUrl.read("nats://127.0.0.1"),))


@asynccontextmanager
async def connected(client: NatsClient):
    """Connect a client with nothing but a socket, and yield the other end."""
    ours, theirs = map(trio.SocketStream, trio.socket.socketpair())
    link = RawLink((Kind.STREAM, "server", Upgrade()), ours)
    async with theirs, trio.open_nursery() as nursery:
        nursery.start_soon(client._serve, NatsConnection(link, Wire(), "id"))
        await wait_all_tasks_blocked()
        yield theirs
        nursery.cancel_scope.cancel()


async def read_until(stream: trio.SocketStream, end: bytes) -> bytes:
    """Read until something has come."""
    data = b""
    while end not in data:
        data += await stream.receive_some()
    return data


@pytest.fixture
def calls(monkeypatch):
    """Return the sizes of what was written, a system call each."""
    sizes: list[int] = []
    write = socket_link._write_now

    def counted(stream, data):
        sizes.append(len(data))
        return write(stream, data)

    monkeypatch.setattr(socket_link, "_write_now", counted)
    return sizes


async def test_what_is_published_in_a_turn_is_one_system_call(calls):
    client = NatsClient(TERMS, lambda: None)
    async with connected(client) as server:
        calls.clear()
        async with trio.open_nursery() as nursery:
            for number in range(500):
                nursery.start_soon(client.publish, b"a", [b"%03d" % number])
        got = await read_until(server, b"499")
        assert len(got.split(b"PUB a 3\r\n")) > 500
        assert len(calls) == 1


async def test_what_is_told_is_in_order(calls):
    client = NatsClient(TERMS, lambda: None)
    async with connected(client) as server:
        calls.clear()
        told = [b"%05d" % number for number in range(20_000)]
        for one in told:
            client.tell(b"a", one)
        got = await read_until(server, told[-1])
        assert [line for line in got.split(b"\r\n") if line.isdigit()] == told
        assert len(calls) < 20


async def test_a_request_that_goes_first_passes_what_waits():
    client = NatsClient(TERMS, lambda: None)
    async with connected(client) as server, trio.open_nursery() as nursery:
        for number in range(10_000):
            client.tell(b"a", b"%300d" % number)
        await wait_all_tasks_blocked()
        assert client.unsent > 1_000_000
        nursery.start_soon(client.ask_first, [Request(b"first"), Request(b"second")])
        await wait_all_tasks_blocked()
        before, _, after = (await read_until(server, b"%300d" % 9_999)).partition(b"PUB first")
        assert len(before) < 1_000_000
        assert after.index(b"PUB second") < after.index(b"PUB a")
        nursery.cancel_scope.cancel()


async def test_a_cancelled_request_that_waits_leaves_the_lines_whole():
    client = NatsClient(TERMS, lambda: None)
    async with connected(client) as server:
        client.tell(b"a", b"x" * 1_000_000)
        await wait_all_tasks_blocked()
        with trio.move_on_after(0):
            await client.ask_first([Request(b"first")])
        client.tell(b"b", b"end")
        got = await read_until(server, b"end\r\n")
        assert got.count(b"\r\n") == got.count(b"PUB") * 2 + got.count(b"PING") + got.count(b"SUB")


async def test_without_a_connection_nothing_goes_first():
    assert await NatsClient(TERMS, lambda: None).ask_first([Request(b"a")]) == [Missing.UNSENT]


async def test_a_lease_is_renewed_before_ten_thousand_writes_that_wait():
    engine = NatsEngine(TERMS, "a.example")
    async with connected(engine.stream.client) as server, trio.open_nursery() as nursery:
        engine.stream.health = Health(is_up=True)
        for first in range(0, 10_000, 1000):
            puts = [Put(f"row/{first + one}", b"x" * 300) for one in range(1000)]
            nursery.start_soon(engine.put_all, puts)
        await wait_all_tasks_blocked()
        nursery.start_soon(engine.put_all, [Put("node/a", b"", 7, 10.0)])
        await wait_all_tasks_blocked()
        assert (await read_until(server, b"node.a ")).count(b"PUB") < 5000
        nursery.cancel_scope.cancel()
