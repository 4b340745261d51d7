"""Direct links by data channels: the signalling in virtual time, and the real stack.

In memory, data channels are negotiated as real ones are (`transports.webrtc.memory`).
"""

import pytest
import trio

from fsm.p2p.link_policy import WHENEVER_POSSIBLE, LinkPolicy, P2pUse, PeerPolicy
from tests.support.runtime.domain import DOMAIN, DomainOptions, go_live, open_domain
from transports.link import Kind
from transports.system import open_system_network
from transports.webrtc.extra import is_webrtc_installed

needs_webrtc = pytest.mark.skipif(
    not is_webrtc_installed(), reason="the extra 'webrtc' is not installed"
)

OPTIONS = DomainOptions(kinds=(Kind.WEBRTC,))
OWN = DomainOptions(kinds=(Kind.WEBRTC,), network=open_system_network)


def states(member, role="requester"):
    return [state for name, state in member.steps() if name == role]


async def in_each_direction(domain, count):
    alice, bob = domain["alice"], domain["bob"]
    for number in range(count):
        assert (await alice.ask(bob, number)).via[0].endswith("/conn/1")
        assert (await bob.ask(alice, number)).via[0].endswith("/p2prequester/1")


async def test_a_data_channel_carries_messages_in_both_directions(autojump_clock):
    """P2P-12: without the candidates that are trickled it does not open."""
    async with open_domain("alice", "bob", options=OPTIONS) as domain:
        await go_live(domain)
        await in_each_direction(domain, 3)
        (wire,) = domain.network.open_wires(Kind.WEBRTC)
    assert not wire.is_open


@needs_webrtc
async def test_a_real_process_that_dies_takes_no_link_for_good():
    """SEC-26: the process of WebRTC is killed: messages go by the node, then by a new channel."""
    async with open_domain("alice", "bob", options=OWN) as domain:
        with trio.fail_after(60):
            await go_live(domain)
            alice, bob = domain["alice"], domain["bob"]
            domain.network._webrtc._control.shutdown(2)
            await alice.wait_for("disconnected", bob)
            assert (await alice.ask(bob, "by the node")).code == 200
            await alice.wait_for("live", bob)
            await bob.wait_for("live", alice)
            assert (await alice.ask(bob, "again")).via[0].endswith("/conn/1")


@pytest.mark.parametrize("is_named", [True, False])
async def test_a_private_address_is_told_to_peers_that_are_named_only(is_named, autojump_clock):
    """SEC-25, T10: an offered candidate reveals the network, and a tried one reaches into it."""
    named = LinkPolicy(P2pUse.WHENEVER_POSSIBLE, (PeerPolicy(DOMAIN, P2pUse.WHENEVER_POSSIBLE),))
    policy = named if is_named else WHENEVER_POSSIBLE
    options = DomainOptions(
        kinds=(Kind.WEBRTC,),
        hosts={"alice": "10.0.0.7", "bob": "10.0.0.8"},
        links={"alice": policy, "bob": policy},
    )
    async with open_domain("alice", "bob", options=options) as domain:
        await domain["alice"].ask(domain["bob"], "first")
        await trio.sleep(60)
        assert ("live" in states(domain["alice"])) is is_named
