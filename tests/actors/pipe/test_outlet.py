"""What waits to be written to a pipe is bounded, whoever does not read it (R11)."""

import pytest
import trio
import trio.testing

from actors.pipe.outlet import Outlet
from actors.pipe.plan import PipeMessage, Word, read_message
from specs.limits.foreign_code import SANDBOX_UNREAD, SANDBOX_UNREAD_BYTES
from specs.limits.protocol import FRAME_MESSAGES, MAX_MESSAGE_BYTES, OUTBOX_MESSAGES
from transports.link import Kind, Upgrade
from transports.memory import Wire
from transports.sockets import open_background


@pytest.fixture
async def pipe(autojump_clock):
    """An outlet that is written, and the other end of its pipe."""
    wire = Wire(Kind.UNIX, "pipe", 1, Upgrade())
    outlet = Outlet(wire.dialler)
    async with open_background() as background:
        background.start_soon(outlet.run)
        yield outlet, wire.acceptor


@pytest.mark.parametrize(
    ("said", "most"),
    [
        (PipeMessage(Word.TOOK, 1), SANDBOX_UNREAD),
        (
            PipeMessage(Word.HAND, rest=bytes(MAX_MESSAGE_BYTES)),
            SANDBOX_UNREAD_BYTES // MAX_MESSAGE_BYTES,
        ),
    ],
    ids=["words", "bytes"],
)
async def test_a_reader_with_too_many_unread_messages_is_sent_nothing(
    pipe, said, most, autojump_clock
):
    outlet, _ = pipe
    for _ in range(most - 1):
        outlet.put(said)
    assert not outlet.is_overrun
    for _ in range(2 + FRAME_MESSAGES):
        outlet.put(said)
    assert outlet.is_overrun
    assert outlet.is_closed
    assert not outlet.offer(said)
    with trio.fail_after(20):
        await outlet.send(said)
        await outlet.wait_flushed()


async def test_a_wait_for_space_ends_with_the_writer(pipe, autojump_clock):
    outlet, _ = pipe
    while outlet.offer(PipeMessage(Word.TOOK, 1)):
        pass
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outlet.send, PipeMessage(Word.TOOK, 2))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(SANDBOX_UNREAD):
            outlet.put(PipeMessage(Word.TOOK, 3))
        with trio.fail_after(20):
            while nursery.child_tasks:
                await trio.lowlevel.checkpoint()


async def test_a_reader_gets_everything_in_order_for_any_amount(pipe, autojump_clock):
    outlet, far = pipe
    count = 2 * SANDBOX_UNREAD
    heard = []

    async def read():
        while len(heard) < count:
            heard.append(read_message(await far.receive()).number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for number in range(1, count + 1):
            await outlet.send(PipeMessage(Word.TOOK, number))
    assert heard == list(range(1, count + 1))
    assert not outlet.is_overrun
    assert count > OUTBOX_MESSAGES
