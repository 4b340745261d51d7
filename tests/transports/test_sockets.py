"""Unix sockets as files, and streams whose peer breaks the framing."""

import socket
import stat
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from specs.limits.protocol import MAX_FRAME_BYTES
from transports.errors import (
    CloseReason,
    DialError,
    FrameTooLargeError,
    LinkBrokenError,
    ListenError,
)
from transports.link import Kind
from transports.sockets import reserve_tcp
from transports.system import open_system_network


@pytest.fixture
async def network():
    async with open_system_network() as network:
        yield network


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "s")


def exists(path: str) -> bool:
    return Path(path).exists()


def mode_of(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def write(path: str) -> None:
    """Put a file there that is no socket."""
    Path(path).unlink(missing_ok=True)
    Path(path).write_text("precious")


def is_untouched(path: str) -> bool:
    return Path(path).read_text() == "precious"


@asynccontextmanager
async def raw_peer(network, path):
    """Open a peer whose every byte is ours, and our end of its link."""
    async with network.listen(Kind.UNIX, path) as listener:
        stream = await trio.open_unix_socket(path)
        link = await listener.accept()
        async with stream:
            try:
                yield stream, link
            finally:
                await trio.aclose_forcefully(link)


async def test_only_the_owner_may_connect(network, path):
    async with network.listen(Kind.UNIX, path):
        assert mode_of(path) == 0o600


async def test_the_file_goes_with_the_listener(network, path):
    async with network.listen(Kind.UNIX, path):
        assert exists(path)

    assert not exists(path)


async def test_a_socket_left_by_a_dead_process_is_replaced(network, path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)

    async with network.listen(Kind.UNIX, path) as listener:
        await trio.aclose_forcefully(await network.dial(Kind.UNIX, listener.address))


async def test_a_socket_file_with_a_listener_is_left_alone(network, path):
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(path)
        alive.listen()
        with pytest.raises(ListenError, match="in use"):
            async with network.listen(Kind.UNIX, path):
                pass
        assert exists(path)


async def test_a_file_that_is_no_socket_is_left_alone(network, path):
    write(path)
    with pytest.raises(ListenError):
        async with network.listen(Kind.UNIX, path):
            pass

    assert is_untouched(path)


async def test_a_foreign_socket_file_is_not_removed(network, path):
    async with network.listen(Kind.UNIX, path):
        write(path)

    assert is_untouched(path)


@pytest.mark.parametrize("where", ["nonsense", "127.0.0.1:port", "127.0.0.1:99999", "192.0.2.1:0"])
@pytest.mark.parametrize("kind", [Kind.TCP, Kind.WEBSOCKET])
async def test_a_foreign_place_cannot_be_listened_on(network, kind, where):
    with pytest.raises(ListenError, match="cannot listen on"):
        async with network.listen(kind, where):
            pass


async def test_a_unix_path_too_long_is_refused(network, tmp_path):
    where = str(tmp_path / ("x" * 200))
    with pytest.raises(ListenError):
        async with network.listen(Kind.UNIX, where):
            pass
    with pytest.raises(DialError):
        await network.dial(Kind.UNIX, where)


async def test_ipv6_addresses_stand_in_brackets(network):
    async with network.listen(Kind.TCP, "[::1]:0") as listener:
        assert listener.address.startswith("[::1]:")
        await trio.aclose_forcefully(await network.dial(Kind.TCP, listener.address))


async def test_frames_may_come_byte_by_byte(network, path):
    async with raw_peer(network, path) as (stream, link):
        for byte in b"\x00\x00\x00\x02hi\x00\x00\x00\x00":
            await stream.send_all(bytes([byte]))

        assert [await link.receive(), await link.receive()] == [b"hi", b""]


async def test_a_frame_over_the_limit_is_refused_before_it_is_read(network, path):
    async with raw_peer(network, path) as (stream, link):
        await stream.send_all(b"\x00\x00\x00\x02hi" + (MAX_FRAME_BYTES + 1).to_bytes(4, "big"))

        assert await link.receive() == b"hi"
        for _ in range(2):
            with pytest.raises(FrameTooLargeError):
                await link.receive()


async def test_a_peer_is_notified_of_its_oversized_frame_before_the_link_ends(network, path):
    async with raw_peer(network, path) as (stream, link):
        await stream.send_all(b"\x7f\xff\xff\xff")
        with pytest.raises(FrameTooLargeError):
            await link.receive()
        await link.send(b"413")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.aclose, CloseReason.TOO_LARGE)
            read = b"".join([data async for data in stream])
            await stream.aclose()

    assert read == b"\x00\x00\x00\x03413" + b"\xff\xff\x03\xf1"


@pytest.mark.parametrize(
    ("sent", "farewell"),
    [
        (b"", None),
        (b"\x00\x00", None),
        (b"\x00\x00\x00\x05hal", None),
        (b"\xff\xff\x03\xe9", CloseReason.GOING_AWAY),
        (b"\xff\xff\x12\x34", CloseReason.DONE),
    ],
    ids=["nothing", "half a length", "half a frame", "a farewell", "an unknown farewell"],
)
async def test_how_a_stream_ends_reports_whether_it_was_meant(network, path, sent, farewell):
    async with raw_peer(network, path) as (stream, link):
        await stream.send_all(sent)
        await stream.aclose()
        with pytest.raises(LinkBrokenError) as caught:
            await link.receive()

    assert caught.value.close_reason is farewell


async def test_the_rest_of_a_cancelled_send_goes_out_first(network, path):
    large = b"x" * MAX_FRAME_BYTES
    async with raw_peer(network, path) as (stream, link):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send_many, [large, large])
            await wait_all_tasks_blocked(0.05)
            nursery.cancel_scope.cancel()
        read = bytearray()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send, b"end")
            while not read.endswith(b"end"):
                read += await stream.receive_some()

    framed = MAX_FRAME_BYTES.to_bytes(4, "big") + large
    assert read == framed + framed + b"\x00\x00\x00\x03end"


async def test_a_port_is_shared_only_by_those_that_it_is_reserved_for(network):
    async with reserve_tcp("localhost:0") as address, AsyncExitStack() as opened:
        for _ in range(2):
            sharing = await opened.enter_async_context(open_system_network(shared=address))
            listening = sharing.listen(Kind.WEBSOCKET, address)
            listener = await opened.enter_async_context(listening)
            assert listener.address == f"ws://{address}"
        for other in (reserve_tcp(address), network.listen(Kind.WEBSOCKET, address)):
            with pytest.raises(ListenError, match="in use"):
                await opened.enter_async_context(other)
