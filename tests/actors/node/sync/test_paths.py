"""Who is delivered what (MN-14..MN-16, I-M5..I-M7, I-M14)."""

from specs.reply_code import DropReason
from tests.support.node.node_peer import RA, RB, SM, open_world


async def test_after_an_unsubscribe_nothing_more_comes(autojump_clock):
    """MSG-14."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (obj,) = await ra.allocate("comm")
        path = [f"{obj}/changes"]
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=path)
        assert (await rb.ask("unsubscribe", f"{RB}/sm", SM, resources=path)).code == 200
        assert (await rb.ask("unsubscribe", f"{RB}/sm", SM, resources=path)).code == 200

        await ra.post("update", obj, f"{obj}/changes", version=2)

        assert await rb.silence()
        assert world.node.counters.drops[DropReason.NO_TARGET] == 1
