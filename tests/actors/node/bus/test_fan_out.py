"""A message for more sessions than it may be given to is given to none (S12)."""

from actors.node.limits import NodeLimits
from specs.reply_code import DropReason
from tests.support.node.node_peer import RA, RB, RX, SM, open_world

RUNTIMES = (RA, RB, RX)

MOST = 2


async def subscribed(world, count):
    """Let so many runtimes subscribe to an object of the first; return them, and the path."""
    peers = [await world.peer(runtime) for runtime in RUNTIMES]
    (obj,) = await peers[0].allocate("comm")
    path = f"{obj}/children/chat"
    for peer in peers[:count]:
        answer = await peer.ask("subscribe", f"{peer.runtime}/sm", SM, resources=[path])
        assert answer.code == 200
    return peers, obj, path


async def test_a_fan_out_above_the_limit_is_refused_for_all_and_counted(autojump_clock):
    async with open_world(limits=NodeLimits(fan_out=MOST)) as world:
        peers, obj, path = await subscribed(world, MOST + 1)

        await peers[0].post("update", obj, path, value=1)

        assert all([await peer.silence() for peer in peers])
        assert world.node.counters.drops[DropReason.OVERFLOW] == 1
