"""One who does not read harms nobody else (RELIABILITY L1, L2)."""

import pytest
import trio

from specs.limits.protocol import OUTBOX_BYTES, SESSION_QUEUE, WRITE_TIMEOUT
from specs.reply_code import LinkEnd
from tests.support.node.node_peer import RA, RB, RX, open_world
from transports.errors import CloseReason, LinkBrokenError
from transports.memory import FRAMES_IN_FLIGHT


async def drowned(world, size=40):
    """Send a runtime that does not read until there is no room; return both and the refusal."""
    ra, rb = await world.peer(RA), await world.peer(RB)
    while await ra.silence(0.01):
        for _ in range(50):
            await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=["x" * (size // 4)] * 4)
    return ra, rb, ra.heard[0]


async def test_a_peer_that_does_not_read_is_left_with_a_reason(autojump_clock):
    async with open_world() as world:
        _, rb, _ = await drowned(world)

        assert (await world.states())[RB] == "detached"
        with pytest.raises(LinkBrokenError) as broken:
            await rb.read_on()
        assert broken.value.close_reason is CloseReason.SLOW_CONSUMER


async def test_messages_beyond_the_queue_are_refused_with_503(autojump_clock):
    async with open_world() as world:
        _, _, refusal = await drowned(world)

        assert refusal.code == 503


async def test_bytes_count_as_well_as_messages(autojump_clock):
    async with open_world() as world:
        await drowned(world, size=48_000)

        queued = world.ops(to=f"{RB}/ua").count("queue")
        assert 0 < queued < OUTBOX_BYTES / 48_000


async def test_the_others_are_served_meanwhile(autojump_clock):
    async with open_world() as world:
        ra, _, _ = await drowned(world)
        rx = await world.peer(RX)

        request = await ra.post("read", f"{RA}/ua", f"{RX}/ua")

        assert await rx.hear() == request


async def test_one_that_stops_reading_is_left_although_little_waits(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        sent = []
        for _ in range(FRAMES_IN_FLIGHT + 3):  # the last ones have no room on the wire
            sent.append(await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=1))
            await trio.sleep(0.001)

        await trio.sleep(WRITE_TIMEOUT - 0.1)
        assert (await world.states())[RB] == "open"
        await trio.sleep(0.2)

        assert (await world.states())[RB] == "detached"
        with pytest.raises(LinkBrokenError) as broken:
            await rb.read_on()
        assert broken.value.close_reason is CloseReason.SLOW_CONSUMER
        assert world.ended() == {LinkEnd.SLOW_CONSUMER: 1}


async def test_messages_that_a_vanished_peer_did_not_read_wait_for_it(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        in_time = FRAMES_IN_FLIGHT + 1
        sent = []
        for _ in range(in_time + 50):
            sent.append(await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=1))
            await trio.sleep(0.001)
        world.network.cut(rb.link)
        again = await world.outsider(RB)
        await again.control("re-open", runtimeURL=RB, token=rb.token)

        heard = [await again.hear() for _ in range(50)]

        assert heard == sent[in_time:]


async def test_a_resumed_session_gets_queued_messages_in_order(autojump_clock):
    async with open_world() as world:
        _, rb, _ = await drowned(world)
        again = await world.outsider(RB)
        await again.control("re-open", runtimeURL=RB, token=rb.token)

        kept = [(await again.hear()).id for _ in range(SESSION_QUEUE)]

        assert kept == list(range(kept[0], kept[0] + SESSION_QUEUE))
