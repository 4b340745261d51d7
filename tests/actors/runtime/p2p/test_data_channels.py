"""Direct links by data channels: the signalling in virtual time, and the real stack.

In memory, data channels are negotiated as real ones are (`transports.webrtc.memory`).
"""

from contextlib import asynccontextmanager

import pytest
import trio

from fsm.p2p.dialling import WHENEVER_POSSIBLE, LinkPolicy, P2pUse, PeerPolicy
from tests.support.link_world import pair
from tests.support.runtime.channels import open_shared_network
from tests.support.runtime.domain import DOMAIN, DomainOptions, go_live, in_memory, open_domain
from transports.link import Kind
from transports.system import open_system_network
from transports.webrtc.process import is_webrtc_installed

needs_webrtc = pytest.mark.skipif(
    not is_webrtc_installed(), reason="the extra 'webrtc' is not installed"
)

OPTIONS = DomainOptions(kinds=(Kind.WEBRTC,))
REAL = DomainOptions(kinds=(Kind.WEBRTC,), network=open_shared_network)
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
async def test_a_real_data_channel_carries_messages_of_any_size():
    async with open_domain("alice", "bob", options=REAL) as domain:
        with trio.fail_after(60):
            await go_live(domain)
            await in_each_direction(domain, 20)
            large = "x" * 500_000
            answer = await domain["alice"].ask(domain["bob"], large)
            assert answer.value == large


@needs_webrtc
async def test_an_object_converges_by_a_real_data_channel():
    async with pair(options=REAL, p2p=True) as two:
        with trio.fail_after(60):
            for n in range(1, 51):
                await two.obj.set("n", n)
            await two.follows(51)
        assert two.copy.value == {"n": 50}
        assert two.at_node() == 0


async def test_a_cut_channel_comes_back_by_a_new_negotiation(autojump_clock):
    """t8: nothing of the channel before is tried again, neither end is dialled in place."""
    async with open_domain("alice", "bob", options=OPTIONS) as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        for negotiation in (2, 3):
            domain.cut_links(Kind.WEBRTC)
            await alice.wait_for("disconnected", bob)
            assert (await alice.ask(bob, negotiation)).code == 200
            await alice.wait_for("live", bob)
            await bob.wait_for("live", alice)
            await in_each_direction(domain, 1)
        again = ["disconnected", "in-progress", "live"]
        assert states(alice) == ["created", "in-progress", "live", *again, *again]
        assert len(domain.network.open_wires(Kind.WEBRTC)) == 1
        assert bob.hyperty.heard[1:3] == [2, 0]


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


async def test_the_first_kind_that_both_ends_have_is_used(autojump_clock):
    both = (Kind.WEBRTC, Kind.TCP)
    options = DomainOptions(more={"alice": {"kinds": both}, "bob": {"kinds": both[::-1]}})
    async with open_domain("alice", "bob", options=options) as domain:
        await go_live(domain)
        assert [len(domain.network.open_wires(kind)) for kind in both] == [1, 0]


@pytest.mark.parametrize("lacking", ["alice", "bob"])
async def test_an_end_without_data_channels_is_linked_by_another_kind(lacking, autojump_clock):
    more = {lacking: {"kinds": (Kind.TCP,)}}
    options = DomainOptions(kinds=(Kind.WEBRTC, Kind.TCP), more=more)
    async with open_domain("alice", "bob", options=options) as domain:
        await go_live(domain)
        assert domain.network.open_wires(Kind.WEBRTC) == []
        await in_each_direction(domain, 1)


async def test_ends_without_a_common_kind_talk_by_the_node(autojump_clock):
    options = DomainOptions(kinds=(Kind.WEBRTC,), more={"bob": {"kinds": (Kind.TCP,)}})
    async with open_domain("alice", "bob", options=options) as domain:
        assert (await domain["alice"].ask(domain["bob"], "first")).code == 200
        await trio.sleep(60)
        assert "live" not in states(domain["alice"])
        assert (await domain["alice"].ask(domain["bob"], "second")).code == 200


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


@asynccontextmanager
async def without_channels():
    async with in_memory() as network:
        network.negotiate = lambda terms: super(type(network), network).negotiate(terms)
        yield network


async def test_a_network_without_data_channels_offers_none_and_the_others(autojump_clock):
    options = DomainOptions(kinds=(Kind.WEBRTC, Kind.TCP), network=without_channels)
    async with open_domain("alice", "bob", options=options) as domain:
        await go_live(domain)
        await in_each_direction(domain, 1)
