"""One who does not read harms nobody else (RELIABILITY L1, L2)."""

import pytest

from specs.limits import OUTBOX_BYTES, SESSION_QUEUE
from tests.support.node_peer import RA, RB, RX, open_world
from transports.errors import Farewell, LinkBrokenError


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
        assert broken.value.farewell is Farewell.SLOW_CONSUMER


async def test_what_has_no_room_is_refused_with_413(autojump_clock):
    async with open_world() as world:
        _, _, refusal = await drowned(world)

        assert refusal.code == 413


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


async def test_who_comes_back_gets_what_was_kept_in_order(autojump_clock):
    async with open_world() as world:
        _, rb, _ = await drowned(world)
        again = await world.stranger(RB)
        await again.control("re-open", runtimeURL=RB, token=rb.token)

        kept = [(await again.hear()).id for _ in range(SESSION_QUEUE)]

        assert kept == list(range(kept[0], kept[0] + SESSION_QUEUE))
