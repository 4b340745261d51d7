"""The dialling end of a WebSocket, against servers that are not ours or not kind."""

from contextlib import asynccontextmanager, suppress

import pytest
import trio
import trio_websocket
from trio.testing import wait_all_tasks_blocked

from specs.limits.protocol import DIAL_TIMEOUT, MAX_FRAME_BYTES
from transports.errors import CloseReason, DialError, FrameTooLargeError, LinkBrokenError
from transports.link import Kind
from transports.system import open_system_network


@pytest.fixture
async def network():
    async with open_system_network() as network:
        yield network


@asynccontextmanager
async def raw_server(serve):
    """Serve TCP connections by hand; give the URL to dial."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        yield f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}/link?x=1"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def stock_server(serve):
    """Serve WebSockets by trio-websocket; give the URL to dial."""

    async def greet(request):
        await serve(
            await request.accept(subprotocol=next(iter(request.proposed_subprotocols), None))
        )

    async with trio.open_nursery() as nursery:
        server = await nursery.start(trio_websocket.serve_websocket, greet, "127.0.0.1", 0, None)
        yield f"ws://127.0.0.1:{server.port}/link"
        nursery.cancel_scope.cancel()


async def hang_up(stream):
    await stream.receive_some()
    await stream.aclose()


async def say_nothing(stream):
    await trio.sleep_forever()


async def speak_garbage(stream):
    await stream.send_all(b"SSH-2.0-OpenSSH_9\r\n\r\n")
    await trio.sleep_forever()


async def refuse(stream):
    await stream.receive_some()
    await stream.send_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    await trio.sleep_forever()


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (hang_up, "hung up"),
        (say_nothing, "no answer"),
        (speak_garbage, "hung up"),
        (refuse, "HTTP 403"),
    ],
)
async def test_a_server_that_is_none_cannot_be_dialled(network, serve, reason, hasty_clock):
    async with raw_server(serve) as url:
        with trio.fail_after(DIAL_TIMEOUT + 2), pytest.raises(DialError, match=reason):
            await network.dial(Kind.WEBSOCKET, url)


async def test_a_cancelled_dial_leaves_nothing_open(network):
    async with raw_server(say_nothing) as url:
        with trio.move_on_after(0.1) as patience:
            await network.dial(Kind.WEBSOCKET, url)

    assert patience.cancelled_caught


async def test_a_server_that_ignores_our_subprotocol_is_left(network):
    async def greet(request):
        connection = await request.accept()
        with pytest.raises(trio_websocket.ConnectionClosed):
            await connection.get_message()

    async with trio.open_nursery() as nursery:
        server = await nursery.start(trio_websocket.serve_websocket, greet, "127.0.0.1", 0, None)
        with pytest.raises(DialError, match="does not speak"):
            await network.dial(Kind.WEBSOCKET, f"ws://127.0.0.1:{server.port}/link")
        nursery.cancel_scope.cancel()


async def test_a_stock_server_is_spoken_to(network):
    async def echo(connection):
        await connection.send_message(await connection.get_message())
        await connection.aclose(1001, "bye")

    async with stock_server(echo) as url, await network.dial(Kind.WEBSOCKET, url, None) as link:
        await link.send(b"hello")
        assert await link.receive() == b"hello"
        with pytest.raises(LinkBrokenError) as caught:
            await link.receive()

    assert caught.value.close_reason is CloseReason.GOING_AWAY


@pytest.mark.parametrize("frame", ["x" * (MAX_FRAME_BYTES + 1), "\u00fc" * MAX_FRAME_BYTES])
async def test_an_oversized_frame_is_refused_and_may_be_answered(network, frame):
    answers = []

    async def serve(connection):
        await connection.send_message(frame)
        answers.append(await connection.get_message())

    async with stock_server(serve) as url, await network.dial(Kind.WEBSOCKET, url) as link:
        for _ in range(2):
            with pytest.raises(FrameTooLargeError):
                await link.receive()
        await link.send(b"413")
        await link.aclose(CloseReason.TOO_LARGE)

    assert answers == ["413"]


async def test_a_frame_beyond_all_bounds_ends_the_link(network):
    async def serve(connection):
        with suppress(trio_websocket.ConnectionClosed):
            await connection.send_message("x" * 10 * MAX_FRAME_BYTES)
            await connection.get_message()

    async with stock_server(serve) as url, await network.dial(Kind.WEBSOCKET, url) as link:
        with pytest.raises(LinkBrokenError) as caught:
            await link.receive()

    assert caught.value.close_reason is CloseReason.TOO_LARGE


async def test_a_send_cancelled_halfway_breaks_the_link(network):
    async def ignore(connection):
        await trio.sleep_forever()

    async with stock_server(ignore) as url:
        link = await network.dial(Kind.WEBSOCKET, url)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send_many, [b"x" * MAX_FRAME_BYTES] * 100)
            await wait_all_tasks_blocked(0.1)
            nursery.cancel_scope.cancel()
        with pytest.raises(LinkBrokenError, match="half a frame"):
            await link.send(b"more")
        await link.aclose()


async def test_links_end_with_their_network():
    async def ignore(connection):
        with pytest.raises(trio_websocket.ConnectionClosed):
            await connection.get_message()

    async with stock_server(ignore) as url:
        async with open_system_network() as network:
            link = await network.dial(Kind.WEBSOCKET, url)
        with pytest.raises(LinkBrokenError):
            await link.receive()
        await link.aclose()
