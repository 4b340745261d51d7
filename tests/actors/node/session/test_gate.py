"""Who knocks at the front door, on real sockets (RELIABILITY L5, L6, L7, S10)."""

import math
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
import trio

from actors.kit.counters import Tally
from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate
from specs.limits.protocol import FRAME_TIMEOUT, HANDSHAKE_TIMEOUT
from specs.reply_code import DropReason, LinkEnd
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.wire.raw_websocket import frame, handshake, head
from transports.system import open_system_network

ANY = Rate(math.inf, 1)
FEW = NodeLimits(unauthenticated=20, unauthenticated_per_host=10, handshakes=ANY)


@asynccontextmanager
async def real_world(**config):
    async with open_system_network() as network, open_world(network, **config) as world:
        yield world


async def connect(world, source="127.0.0.1"):
    """Open a connection from one of this machine's own addresses."""
    host, port = world.node.url.removeprefix("ws://").removesuffix("/link").split(":")
    made = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    await made.bind((source, 0))
    await made.connect((host, int(port)))
    return trio.SocketStream(made)


async def read_all(stream):
    with trio.fail_after(300):
        return b"".join([bytes(data) async for data in stream])


async def answer(world, *headers, source="127.0.0.1"):
    """Knock with these headers; return the status line of the answer."""
    async with await connect(world, source) as stream:
        lines = "".join(f"{one}\r\n" for one in headers).encode()
        await stream.send_all(handshake()[:-2] + lines + b"\r\n")
        read = b""
        with trio.fail_after(60):
            while b"\r\n" not in read:
                read += await stream.receive_some()
        return read.split(b"\r\n")[0]


def turned_away(world):
    return {
        str(why): n for (why,), n in world.node.counters.tallies[Tally.HANDSHAKES_REFUSED].items()
    }


SWITCHING = b"HTTP/1.1 101 Switching Protocols"


async def test_a_host_that_connects_too_often_is_asked_to_come_later():
    limits = NodeLimits(handshakes=Rate(0.001, 5))
    async with real_world(limits=limits) as world:
        reported = [await answer(world) for _ in range(6)]
        other = await answer(world, source="127.0.0.2")

        assert reported == [SWITCHING] * 5 + [b"HTTP/1.1 429 Too Many Requests"]
        assert other == SWITCHING
        assert turned_away(world)["too-fast"] == 1


async def test_no_header_changes_the_host_of_a_client():
    limits = NodeLimits(handshakes=Rate(0.001, 5))
    async with real_world(limits=limits) as world:
        reported = [await answer(world, f"X-Forwarded-For: 192.0.2.{n}") for n in range(6)]

        assert reported[5] == b"HTTP/1.1 429 Too Many Requests"


async def test_half_handshakes_do_not_exclude_other_peers():
    async with real_world(limits=FEW) as world, AsyncExitStack() as stack:
        slow = [
            await stack.enter_async_context(await connect(world, f"127.0.0.{2 + n % 6}"))
            for n in range(60)
        ]
        for stream in slow:
            with suppress(trio.BrokenResourceError):  # it has made room by now
                await stream.send_all(handshake()[:-2])

        ra, rb = await world.peer(RA), await world.peer(RB)

        assert (await ra.control("ping")).code == (await rb.control("ping")).code == 200
        assert turned_away(world)["made-room"] >= 40


async def test_links_without_a_session_do_not_exclude_other_peers():
    async with real_world(limits=FEW) as world, AsyncExitStack() as stack:
        for number in range(60):
            stream = await connect(world, f"127.0.0.{2 + number % 6}")
            await stack.enter_async_context(stream)
            await stream.send_all(handshake())
            assert (await stream.receive_some()).startswith(SWITCHING)

        ra = await world.peer(RA)

        assert (await ra.control("ping")).code == 200
        assert world.ended()[LinkEnd.MADE_ROOM] >= 40


async def test_sessions_do_not_extend_the_limit():
    limits = NodeLimits(unauthenticated=2, unauthenticated_per_host=1, handshakes=ANY)
    async with real_world(limits=limits) as world:
        peers = [await world.peer(f"{RA}{number}") for number in range(10)]

        assert {(await peer.control("ping")).code for peer in peers} == {200}


