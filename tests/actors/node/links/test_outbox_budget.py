"""What waits in a node altogether is bounded; who holds most gives way (RELIABILITY L2, L3)."""

import math

import pytest
import trio

from actors.kit.counters import Gauge
from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate
from fsm.session.outbox_budget import weight
from specs.reply_code import LinkEnd
from tests.support.node.node_peer import RA, RB, RX, SM, open_world
from transports.errors import CloseReason, LinkBrokenError
from transports.memory import FRAMES_IN_FLIGHT

BUDGET = weight(98, 98 * 1020)
"""Memory of as many messages of `pile_up` as 100 kB of lines are."""
LIMITS = NodeLimits(outbox_budget=BUDGET, messages=Rate(math.inf, 1))
KILOBYTE = "x" * 900


async def clog(ra, to):
    """Fill what is between the node and a peer that does not read."""
    for _ in range(FRAMES_IN_FLIGHT + 1):
        await ra.post("create", f"{RA}/ua", f"{to}/ua", value=0)
        await trio.sleep(0.001)


async def pile_up(ra, to, count, type_="create"):
    for _ in range(count):
        await ra.post(type_, f"{RA}/ua", f"{to}/ua", value=KILOBYTE)
    await trio.sleep(0.01)


def waiting(world):
    return world.node.counters.gauges[Gauge.OUTBOX_BYTES]()


async def refusals(ra):
    heard = []
    while await ra.silence(0.01) is False:
        heard.append(ra.heard.pop(0))
    return heard


async def full_world(world):
    """RB's outbox holds two thirds of the budget, RX's a third: the next message is too much."""
    ra, rb, rx = await world.peer(RA), await world.peer(RB), await world.peer(RX)
    await clog(ra, RB)
    await clog(ra, RX)
    await pile_up(ra, RB, 60)
    await pile_up(ra, RX, 30)
    assert BUDGET * 0.9 < waiting(world) <= BUDGET
    return ra, rb, rx


async def test_the_link_that_holds_most_is_closed_as_a_slow_consumer(autojump_clock):
    async with open_world(limits=LIMITS) as world:
        ra, rb, _ = await full_world(world)
        await pile_up(ra, RX, 10)

        states = await world.states()
        assert (states[RB], states[RX]) == ("detached", "open")
        assert world.ended() == {LinkEnd.SHED: 1}
        with pytest.raises(LinkBrokenError) as broken:
            await rb.read_on()
        assert broken.value.close_reason is CloseReason.SLOW_CONSUMER


async def test_messages_for_detached_sessions_count_too(autojump_clock):
    async with open_world(limits=LIMITS) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await rb.link.aclose()
        await trio.sleep(0.01)
        await pile_up(ra, RB, 90)
        assert waiting(world) > BUDGET * 0.9

        await pile_up(ra, RB, 20)
        assert waiting(world) < BUDGET * 0.2
        assert {one.code for one in await refusals(ra)} == {503}


async def subscribers(world, ra, count, things=1):
    """RA publishes objects; so many others subscribe to them by turns, and nobody reads on."""
    published, peers = await ra.allocate("comm", things), []
    for number in range(count):
        peer = await world.peer(f"hyperty-runtime://a.ex/s{number}")
        path = f"{published[number % things]}/changes"
        answer = await peer.ask("subscribe", f"{peer.runtime}/sm", SM, resources=[path])
        assert answer.code == 200
        peers.append(peer)
    for thing in published:
        for number in range(FRAMES_IN_FLIGHT + 1):
            await publish(ra, thing, 1, value=number)
    return published, peers


async def publish(ra, thing, count, value=KILOBYTE):
    for _ in range(count):
        await ra.post("update", thing, f"{thing}/changes", value=value)
    await trio.sleep(0.001)


async def test_an_update_for_many_counts_once(autojump_clock):
    """L2: 30 updates wait for each of 20 subscribers, 600 in all; the budget has room for 98."""
    async with open_world(limits=LIMITS) as world:
        ra = await world.peer(RA)
        (thing,), _ = await subscribers(world, ra, 20)

        await publish(ra, thing, 30)

        assert world.ended() == {}
        assert weight(30, 30 * 1020) < waiting(world) < BUDGET
