"""The accepting end of a WebSocket, against peers that are not ours or not kind."""

from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
import trio_websocket
import websockets.sync.client
from hypothesis import given, settings
from hypothesis import strategies as st

from specs.limits import protocol as limits
from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.chance import examples
from tests.support.wire.raw_websocket import frame, handshake, head, text
from transports.errors import CloseReason, FrameTooLargeError, LinkBrokenError
from transports.link import PROTOFLY_V1, Gate, Guest, Kind
from transports.system import open_system_network

DOORS = {"/link": PROTOFLY_V1, "/ws": None}
SWITCHING = b"HTTP/1.1 101 "


@pytest.fixture
async def network():
    async with open_system_network() as network:
        yield network


@pytest.fixture
async def listener(network):
    async with network.listen(Kind.WEBSOCKET, "127.0.0.1:0", DOORS) as listener:
        yield listener


async def connect(listener) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", int(listener.address.rpartition(":")[2]))


async def read_all(stream) -> bytes:
    read = b""
    async for data in stream:
        read += data
    return read


async def read_reply(stream) -> bytes:
    """Read the answer to a handshake."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += await stream.receive_some()
    return read


@asynccontextmanager
async def raw_peer(listener, sent: bytes = b""):
    """Open a peer whose every byte is ours, and our end of its link."""
    async with await connect(listener) as stream:
        await stream.send_all(handshake() + sent)
        await read_reply(stream)
        link = await listener.accept()
        try:
            yield stream, link
        finally:
            await trio.aclose_forcefully(link)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (handshake("/nowhere"), b"HTTP/1.1 404"),
        (handshake("/link", None), b"HTTP/1.1 400"),
        (handshake("/link", "soap"), b"HTTP/1.1 400"),
        (handshake("/link?" + "a=b&" * 50), b"HTTP/1.1 400"),
        (b"GET /link HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 426"),
        (b"POST /link HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 40"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n", b"HTTP/1.1 414"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"HTTP/1.1 431"),
    ],
    ids=[
        "wrong path",
        "no subprotocol",
        "wrong subprotocol",
        "long query",
        "no upgrade",
        "wrong method",
        "no HTTP",
        "long line",
        "many headers",
    ],
)
async def test_a_bad_handshake_is_answered_and_other_links_are_unaffected(
    listener, network, sent, answer
):
    async with await connect(listener) as stream:
        await stream.send_all(sent)
        read = await read_all(stream)
    assert read.startswith(answer)

    await trio.aclose_forcefully(await network.dial(Kind.WEBSOCKET, listener.address + "/link"))


async def test_a_path_without_subprotocol_is_open_to_old_peers(listener):
    async with await connect(listener) as stream:
        await stream.send_all(handshake("/ws?x=1", None))
        assert (await read_reply(stream)).startswith(SWITCHING)
        async with await listener.accept() as link:
            assert link.upgrade.path == "/ws"
            assert link.upgrade.subprotocol is None
            await stream.aclose()


async def test_a_peer_that_does_not_finish_its_handshake_is_dropped(listener, hasty_clock):
    async with await connect(listener) as stream:
        await stream.send_all(handshake()[:-2])
        with trio.fail_after(limits.HANDSHAKE_TIMEOUT + 2):
            assert await read_all(stream) == b""


async def test_a_frame_right_after_the_handshake_is_kept(listener):
    async with raw_peer(listener, text(b"early")) as (_, link):
        assert await link.receive() == b"early"


async def test_parts_of_a_message_make_one_frame(listener):
    async with raw_peer(listener) as (stream, link):
        await stream.send_all(frame(1, b"on", fin=0) + frame(9, b"?") + frame(0, b"e"))

        assert await link.receive() == b"one"


async def test_bytes_may_come_one_by_one(listener):
    async with raw_peer(listener) as (stream, link):
        for byte in text(b"slow"):
            await stream.send_all(bytes([byte]))

        assert await link.receive() == b"slow"


async def test_a_ping_is_answered(listener):
    async with raw_peer(listener) as (stream, link), trio.open_nursery() as nursery:
        nursery.start_soon(link.receive)
        await stream.send_all(frame(9, b"are you there"))

        assert await stream.receive_some() == b"\x8a\x0dare you there"
        nursery.cancel_scope.cancel()


async def test_a_binary_message_is_a_frame_too(listener):
    async with raw_peer(listener) as (stream, link):
        await stream.send_all(frame(2, b"\xff"))

        assert await link.receive() == b"\xff"


@pytest.mark.parametrize(
    "announced",
    [
        head(1, MAX_FRAME_BYTES + 1),
        head(1, 2**40),
        frame(1, b"x", fin=0) + head(0, MAX_FRAME_BYTES),
    ],
    ids=["by one", "by far", "in parts"],
)
async def test_a_frame_over_the_limit_is_refused_before_it_is_read(listener, announced):
    async with raw_peer(listener) as (stream, link):
        await stream.send_all(text(b"good") + announced)

        assert await link.receive() == b"good"
        for _ in range(2):
            with pytest.raises(FrameTooLargeError):
                await link.receive()


async def test_a_peer_is_notified_of_its_oversized_frame_before_the_link_ends(listener):
    async with raw_peer(listener) as (stream, link):
        await stream.send_all(head(1, 2**40))
        with pytest.raises(FrameTooLargeError):
            await link.receive()
        await link.send(b"413")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.aclose, CloseReason.TOO_LARGE)
            read = await read_all(stream)
            await stream.aclose()

    assert read == b"\x81\x03413" + b"\x88\x0b\x03\xf1too-large"


@pytest.mark.parametrize(
    "sent",
    [frame(1, b"\xff\xfe"), frame(3, b""), b"\x81\x01x", frame(0, b"x"), frame(9, b"x" * 126)],
    ids=["no UTF-8", "unknown opcode", "not masked", "part of nothing", "long ping"],
)
async def test_a_peer_that_breaks_the_protocol_is_left(listener, sent):
    async with raw_peer(listener) as (stream, link):
        await stream.send_all(sent)
        with pytest.raises(LinkBrokenError, match="broke the WebSocket protocol") as caught:
            await link.receive()

        assert caught.value.close_reason is None
        assert (await read_all(stream)).startswith(b"\x88")


async def test_a_close_of_an_old_peer_without_a_code_is_an_orderly_end(listener):
    async with raw_peer(listener) as (stream, link):
        await stream.send_all(text(b"last") + frame(8, b""))
        assert await link.receive() == b"last"
        with pytest.raises(LinkBrokenError) as caught:
            await link.receive()
        with pytest.raises(LinkBrokenError):
            await link.send(b"late")

    assert caught.value.close_reason is CloseReason.DONE


async def test_pings_without_reading_do_not_fill_our_memory(listener):
    async with raw_peer(listener) as (stream, link), trio.open_nursery() as nursery:
        nursery.start_soon(link.receive)
        with trio.move_on_after(1.0) as patience:
            while True:
                await stream.send_all(frame(9, b"x" * 125) * 1000)
        nursery.cancel_scope.cancel()

    assert patience.cancelled_caught
    assert len(link._outbox) < limits.OUTBOX_BYTES + limits.READ_BYTES


async def echo_once(listener):
    """Answer the first frame of the next link, and see it leave."""
    async with await listener.accept() as link:
        await link.send(await link.receive())
        with pytest.raises(LinkBrokenError):
            await link.receive()


async def test_a_stock_trio_websocket_client_is_served(listener):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo_once, listener)
        async with trio_websocket.open_websocket_url(listener.address + "/ws") as client:
            await client.send_message("hello")

            assert await client.get_message() == "hello"


async def test_a_stock_threaded_client_is_served(listener):
    def talk() -> str:
        url = listener.address + "/link"
        with websockets.sync.client.connect(url, subprotocols=["protofly.v1"]) as client:
            client.send("hello")
            return f"{client.recv()} by {client.subprotocol}"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo_once, listener)

        assert await trio.to_thread.run_sync(talk) == "hello by protofly.v1"


async def test_compression_is_never_agreed_on(listener):
    offer = b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
    async with await connect(listener) as stream:
        await stream.send_all(handshake()[:-2] + offer)

        assert b"deflate" not in await read_reply(stream)


async def test_unaccepted_links_end_with_the_listener(network):
    async with network.listen(Kind.WEBSOCKET, "127.0.0.1:0") as listener:
        link = await network.dial(Kind.WEBSOCKET, listener.address + "/link")

    with pytest.raises(LinkBrokenError):
        await link.receive()
    await link.aclose()


async def knock(sent: list[bytes]) -> None:
    """Send pieces to a fresh listener, then see whether it still serves."""
    async with (
        open_system_network() as network,
        network.listen(Kind.WEBSOCKET, "127.0.0.1:0") as listener,
    ):
        async with await connect(listener) as stream:
            for piece in sent:
                await stream.send_all(piece)
        await trio.aclose_forcefully(await network.dial(Kind.WEBSOCKET, listener.address + "/link"))


pieces = st.one_of(
    st.binary(max_size=64),
    st.just(handshake()),
    st.builds(frame, st.integers(0, 15), st.binary(max_size=20), st.sampled_from([0, 0x80])),
)


@given(st.lists(pieces, max_size=6))
@settings(max_examples=examples(60))
def test_no_bytes_harm_the_listener(sent):
    trio.run(knock, sent)


async def test_a_link_that_would_only_wait_is_not_accepted(listener, hasty_clock):
    async with AsyncExitStack() as stack:
        peers = []
        for _ in range(limits.LINK_BACKLOG + 20):
            peers.append(await stack.enter_async_context(await connect(listener)))
            await peers[-1].send_all(handshake())
            with trio.move_on_after(0.5):
                assert (await read_reply(peers[-1])).startswith(SWITCHING)
        await trio.sleep(limits.HANDSHAKE_TIMEOUT + 1)

        for _ in peers:  # those who came late were not dropped: nobody had begun with them
            with trio.fail_after(30):
                await trio.aclose_forcefully(await listener.accept())


class SmallGate(Gate):
    """Has room for so many connections as it is told."""

    free = 0
    met = 0

    def room(self):
        return self.free

    def knock(self, host):
        self.met += 1
        self.free -= 1
        return Guest(host)

    def turned_away(self, why):
        pass

    async def until(self, met):
        with trio.fail_after(30):
            while self.met < met:  # noqa: ASYNC110 - the listener looks again by itself
                await trio.sleep(limits.ACCEPT_REST)
        await trio.testing.wait_all_tasks_blocked()


async def test_the_system_keeps_connections_while_the_gate_has_no_room(network):
    gate = SmallGate()
    async with (
        network.listen(Kind.WEBSOCKET, "127.0.0.1:0", DOORS, gate=gate) as listener,
        AsyncExitStack() as stack,
    ):
        peers = [await stack.enter_async_context(await connect(listener)) for _ in range(5)]
        for peer in peers:
            await peer.send_all(handshake())
        for more, met in ((0, 0), (2, 2), (3, 5)):
            gate.free = more
            await gate.until(met)
            assert gate.met == met
        for peer in peers:
            assert (await read_reply(peer)).startswith(SWITCHING)
            await trio.aclose_forcefully(await listener.accept())
