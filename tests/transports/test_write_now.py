"""What is written at once is, to the byte, what a waiting write would have written."""

import socket
from contextlib import asynccontextmanager

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from actors.keys.certificate import make_certificate
from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.chance import examples
from tests.support.garbage import collected
from tests.support.runtime.links import CHANNELS, PLACES, open_place
from tests.support.wire.raw_websocket import websocket_link
from transports.errors import FrameTooLargeError, LinkBrokenError
from transports.link import Kind, Link, Upgrade
from transports.memory import MemoryLink
from transports.socket_link import RawLink, SocketLink, StreamLink
from transports.tls import AcceptedStream, PinnedTls, TlsStream

LARGEST = b"x" * MAX_FRAME_BYTES


@pytest.fixture(params=[*PLACES, *CHANNELS])
async def place(request, tmp_path):
    with collected():
        async with open_place(request.param, tmp_path) as place:
            yield place


async def send(link: Link, frames: list[bytes]) -> None:
    """Send as a task does that writes at once where it can."""
    if not link.is_clear:
        await link.send_many(frames)
    elif not link.write_now(frames):
        await link.send_many(())


async def flood(link: Link) -> None:
    """Send for ever."""
    while True:
        await link.send(LARGEST)


# ---- what every transport keeps


async def test_frames_keep_their_order_whichever_way_they_are_sent(ends):
    sender, receiver = ends
    sent = [b"%d" % number for number in range(20)]
    async with trio.open_nursery() as nursery:

        async def both_ways() -> None:
            for number in range(0, len(sent), 4):
                await send(sender, sent[number : number + 2])
                await sender.send_many(sent[number + 2 : number + 4])

        nursery.start_soon(both_ways)
        assert [await receiver.receive() for _ in sent] == sent


async def test_a_link_is_not_clear_while_a_task_writes_or_after_its_end(ends):
    sender, receiver = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, sender)
        await wait_all_tasks_blocked()
        assert not sender.is_clear
        nursery.cancel_scope.cancel()
    await trio.aclose_forcefully(receiver)
    await trio.aclose_forcefully(sender)
    assert not sender.is_clear


async def test_links_with_a_socket_of_their_own_are_clear_from_the_start(place, pair):
    """Those in memory are, too; all others leave each write to a task."""
    for end in (pair.dialler, pair.acceptor):
        assert end.is_clear == isinstance(end, SocketLink | MemoryLink)


# ---- of those with a socket of their own


def stream_link(stream: trio.SocketStream) -> Link:
    return StreamLink((Kind.UNIX, "a", Upgrade()), stream)


def raw_link(stream: AcceptedStream) -> Link:
    return RawLink((Kind.STREAM, "a", Upgrade()), stream)


