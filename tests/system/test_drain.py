"""SIGTERM: nobody new comes in, everybody is notified, what is queued goes out, exit 0 in 5 s."""

import re
import signal
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from urllib.parse import quote, urlsplit

import orjson
import pytest
import trio

from actors.cli.group import ExitCode
from tests.support.command import serving
from tests.support.node.node_process import UNHURRIED
from tests.support.node.web import get
from tests.support.wire.wire_socket import Left, frame_of, handshake_of, open_wire

pytestmark = pytest.mark.timeout(240)

NODE = ("node", "--domain", "a.ex", "--allow-legacy", "--http", "127.0.0.1:0", *UNHURRIED)
GOING_AWAY = 1001
STUCK = 12
REQUESTS = 900


def plain(node, name):
    return f"{node.ready['legacy_url']}?runtimeURL={quote(f'runtime://a.ex/{name}', safe='')}"


def request(name, number, to=f"hyperty://a.ex/{600 * 'x'}"):
    """A request that is answered with 404, unless `to` is somebody."""
    who = f"runtime://a.ex/{name}"
    message = {"id": number, "type": "read", "from": f"{who}/sm", "to": to, "body": {}}
    return frame_of(orjson.dumps(message))


@asynccontextmanager
async def peer(node, name):
    """A peer of upstream's plain form that has its session."""
    wire = await open_wire(plain(node, name))
    async with wire.stream:
        yield wire


async def stuck(node, name, *, task_status):
    """A peer that asks and asks, and reads nothing: its answers fill every buffer."""
    url = plain(node, name)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    parts = urlsplit(url)
    async with trio.SocketStream(trio.socket.from_stdlib_socket(sock)) as stream:
        await stream.socket.connect((parts.hostname, parts.port))
        await stream.send_all(handshake_of(url, None))
        await stream.receive_some(500)
        with trio.move_on_after(5):
            for number in range(REQUESTS):
                await stream.send_all(request(name, number))
        task_status.started()
        await trio.sleep_forever()


async def left(wire):
    """Read what still comes; return the code of the farewell and how much came before."""
    count = 0
    try:
        while await wire.receive():
            count += 1
    except Left as gone:
        return gone.code, count


async def admitted(node):
    """How many messages have passed the node so far."""
    text = (await get(f"{node.ready['http_url']}/metrics")).text
    return float(re.search(r"^protofly_messages_admitted_total (\S+)$", text, re.MULTILINE)[1])


async def ended(node):
    """Wait for the end, and for what the interpreter does then on a busy machine.

    A node that has not drained in `DRAIN_TIMEOUT` by its own clock ends with another status.
    """
    with trio.fail_after(60):
        return await node.process.ended()


@asynccontextmanager
async def with_stuck_peers(*options):
    """A node that has peers which read nothing."""
    async with serving(*NODE, *options) as node, trio.open_nursery() as lasting:
        async with trio.open_nursery() as starting:
            for number in range(STUCK):
                starting.start_soon(lasting.start, partial(stuck, node, f"stuck{number}"))
        yield node
        lasting.cancel_scope.cancel()


async def test_every_peer_is_reported_and_gets_what_waits():
    async with serving(*NODE) as node, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(peer(node, f"r{n}")) for n in range(20)]
        for wire in peers:
            await wire.send_bytes(b"".join(request("r0", n) for n in range(1, 101)))
        assert len(await peers[0].receive()) > 0
        node.process.send_signal(signal.SIGTERM)
        farewells = [await left(wire) for wire in peers]
        assert await ended(node) == ExitCode.OK
    assert {code for code, _ in farewells} == {GOING_AWAY}


async def test_peers_in_the_middle_of_talking_are_notified_too():
    """Who goes on sending may find the connection reset; nobody is left without an end."""

    async def talk(wire, name):
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            for number in range(1_000_000):
                await wire.send_bytes(request(name, number))
                await trio.sleep(0.01)  # real time: a pace that a busy machine can drain

    async def listen(wire, codes):
        codes.append((await left(wire))[0])
        await trio.aclose_forcefully(wire.stream)

    codes = []
    async with serving(*NODE) as node, AsyncExitStack() as stack:
        wires = {f"r{n}": await stack.enter_async_context(peer(node, f"r{n}")) for n in range(10)}
        async with trio.open_nursery() as nursery:
            for name, wire in wires.items():
                nursery.start_soon(talk, wire, name)
                nursery.start_soon(listen, wire, codes)
            while await admitted(node) < 500:
                pass
            node.process.send_signal(signal.SIGTERM)
            assert await ended(node) == ExitCode.OK
    assert len(codes) == 10
    assert set(codes) <= {GOING_AWAY, None}
    assert GOING_AWAY in codes


async def test_peers_that_do_not_read_do_not_keep_a_node():
    async with with_stuck_peers() as node, peer(node, "honest") as honest:
        node.process.send_signal(signal.SIGTERM)
        assert (await left(honest))[0] == GOING_AWAY
        assert await ended(node) == ExitCode.OK


async def test_a_draining_node_runs_is_not_ready_and_admits_no_connection():
    async with with_stuck_peers() as node:
        page = str(node.ready["http_url"])
        assert (await get(f"{page}/readyz")).status == 200
        place = urlsplit(node.url)
        node.process.send_signal(signal.SIGTERM)
        while (ready := await get(f"{page}/readyz")).status == 200:
            pass
        assert ready.json["missing"] == [{"part": "node", "why": "it is going down"}]
        assert (await get(f"{page}/healthz")).status == 200
        with pytest.raises(OSError, match="connect"):
            await trio.open_tcp_stream(place.hostname, place.port)
        assert await ended(node) == ExitCode.OK


async def test_a_second_signal_ends_it_at_once():
    async with with_stuck_peers() as node:
        node.process.send_signal(signal.SIGTERM)
        while (await get(f"{node.ready['http_url']}/readyz")).status == 200:
            pass
        node.process.send_signal(signal.SIGTERM)
        assert await ended(node) == ExitCode.INTERRUPTED


async def test_a_http_client_that_reads_nothing_does_not_keep_a_node():
    async with serving(*NODE) as node:
        place = urlsplit(str(node.ready["http_url"]))
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        with sock:
            sock.connect((place.hostname, place.port))
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
            assert await node.stop() == ExitCode.OK
