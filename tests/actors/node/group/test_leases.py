"""A node keeps its lease over a short outage of the engine, and is fenced before another ends."""

import pytest
import trio

from actors.node.bus import NodeBus
from actors.node.group.messages import Head, write_head
from fsm.group.row_form import read_row
from specs.limits.group import GROUP_LEASE, GROUP_RETRY, GROUP_TERM
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from specs.trace import Op
from tests.support.node.group_world import open_group, resumed
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


async def test_a_lease_is_renewed_at_once_when_the_engine_is_back(autojump_clock):
    """A cluster of engines needs so long to find a leader; the next attempt would be too late."""
    async with open_group(1) as world:
        (one,) = world.nodes
        peer = await one.peer(RA)
        begun = await renewed(world)
        world.store.stop()
        await trio.sleep_until(begun + GROUP_TERM - GROUP_RETRY / 2)
        world.store.start()
        await trio.sleep(GROUP_LEASE)
        assert await one.states() == {RA: "open"}
        assert (await peer.control("ping")).code == 200


async def test_an_answered_renewal_passes_what_waits_for_the_bus(autojump_clock, monkeypatch):
    """What thousands of links leave that are cut at once may take longer than a lease."""
    handle = NodeBus.handle

    def idle(node):
        """Do nothing."""

    async def slow(self, message):
        if message is idle:
            await trio.sleep(0.01)
        await handle(self, message)

    monkeypatch.setattr(NodeBus, "handle", slow)
    async with open_group(1) as world:
        (one,) = world.nodes
        await one.peer(RA)
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(3_000):
                nursery.start_soon(one.node._bus.tell, idle)
        assert trio.current_time() - begun > 1.5 * GROUP_LEASE
        assert await one.states() == {RA: "open"}


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


async def test_a_node_that_was_fenced_takes_messages_of_lower_revisions(autojump_clock):
    """An engine that comes back empty gives low revisions again."""
    async with open_group(1) as world:
        (one,) = world.nodes
        peer = await one.peer(RB)
        (row,) = world.store.rows("node/")

        async def came(home):
            said = Message(home, MessageType.UPDATE, f"{RA}/sm", f"{RB}/sm", {"value": 1})
            lines = write_head(Head("n", 1, RB, RA, home)), encode(said)
            async with world.store.open() as other:
                await other.publish(row.key.removeprefix("node/"), [b"\n".join(lines)])
            with trio.fail_after(GROUP_LEASE):
                return (await peer.hear()).id

        assert await came(90) == 90
        world.store.stop()
        with pytest.raises(LinkError):
            await peer.read_on()
        world.store.start()
        await trio.sleep(2 * GROUP_LEASE)
        peer = await resumed(one, RB, peer.token)
        assert await came(5) == 5
