"""A node keeps its lease over a short outage of the engine, and is fenced before another ends."""

import pytest
import trio

from actors.node.group.messages import Head, write_head
from fsm.group.row_form import read_row
from specs.limits.group import GROUP_LEASE, GROUP_TERM
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from specs.trace import Op
from tests.support.node.group_world import open_group
from tests.support.node.node_peer import RA, RB
from transports.codec import encode
from transports.errors import LinkError


async def renewed(world) -> float:
    """Wait until the lease of the only node is renewed; return when."""
    (before,) = world.store.rows("node/")

    async def is_so() -> bool:
        return world.store.row(before.key).revision != before.revision

    await world.until(is_so, step=0.01)
    return trio.current_time()


FAULTS = {
    "down": lambda store: store.stop(),
    "slow": lambda store: store.slow(4.0),
    "writes lost": lambda store: store.swallow(1_000),
    "answers lost": lambda store: store.answer_no_more(1_000),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_node_has_left_its_links_before_its_lease_can_end(autojump_clock, fault):
    """By its own clock: until then no other node takes it for gone."""
    async with open_group(1) as world:
        (one,) = world.nodes
        peer = await one.peer(RA)
        begun = await renewed(world)
        fault(world.store)
        with trio.fail_after(GROUP_LEASE), pytest.raises(LinkError):
            await peer.read_on()
        assert trio.current_time() - begun <= GROUP_TERM
        assert len(world.store.rows("node/")) == 1
        assert await one.states() == {}


async def test_what_was_under_way_from_a_node_for_longer_than_its_lease_is_dropped(autojump_clock):
    """I-B7: its runtimes have sent more by other nodes since."""
    async with open_group(1) as world:
        (row,) = world.store.rows("node/")
        dead = read_row(row.key, row.value).holder
        two = await world.node()
        peer = await two.peer(RB)
        await world.kill(world.nodes[0])

        async def is_gone() -> bool:
            return len(world.store.rows("node/")) == 1

        await world.until(is_gone)
        (alive,) = world.store.rows("node/")
        async with world.store.open() as late:
            for number, boot in enumerate([dead.boot, dead.boot + 1], 1):
                said = Message(number, MessageType.UPDATE, f"{RA}/sm", f"{RB}/sm", {"value": 1})
                lines = write_head(Head(dead.node, boot, RB, RA)), encode(said)
                await late.publish(alive.key.removeprefix("node/"), [b"\n".join(lines)])
            with trio.fail_after(GROUP_LEASE):
                assert (await peer.hear()).id == 2
        assert two.node.counters.drops[DropReason.SESSION_GONE] == 1
        (dropped,) = [one.link for one in two.tracer.lines if one.op == Op.DROP]
        assert dropped == f"{dead.node}>{alive.key.removeprefix('node/')}"
