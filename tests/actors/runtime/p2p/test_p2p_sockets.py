"""P2P over real sockets of every kind, in real time."""

import pytest
import trio

from tests.support.runtime.domain import P2P_KINDS, DomainOptions, go_live, open_domain
from transports.system import open_system_network


@pytest.mark.parametrize("carrier", P2P_KINDS)
async def test_a_link_of_each_kind_carries_messages_in_both_directions(carrier):
    options = DomainOptions(kinds=(carrier,), network=open_system_network)
    async with open_domain("alice", "bob", options=options) as domain:
        with trio.fail_after(60):
            await go_live(domain)
            alice, bob = domain["alice"], domain["bob"]
            for number in range(50):
                assert (await alice.ask(bob, number)).via[0].endswith("/conn/1")
                assert (await bob.ask(alice, number)).via[0].endswith("/p2prequester/1")
