"""Raw byte streams: all bytes, in order, cut anywhere; no word at the end (T16, PFY-01)."""

import socket

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from specs.limits.protocol import MAX_FRAME_BYTES, READ_BYTES
from tests.support.runtime.links import drain, open_pair, open_place
from transports.errors import (
    CloseReason,
    DialError,
    FrameTooLargeError,
    LinkBrokenError,
    LinkClosedError,
)
from transports.link import FRAMED, Kind
from transports.system import open_system_network
from transports.urls import Endpoint, read_endpoint


@pytest.fixture(params=["memory-stream", "system-stream"])
async def pair(request, tmp_path):
    async with open_place(request.param, tmp_path) as place, open_pair(place) as pair:
        yield pair


@pytest.fixture(params=["dialler", "acceptor"])
def ends(request, pair):
    return pair.ends(request.param)


@pytest.fixture
async def plain():
    """A link that was dialled, and the plain socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        async with open_system_network() as network:
            link = await network.dial(Kind.STREAM, place)
            accepted, _ = server.accept()
            with accepted:
                yield link, accepted
                accepted.close()
                await link.aclose()


async def test_bytes_come_in_order_and_whole_in_pieces_of_any_size(ends):
    sender, receiver = ends
    sent = [bytes([number]) * (1 + 1000 * number) for number in range(100)]
    came = []
    async with trio.open_nursery() as nursery:

        async def receive():
            came.extend(await drain(receiver))

        nursery.start_soon(receive)
        await sender.send_many(sent)
        await sender.send(b"last")
        await sender.aclose()
    assert b"".join(came) == b"".join([*sent, b"last"])
    assert all(0 < len(piece) <= READ_BYTES for piece in came)


async def test_a_piece_is_not_what_was_sent_together(pair):
    await pair.dialler.send(b"hello\n")
    with trio.fail_after(30):
        came = await pair.acceptor.receive()
        while len(came) < 6:
            came += await pair.acceptor.receive()
    assert came == b"hello\n"


async def test_closing_is_the_only_orderly_end(ends):
    leaver, other = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(leaver.aclose, CloseReason.SLOW_CONSUMER)
        with pytest.raises(LinkBrokenError) as caught:
            await other.receive()
        await other.aclose()
    assert caught.value.close_reason is CloseReason.DONE


async def test_nothing_can_be_done_with_a_link_that_was_closed(ends):
    link, _ = ends
    await trio.aclose_forcefully(link)
    with pytest.raises(LinkClosedError):
        await link.send(b"late")
    with pytest.raises(LinkClosedError):
        await link.receive()


async def test_a_sender_waits_while_its_peer_does_not_read(ends):
    sender, _ = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.send_many, [b"x" * MAX_FRAME_BYTES] * 100)
        await wait_all_tasks_blocked(0.1)
        assert nursery.child_tasks
        nursery.cancel_scope.cancel()


async def test_more_than_a_frame_at_once_is_refused(ends):
    sender, _ = ends
    with pytest.raises(FrameTooLargeError):
        await sender.send(b"x" * (MAX_FRAME_BYTES + 1))


async def test_an_outsider_gets_the_bytes_and_nothing_else(plain):
    link, outsider = plain
    await link.send_many([b"GET / HTTP/1.0\r\n", b"\r\n"])
    assert outsider.recv(100) == b"GET / HTTP/1.0\r\n\r\n"
    outsider.sendall(b"\xff\x00 no text")
    assert await link.receive() == b"\xff\x00 no text"


async def test_frames_before_a_half_close_are_read_before_its_end(plain):
    link, outsider = plain
    outsider.sendall(b"last words")
    outsider.shutdown(socket.SHUT_WR)
    assert await link.receive() == b"last words"
    with pytest.raises(LinkBrokenError) as caught:
        await link.receive()
    assert caught.value.close_reason is CloseReason.DONE
    assert outsider.recv(1) == b""


async def test_a_reset_is_no_orderly_end(plain):
    link, outsider = plain
    outsider.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    outsider.close()
    with pytest.raises(LinkBrokenError) as caught:
        await link.receive()
    assert caught.value.close_reason is None


@pytest.mark.parametrize("family", ["memory-stream", "system-stream"])
async def test_without_a_listener_dialling_fails(family, tmp_path):
    async with open_place(family, tmp_path) as place:
        async with place.network.listen(place.kind, place.where) as listener:
            pass
        with pytest.raises(DialError):
            await place.network.dial(place.kind, listener.address)


def test_a_stream_is_no_kind_of_framed_link_and_a_data_channel_is_not_dialled():
    assert set(Kind) - set(FRAMED) == {Kind.STREAM, Kind.WEBRTC}


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("ws://h:1/link?a=b", Endpoint(Kind.WEBSOCKET, "ws://h:1/link?a=b")),
        ("tcp://h:1", Endpoint(Kind.TCP, "h:1")),
        ("stream://[::1]:25", Endpoint(Kind.STREAM, "[::1]:25")),
    ],
)
def test_an_endpoint_says_how_it_is_dialled(text, endpoint):
    assert read_endpoint(text) == endpoint


@pytest.mark.parametrize(
    "text",
    ["", "h:1", "unix:///run/x", "wss://", "tcp://h", "stream://h:x", "tcp://:1", "ws://"],
)
def test_an_invalid_endpoint_is_refused(text):
    with pytest.raises(ValueError, match="it "):
        read_endpoint(text)