@asynccontextmanager
async def socket_pair(make):
    """Open a link, and a socket that holds little and is read by the test only."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    theirs.setblocking(False)  # noqa: FBT003 - the standard library's signature
    with theirs:
        link = make(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
        yield link, theirs
        await trio.aclose_forcefully(link)


def read_some(theirs: socket.socket, size: int) -> bytes:
    try:
        return theirs.recv(size) if size else b""
    except BlockingIOError:
        return b""


SIZES = st.lists(st.integers(0, 9000), min_size=1, max_size=4)
STEPS = st.lists(st.tuples(SIZES, st.booleans(), st.integers(0, 20_000)), min_size=1, max_size=12)


async def written(make, steps, *, at_once: bool) -> bytes:
    """Send the frames of all steps to a socket that takes what it just has room for."""
    read = bytearray()
    async with socket_pair(make) as (link, theirs), trio.open_nursery() as nursery:
        is_done = False

        async def send_all() -> None:
            nonlocal is_done
            for number, (sizes, is_patient, _) in enumerate(steps):
                frames = [bytes([97 + number]) * size for size in sizes]
                if is_patient or not at_once:
                    await link.send_many(frames)
                else:
                    await send(link, frames)
            is_done = True

        nursery.start_soon(send_all)
        room = [size for *_, size in steps]
        while not is_done:
            await wait_all_tasks_blocked()
            read += read_some(theirs, room.pop(0) if room else 1 << 20)
        while more := read_some(theirs, 1 << 20):
            read += more
    return bytes(read)


@pytest.mark.parametrize("make", [stream_link, raw_link, websocket_link])
@settings(max_examples=examples(25), deadline=None)
@given(steps=STEPS)
def test_both_ways_write_the_same_bytes(make, steps):
    at_once, waiting = (
        trio.run(lambda is_: written(make, steps, at_once=is_), is_) for is_ in (True, False)
    )
    assert at_once == waiting


async def clog(link: Link, frame: bytes) -> int:
    """Write at once until the socket is full; return how many frames the link has taken."""
    taken = 1
    while link.write_now([frame]):
        taken += 1
    return taken


async def test_a_link_that_could_not_write_all_keeps_the_rest_and_is_not_clear():
    async with socket_pair(raw_link) as (link, theirs):
        taken = await clog(link, b"abc" * 1000)
        assert not link.is_clear
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send_many, ())
            read = b""
            while len(read) < taken * 3000:
                await wait_all_tasks_blocked()
                read += read_some(theirs, 1 << 20)
        assert read == b"abc" * 1000 * taken
        assert link.is_clear


async def test_a_rest_whose_write_is_cancelled_comes_before_all_else():
    async with socket_pair(raw_link) as (link, theirs):
        taken = await clog(link, b"abc" * 1000)
        with trio.CancelScope() as scope:
            scope.cancel()
            await link.send_many(())
        read = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send, b"end")
            while not read.endswith(b"end"):
                await wait_all_tasks_blocked()
                read += read_some(theirs, 1 << 20)
        assert read == b"abc" * 1000 * taken + b"end"


async def test_a_peer_that_is_gone_is_reported_by_the_waiting_write():
    async with socket_pair(stream_link) as (link, theirs):
        theirs.close()
        assert link.is_clear
        assert not link.write_now([b"lost"])
        with pytest.raises(LinkBrokenError):
            await link.send_many(())


async def test_a_link_whose_peer_has_left_is_not_clear():
    async with socket_pair(stream_link) as (link, theirs):
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(LinkBrokenError):
            await link.receive()
        assert not link.is_clear


async def test_of_a_frame_over_the_limit_nothing_is_written():
    async with socket_pair(stream_link) as (link, theirs):
        with pytest.raises(FrameTooLargeError):
            link.write_now([b"unsent", LARGEST + b"x"])
        assert read_some(theirs, 10) == b""
        assert link.is_clear


@asynccontextmanager
async def encrypted_pair():
    """Open a link with TLS over a socket that holds little, and the end of its peer."""
    own, other = make_certificate(), make_certificate()
    here, there = PinnedTls(lambda: own), PinnedTls(lambda: other)
    here.pin(other.der)
    there.pin(own.der)
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    streams = [trio.SocketStream(trio.socket.from_stdlib_socket(one)) for one in (ours, theirs)]
    near = TlsStream(streams[0], here.listening)
    far = TlsStream(streams[1], there.dialling, is_dialled=True)
    async with trio.open_nursery() as nursery:
        for end in (near, far):
            nursery.start_soon(end.socket.shake_hands)
    link = raw_link(near)
    yield link, far
    for end in (link, far):
        await trio.aclose_forcefully(end)


async def test_over_tls_both_ways_arrive_whole_and_in_order():
    sent = [bytes([97 + number]) * size for number, size in enumerate([10, 9000, 40_000, 1, 0, 70])]
    async with encrypted_pair() as (link, far), trio.open_nursery() as nursery:

        async def send_all() -> None:
            for frame in sent:
                await send(link, [frame])
                await link.send_many([frame])
                await send(link, [frame])

        nursery.start_soon(send_all)
        read = b""
        while len(read) < 3 * sum(map(len, sent)):
            await wait_all_tasks_blocked()
            read += await far.socket.recv(5000)
    assert read == b"".join(frame * 3 for frame in sent)


async def test_over_tls_a_rest_whose_write_is_cancelled_comes_before_all_else():
    async with encrypted_pair() as (link, far):
        taken = await clog(link, b"abc" * 1000)
        assert not link.is_clear
        with trio.CancelScope() as scope:
            scope.cancel()
            await link.send_many(())
        read = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send, b"end")
            while not read.endswith(b"end"):
                read += await far.socket.recv(5000)
        assert read == b"abc" * 1000 * taken + b"end"
        assert link.is_clear


async def test_over_tls_a_record_may_be_read_in_parts():
    async with encrypted_pair() as (link, far):
        await link.send(b"abcde")
        with trio.fail_after(60):
            assert [await far.socket.recv(2) for _ in range(3)] == [b"ab", b"cd", b"e"]


async def test_over_tls_the_end_may_be_read_again():
    async with encrypted_pair() as (link, far):
        await far.socket.end()
        stream = link._stream
        with trio.fail_after(60):
            assert [await stream.socket.recv(2) for _ in range(2)] == [b"", b""]
