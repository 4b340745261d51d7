"""One who does not read harms nobody else (RELIABILITY L1, L2)."""

from specs.limits.protocol import OUTBOX_BYTES
from tests.support.node.node_peer import RA, RB, open_world


async def drowned(world, size=40):
    """Send a runtime that does not read until there is no room; return both and the refusal."""
    ra, rb = await world.peer(RA), await world.peer(RB)
    while await ra.silence(0.01):
        for _ in range(50):
            await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=["x" * (size // 4)] * 4)
    return ra, rb, ra.heard[0]


async def test_bytes_count_as_well_as_messages(autojump_clock):
    async with open_world() as world:
        await drowned(world, size=48_000)

        queued = world.ops(to=f"{RB}/ua").count("queue")
        assert 0 < queued < OUTBOX_BYTES / 48_000
