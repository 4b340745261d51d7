"""Links whose listeners have moved for good come back by a new offer (P2P-16, t8)."""

import trio

from tests.actors.runtime.p2p.set_up.moving_network import moving_in_memory
from tests.support.runtime.domain import DomainOptions, go_live, open_domain

MESSAGES = 60
PAUSE = 0.25
"""Seconds between two messages: the last ones are sent when the link is long back."""


async def talk(one, other):
    """Send to the other, all the while."""
    for number in range(MESSAGES):
        await one.post(other, number)
        await trio.sleep(PAUSE)


async def move_and_talk(domain, lose):
    """Both send while their link is lost with all places where it could be dialled."""
    await go_live(domain)
    alice, bob = domain["alice"], domain["bob"]
    alice.hyperty.heard.clear()
    bob.hyperty.heard.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk, alice, bob)
        nursery.start_soon(talk, bob, alice)
        await trio.sleep(1.1)
        domain.network.move()
        await lose(domain.network)
    await trio.sleep(1)
    assert alice.hyperty.heard == list(range(MESSAGES))
    assert bob.hyperty.heard == list(range(MESSAGES))


async def cut(network):
    await network.cut()


async def test_new_listeners_take_the_place_of_the_old_ones(autojump_clock):
    options = DomainOptions(network=moving_in_memory)
    async with open_domain("alice", "bob", options=options) as domain:
        await move_and_talk(domain, cut)
        places = domain.network.places
        assert len(places) == len(set(places)) == 4
        memory = domain.network._network
        assert {place for _, place in memory._listeners} & set(places) == set(places[2:])
