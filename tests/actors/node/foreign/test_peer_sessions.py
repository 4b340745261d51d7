"""The session that another domain's node has here: it speaks for its domain only (S14, MN-18)."""

import trio

from specs.limits.protocol import PEER_OFFENCES, QUARANTINE
from specs.reply_code import DropReason
from tests.support.node.node_peer import open_world

NODE = "domain://msg-node.b.ex"
HX, OWN = "hyperty://b.ex/hx", "hyperty://a.ex/nobody"


async def test_a_node_that_goes_on_offending_is_shown_out_and_kept_out(autojump_clock):
    """SEC-08."""
    async with open_world() as world:
        peer = await world.peer(NODE)
        for _ in range(PEER_OFFENCES - 1):
            assert (await peer.ask("read", "hyperty://c.ex/h", OWN)).code == 401
        assert (await world.states())[NODE] == "open"
        await peer.post("update", "hyperty://c.ex/h", "hyperty://a.ex/o/changes")
        await trio.sleep(1)
        assert NODE not in await world.states()
        assert world.node.counters.drops[DropReason.UNKNOWN_SOURCE] == 1

        again = await world.outsider(NODE)
        assert (await again.control("open", runtimeURL=NODE)).code == 403
        await trio.sleep(QUARANTINE)
        assert (await (await world.outsider(NODE)).control("open", runtimeURL=NODE)).code == 200
