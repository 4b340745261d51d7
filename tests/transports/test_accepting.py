"""A crowd that connects at once is taken in by the batch."""

import socket

import trio

from specs.limits.protocol import ACCEPT_BATCH
from transports.sockets import bind_tcp, next_streams


def crowd(address, size):
    host, _, port = address.rpartition(":")
    return [socket.create_connection((host, int(port))) for _ in range(size)]


async def taken_in(listener, size):
    """Accept so many; return how many came at a time."""
    batches = []
    while sum(batches) < size:
        streams = await next_streams(listener, ACCEPT_BATCH)
        batches.append(len(streams))
        for stream in streams:
            await trio.aclose_forcefully(stream)
    return batches


async def test_waiting_connections_are_accepted_up_to_a_batch():
    listener, address = await bind_tcp("127.0.0.1:0")
    async with listener:
        dialled = crowd(address, 2 * ACCEPT_BATCH + 3)
        batches = await taken_in(listener, len(dialled))
        for one in dialled:
            one.close()

    assert batches == [ACCEPT_BATCH, ACCEPT_BATCH, 3]


async def test_the_listener_is_as_it_was_afterwards(autojump_clock):
    listener, address = await bind_tcp("127.0.0.1:0")
    async with listener:
        for _ in range(3):
            (dialled,) = crowd(address, 1)
            assert await taken_in(listener, 1) == [1]
            dialled.close()
        with trio.move_on_after(0.1) as waiting:
            await next_streams(listener, ACCEPT_BATCH)

    assert waiting.cancelled_caught
