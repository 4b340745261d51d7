"""A node that goes down in order, without others: what came before peers knew is handled."""

import pytest
import trio

from specs.limits.node import READ_OUT
from specs.reply_code import DropReason
from tests.support.node.node_peer import DR, RA, RB, open_world
from transports.errors import CloseReason, LinkBrokenError


async def said_goodbye(peer):
    """Wait until the node has said goodbye over a link, which stays open for what is sent."""
    with pytest.raises(LinkBrokenError) as caught:
        await peer.read_on()
    assert caught.value.close_reason is CloseReason.GOING_AWAY


async def registered(peer):
    """Register an address; return it."""
    (url,) = await peer.allocate()
    record = {"url": url, "runtime": RA, "resources": ["chat"], "dataSchemes": []}
    answer = await peer.ask("create", f"{RA}/registry", DR, value=record)
    assert answer.code == 200, answer.body
    return url


async def test_what_was_under_way_when_a_node_said_goodbye_is_done(tmp_path):
    """The request was written before its runtime read the goodbye: the next process knows it."""
    files = {"registry": tmp_path / "records", "state": tmp_path / "state"}

    async def late(peer, url):
        await said_goodbye(peer)
        await peer.post("update", f"{RA}/registry", DR, resource=url, attribute="name", value="n")
        await peer.link.aclose()

    async with trio.open_nursery() as nursery, open_world(**files) as world:
        peer = await world.peer(RA)
        url = await registered(peer)
        nursery.start_soon(late, peer, url)
    async with open_world(**files) as world:
        other = await world.peer(RB)
        answer = await other.ask("read", f"{RB}/registry", DR, resource=url, attribute="name")
        assert answer.body["value"] == ["n"]


async def test_a_request_that_nobody_can_get_any_more_is_counted(autojump_clock):
    async def late(peer):
        await said_goodbye(peer)
        await peer.post("read", f"{RA}/sm", f"{RB}/sm")
        await peer.link.aclose()

    async with trio.open_nursery() as nursery, open_world() as world:
        peer = await world.peer(RA)
        await world.peer(RB)
        nursery.start_soon(late, peer)
    assert world.node.drops().counts == {DropReason.SESSION_GONE: 1}


async def test_a_node_waits_for_no_peer_that_answers_its_goodbye(autojump_clock):
    async with open_world() as world:
        await world.peer(RA)
        await world.outsider(RB)
        begun = trio.current_time()
    assert trio.current_time() == begun


async def test_a_node_does_not_wait_long_for_peers_that_do_not_answer(autojump_clock):
    async with open_world() as world:
        await world.peer(RA)
        world.links.clear()  # nobody reads this one
        begun = trio.current_time()
    assert READ_OUT <= trio.current_time() - begun < 2
