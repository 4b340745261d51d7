"""Who sends too much is read later, and loses nothing (RELIABILITY L5)."""

import trio

from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate
from tests.support.node.node_peer import RA, RB, RX, open_world

RATE = Rate(100.0, 200)
SLOW = NodeLimits(messages=RATE)


async def flood(peer, to, count):
    return [await peer.post("create", f"{peer.runtime}/ua", to, value=n) for n in range(count)]


async def test_others_are_not_held_up_by_one_that_is_paced(autojump_clock):
    async with open_world(limits=SLOW) as world, trio.open_nursery() as nursery:
        ra, rx = await world.peer(RA), await world.peer(RX)
        nursery.start_soon(flood, ra, f"{RB}/ua", 2000)
        await trio.sleep(1.0)
        began = trio.current_time()

        assert (await rx.control("ping")).code == 200
        assert trio.current_time() - began < 0.1
        nursery.cancel_scope.cancel()
