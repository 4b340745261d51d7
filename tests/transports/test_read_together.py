"""Links whose sockets are read by one task for all: what comes is what a waiting task would get."""

import socket

import pytest
import trio
import trio.lowlevel

from specs.limits.protocol import FRAME_TIMEOUT, MAX_FRAME_BYTES
from tests.support.garbage import collected
from tests.support.runtime.links import PLACES, open_pair, open_place
from transports.errors import (
    CloseReason,
    FrameTooLargeError,
    LinkBrokenError,
    LinkClosedError,
    LinkError,
)
from transports.link import Kind, Link

SOCKETS = [place for place in PLACES if "memory" not in place and "chaos" not in place]


@pytest.fixture(params=SOCKETS)
async def pair(request, tmp_path):
    with collected():
        async with open_place(request.param, tmp_path) as place, open_pair(place) as pair:
            if pair.acceptor.descriptor is None:
                pytest.skip("links of this kind are read by a task each")
            yield pair


async def came(link: Link) -> list[bytes]:
    """Wait until something has come, and return the frames."""
    while True:
        link.fill()
        frames = []
        while link.has_arrived:
            frames.append(link.arrived())
        if frames:
            return frames
        link.check_readable()
        with trio.fail_after(5):
            await trio.lowlevel.wait_readable(link.descriptor)


async def all_of(link: Link) -> tuple[list[bytes], LinkError]:
    """Read until nothing more can come; return the frames, and the reason."""
    frames: list[bytes] = []
    try:
        while True:
            frames += await came(link)
    except LinkError as exc:
        return frames, exc


async def test_all_frames_come_in_order_whatever_their_size(pair):
    sent = [b"x" * size for size in (1, 126, 70_000, 0, 17, 200_000, 3)]
    got = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.dialler.send_many, sent)
        while len(got) < len(sent):
            got += await came(pair.acceptor)
    assert got == sent


async def test_nothing_is_read_while_frames_wait(pair):
    link = pair.acceptor
    for frame in (b"one", b"two"):
        await pair.dialler.send(frame)
        await trio.lowlevel.wait_readable(link.descriptor)
        link.fill()
    assert (link.arrived(), link.arrived()) == (b"one", None)
    assert await came(link) == [b"two"]


async def test_to_fill_a_link_to_which_nothing_has_come_does_nothing(pair):
    before = pair.acceptor.heard_at
    pair.acceptor.fill()
    assert (pair.acceptor.arrived(), pair.acceptor.heard_at) == (None, before)
    pair.acceptor.check_readable()


async def test_frames_that_came_before_the_goodbye_are_read_before_it(pair):
    async def leave():
        await pair.dialler.send_many([b"one", b"two"])
        await pair.dialler.aclose(CloseReason.GOING_AWAY)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        frames, over = await all_of(pair.acceptor)
        await pair.acceptor.aclose()
    assert frames == [b"one", b"two"]
    assert isinstance(over, LinkBrokenError)
    assert over.close_reason is CloseReason.GOING_AWAY


async def test_a_peer_that_vanishes_has_left_without_a_reason(pair):
    await trio.aclose_forcefully(pair.dialler)
    _, over = await all_of(pair.acceptor)
    assert isinstance(over, LinkBrokenError)
    assert over.close_reason is None


async def test_a_frame_above_the_limit_is_reported_after_those_before_it(pair, monkeypatch):
    monkeypatch.setattr(type(pair.dialler), "_check_sizes", lambda *_: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.dialler.send_many, [b"one", b"x" * (MAX_FRAME_BYTES + 1)])
        frames, over = await all_of(pair.acceptor)
        nursery.cancel_scope.cancel()
    assert frames == [b"one"]
    assert isinstance(over, FrameTooLargeError)


async def test_a_link_closed_by_this_end_says_so(pair):
    await trio.aclose_forcefully(pair.acceptor)
    pair.acceptor.fill()
    with pytest.raises(LinkClosedError):
        pair.acceptor.check_readable()


async def test_the_end_of_a_frame_that_has_begun_is_due(pair):
    if pair.acceptor.kind is not Kind.WEBSOCKET:
        assert pair.acceptor.frame_due is None
        return
    began = trio.current_time()
    await pair.dialler._stream.send_all(b"\x81\xff")
    await trio.lowlevel.wait_readable(pair.acceptor.descriptor)
    pair.acceptor.fill()
    assert began <= pair.acceptor.frame_due - FRAME_TIMEOUT <= trio.current_time()


async def test_pings_are_answered_and_wait_if_the_peer_does_not_read(pair):
    link, stream = pair.acceptor, pair.dialler._stream
    if link.kind is not Kind.WEBSOCKET or not isinstance(stream, trio.SocketStream):
        return
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    pings = b"\x89\xfd\x00\x00\x00\x00" + b"x" * 125

    async def flood():
        while True:
            await stream.send_all(pings * 100)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood)
        while not link.unwritten:
            await trio.lowlevel.wait_readable(link.descriptor)
            link.fill()
        nursery.cancel_scope.cancel()
    assert not link.is_clear