async def test_handshake_and_session_share_one_deadline(hasty_clock):
    async with real_world() as world, await connect(world) as stream:
        began = trio.current_time()
        await trio.sleep(HANDSHAKE_TIMEOUT / 2)
        await stream.send_all(handshake())
        reported = await read_all(stream)

        assert reported.endswith(b"\x88\x09\x03\xf0refused")
        assert trio.current_time() - began < HANDSHAKE_TIMEOUT + 1.5
        assert world.ended() == {LinkEnd.NO_SESSION: 1}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], SWITCHING),
        (["Origin: https://app.example"], SWITCHING),
        (["Origin: https://evil.example"], b"HTTP/1.1 403 Forbidden"),
        (["Origin: null"], b"HTTP/1.1 403 Forbidden"),
        (["Origin: https://app.example.evil.example"], b"HTTP/1.1 403 Forbidden"),
        (["Origin: http://app.example"], b"HTTP/1.1 403 Forbidden"),
        (["Cookie: a=b"], b"HTTP/1.1 403 Forbidden"),
        (["Cookie: a=b", "Origin: https://app.example"], SWITCHING),
    ],
    ids=["none", "allowed", "foreign", "null", "longer", "no TLS", "cookie only", "both"],
)
async def test_pages_of_allowed_origins_only_may_connect(headers, status):
    async with real_world(origins=frozenset({"https://app.example"})) as world:
        assert await answer(world, *headers) == status
        assert turned_away(world).get("origin", 0) == (status != SWITCHING)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://{own}", SWITCHING),
        ("https://{own}", b"HTTP/1.1 403 Forbidden"),
        ("http://127.0.0.1:1", b"HTTP/1.1 403 Forbidden"),
        ("http://127.0.0.1", b"HTTP/1.1 403 Forbidden"),
        ("http://127.0.0.2:{port}", b"HTTP/1.1 403 Forbidden"),
        ("http://evil.example:{port}", b"HTTP/1.1 403 Forbidden"),
    ],
)
async def test_pages_of_the_nodes_own_address_may_connect(origin, status):
    """By its number only: a name that leads to it, and is in Host too, may be anybody's."""
    async with real_world() as world:
        own = world.node.url.removeprefix("ws://").removesuffix("/link")
        origin = origin.format(own=own, port=own.rpartition(":")[2])
        assert await answer(world, f"Origin: {origin}") == status


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1", "127.0.0.1"], ["127.0.0.1", "b.ex"]])
async def test_a_handshake_has_one_host(hosts):
    async with real_world() as world, await connect(world) as stream:
        lines = b"".join(b"Host: %s\r\n" % one.encode() for one in hosts)
        await stream.send_all(handshake().replace(b"Host: 127.0.0.1\r\n", lines))
        assert (await read_all(stream)).startswith(b"HTTP/1.1 400 Bad Request")
        assert turned_away(world) == {"bad-request": 1}


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("ws://a.ex:80/link", SWITCHING),
        ("http://a.ex/link?x=1", SWITCHING),
        ("HTTPS://a.ex/link", SWITCHING),
        ("http://a.ex/other", b"HTTP/1.1 404 Not Found"),
        ("http://a.ex", b"HTTP/1.1 404 Not Found"),
        ("http:///link", b"HTTP/1.1 404 Not Found"),
        ("ftp://a.ex/link", b"HTTP/1.1 404 Not Found"),
    ],
)
async def test_the_target_of_a_handshake_may_be_absolute(target, status):
    """RFC 9112, 3.2.2."""
    async with real_world() as world, await connect(world) as stream:
        await stream.send_all(handshake(target))
        with trio.fail_after(60):
            assert (await stream.receive_some()).startswith(status)


LONG = head(1, 1000)
PART = frame(9, b"") + frame(0, b"x", fin=0)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (LONG, [b"x"] * 100),
        (frame(1, b"x", fin=0), [PART] * 100),
        (b"", [*(bytes([byte]) for byte in LONG), *[b"x"] * 100]),
        (frame(9, b"") + LONG[:2], [LONG[2:4], LONG[4:], *[b"x"] * 100]),
    ],
    ids=["a frame", "a message in parts", "from the first byte", "behind a ping"],
)
async def test_a_message_that_trickles_in_is_cut_off_after_30_seconds(hasty_clock, first, then):
    async with real_world(allow_legacy=True) as world, await connect(world) as raw:
        door = "/stub/connect?runtimeURL=runtime://a.ex/old"
        await raw.send_all(handshake(door, None) + first)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trickle, raw, then)
            began = trio.current_time()
            reported = await read_all(raw)
            nursery.cancel_scope.cancel()

        assert FRAME_TIMEOUT - 1 <= trio.current_time() - began <= FRAME_TIMEOUT + 3
        assert reported.endswith(b"\x88\x09\x03\xf0refused")
        assert world.ended() == {LinkEnd.SLOW_FRAME: 1}


async def test_a_message_that_is_slow_but_ends_in_time_is_taken(hasty_clock):
    async with real_world(allow_legacy=True) as world, await connect(world) as raw:
        door = "/stub/connect?runtimeURL=runtime://a.ex/old"
        await raw.send_all(handshake(door, None))
        for _ in range(3):
            for piece in (LONG[:3], LONG[3:], b"x" * 500, b"x" * 500):
                await raw.send_all(piece)
                await trio.sleep(5.0)

        assert world.node.counters.drops[DropReason.MALFORMED] == 3
        assert world.ended() == {}


async def trickle(stream, pieces):
    for piece in pieces:
        await trio.sleep(1.0)
        try:
            await stream.send_all(piece)
        except trio.BrokenResourceError:
            return
