"""The node of another domain speaks for many: it has limits of its own (RELIABILITY T18)."""

import pytest
import trio

from actors.kit.counters import Counters
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from actors.node.links.bounds import Bounds
from fsm.limits.rates import Rate
from specs.identity import Identity
from specs.limits.protocol import MESSAGE_BURST, NODE_BURST, NODE_RATE
from tests.support.node.node_peer import RA, RB, open_world

NODE = "domain://msg-node.b.ex"
HX = "hyperty://b.ex/hx"
PEER = Identity(user="user://b.ex/node", issuer="b.ex", until=0.0)


async def hear_from(world, runtime, from_, count):
    """Let a runtime or a node send as fast as it can; return the seconds it took to come."""
    rb = await world.peer(RB)
    (address,) = await rb.allocate()
    peer = await world.peer(runtime)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, peer, from_, address, count)
        assert [(await rb.hear()).body["value"] for _ in range(count)] == list(range(count))
    return trio.current_time() - began


async def flood(peer, from_, to, count):
    for number in range(count):
        await peer.post("create", from_, to, value=number)


async def test_a_node_may_send_what_a_runtime_may_not(autojump_clock):
    limits = NodeLimits(messages=Rate(100.0, 200))
    async with open_world(limits=limits) as world:
        assert await hear_from(world, NODE, HX, 1000) < 0.1

    async with open_world(limits=limits) as world:
        took = await hear_from(world, RA, f"{RA}/ua", 1000)
        assert took == pytest.approx((1000 - 200) / 100.0, abs=0.3)


async def test_a_node_is_read_at_its_rate_after_a_burst(autojump_clock):
    async with open_world(limits=NodeLimits(nodes=Rate(50.0, 100))) as world:
        took = await hear_from(world, NODE, HX, 400)
        assert took == pytest.approx((400 - 100) / 50.0, abs=0.3)


async def test_a_runtime_that_waits_for_each_answer_is_not_delayed(autojump_clock):
    async with open_world() as world:
        assert await hear_from(world, RA, f"{RA}/ua", 2000) < 0.1


async def test_the_rate_of_one_node_is_bounded(autojump_clock):
    bounds = Bounds(DEFAULT_LIMITS, frozenset(), Counters())

    assert bounds.pause(NODE, None, NODE_BURST) == 0.0
    assert bounds.pause(NODE, None, 500) == pytest.approx(500 / NODE_RATE)


async def test_all_sessions_of_one_nodes_identity_share_its_rate(autojump_clock):
    bounds = Bounds(DEFAULT_LIMITS, frozenset(), Counters())

    assert bounds.pause(NODE, PEER, NODE_BURST) == 0.0
    assert bounds.pause("domain://msg-node.c.ex", PEER, 500) == pytest.approx(500 / NODE_RATE)


async def test_messages_of_a_node_do_not_count_against_a_runtime(autojump_clock):
    bounds = Bounds(DEFAULT_LIMITS, frozenset(), Counters())
    bounds.pause(NODE, PEER, 3 * NODE_BURST)

    assert bounds.pause(RA, PEER, MESSAGE_BURST) == 0.0


@pytest.mark.parametrize("runtime", [f"{NODE}/sm", f"{NODE}/registry"])
async def test_a_part_of_a_node_is_no_node(autojump_clock, runtime):
    bounds = Bounds(DEFAULT_LIMITS, frozenset(), Counters())

    assert bounds.pause(runtime, None, 2 * MESSAGE_BURST) > 0.0
