"""Upstream's plain stubs at a node that lets them in (C-65, MSG-18, N3)."""

import pytest
import trio

from specs.limits.protocol import SESSION_IDLE
from tests.support.node.legacy_peer import OLD_INSIDE, plain_peer
from tests.support.node.node_peer import ALLOCATION, open_world
from transports.errors import CloseReason, LinkBrokenError


def old_world(**config):
    return open_world(allow_legacy=True, **config)


async def farewell(peer):
    """Return how the node leaves a peer that has heard everything else."""
    with pytest.raises(LinkBrokenError) as left, trio.fail_after(30):
        await peer.read_on()
    return left.value.close_reason


async def test_the_newest_of_several_connections_has_the_session(autojump_clock):
    async with old_world() as world:
        first = await plain_peer(world)
        address = await first.allocate()
        second = await plain_peer(world, OLD_INSIDE)

        assert await farewell(first) is CloseReason.REFUSED
        answer = await second.ask(id=1, type="create", from_=address, to=ALLOCATION, body={})
        assert answer["body"]["code"] == 400
        assert await world.states() == {OLD_INSIDE: "open"}


async def test_one_that_does_not_come_back_is_forgotten(autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)
        await old.link.aclose()

        await trio.sleep(SESSION_IDLE + 1)

        assert await world.states() == {}
        assert (await world.peer(OLD_INSIDE)).token
