"""Runtimes that want links to some, wait for them, or do without (RES-06, RES-09, RES-10, T11)."""

import pytest
import trio

from fsm.judge.trace_line import Verdict
from fsm.p2p import link_end
from fsm.p2p.dialling import LinkPolicy, P2pUse, P2pWait, PeerPolicy
from specs.limits.protocol import P2P_TIMEOUT, RETRY_COOL_DOWN
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.runtime.domain import (
    DOMAIN,
    P2P_PLACES,
    DomainOptions,
    go_live,
    judged,
    open_domain,
)
from transports.link import Kind as Carrier

ALWAYS, NEVER = P2pUse.WHENEVER_POSSIBLE, P2pUse.NEVER
PATIENT = LinkPolicy(ALWAYS, wait=P2pWait.AWAIT)
STRICT = LinkPolicy(P2pUse.REQUIRED)


def want(**links):
    return DomainOptions(links=links)


def nowhere(network):
    """No candidate can be dialled."""
    for place in P2P_PLACES:
        network.refuse(place)


def routes_of(member, other):
    """The stubs by which requests went to another's hyperty."""
    sent = [fact for fact in member.facts(Op.XMIT) if fact.to == other.address]
    return ["link" if "p2prequester" in fact.stub else "node" for fact in sent]


async def test_with_waiting_the_first_message_goes_by_the_link(autojump_clock):
    """RES-09: nothing is lost, doubled, or out of order."""
    async with open_domain("alice", "bob", options=want(alice=PATIENT)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        for number in range(50):
            await alice.post(bob, number)
        answer = await alice.ask(bob, 50)
        assert (answer.code, bob.hyperty.heard) == (200, list(range(51)))
        assert set(routes_of(alice, bob)) == {"link"}
    assert judged(alice).verdict is Verdict.CONFORMANT


async def test_a_message_that_waits_in_vain_goes_by_the_node_in_time(autojump_clock):
    """RES-10, I-R9: each is sent exactly once, in order."""
    options = DomainOptions(links={"alice": PATIENT}, weather=nowhere)
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        began = trio.current_time()
        for number in range(50):
            await alice.post(bob, number)
        assert (await alice.ask(bob, 50)).code == 200
        assert trio.current_time() - began <= P2P_TIMEOUT + 1
        assert bob.hyperty.heard == list(range(51))
        assert set(routes_of(alice, bob)) == {"node"}
        began = trio.current_time()
        assert (await alice.ask(bob, 51)).code == 200
        assert trio.current_time() - began < 1
    assert judged(alice).verdict is Verdict.CONFORMANT


async def test_a_link_only_message_uses_the_link_or_is_refused(autojump_clock):
    async with open_domain("alice", "bob", options=want(alice=STRICT)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await alice.ask(bob, 1)).code == 200
        assert routes_of(alice, bob) == ["link"]
    options = DomainOptions(links={"alice": STRICT}, weather=nowhere)
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        answer = await alice.ask(bob, 1)
        assert (answer.code, bob.hyperty.heard) == (503, [])
        assert routes_of(alice, bob) == []


@pytest.mark.parametrize("who", ["alice", "bob"])
@pytest.mark.parametrize("peer", ["a.example", "*.example", "hyperty-runtime://a.example/{}"])
async def test_either_end_may_want_no_link_to_the_other(who, peer, autojump_clock):
    """T3: who is refused by the other's policy goes by the node."""
    other = {"alice": "bob", "bob": "alice"}[who]
    options = LinkPolicy(ALWAYS, (PeerPolicy(peer.format(other), NEVER),))
    async with open_domain("alice", "bob", options=want(**{who: options})) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await alice.ask(bob, 1)).code == 200
        await trio.sleep(P2P_TIMEOUT)
        assert (await alice.ask(bob, 2)).code == 200
        assert await alice.status(bob) != "live"
        assert set(routes_of(alice, bob)) == {"node"}
        assert await bob.runtime.links() == ()


async def test_a_link_is_set_up_when_a_message_asks_for_it(autojump_clock):
    """RES-06: `body.p2p`."""
    options = want(alice=LinkPolicy(P2pUse.WHEN_ASKED))
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await alice.ask(bob, 1)
        await trio.sleep(P2P_TIMEOUT)
        assert await alice.runtime.links() == ()
        body = {"value": 2, "p2p": True}
        await alice.hyperty.ask(bob.address, MessageType.CREATE, body)
        await alice.wait_for("live", bob)
        await alice.ask(bob, 3)
        assert routes_of(alice, bob)[-1] == "link"


async def test_a_runtime_without_wanted_peers_offers_no_link(autojump_clock):
    async with open_domain("alice", options=want(alice=LinkPolicy(NEVER))) as domain:
        assert domain["alice"].runtime.handler is None


LAN = {"alice": "10.0.0.1", "bob": "10.0.0.2"}
NEIGHBOURS = LinkPolicy(ALWAYS, (PeerPolicy(DOMAIN, ALWAYS),))


@pytest.mark.parametrize("kind", [Carrier.TCP, Carrier.WEBSOCKET])
async def test_peers_that_are_not_named_are_sent_no_private_place(kind, autojump_clock):
    """T10: nobody listens there for them; the node carries what is said."""
    async with open_domain(
        "alice", "bob", options=DomainOptions(kinds=(kind,), hosts=LAN)
    ) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await alice.ask(bob, 1)
        await trio.sleep(P2P_TIMEOUT)
        assert (await alice.ask(bob, 2)).code == Code.OK
        assert set(routes_of(alice, bob)) == {"node"}
        assert not [fact for one in (alice, bob) for fact in one.facts(Op.OPEN, Kind.LINK)]


async def test_peers_that_are_named_are_notified(autojump_clock):
    """T10."""
    options = DomainOptions(hosts=LAN, links={"alice": NEIGHBOURS, "bob": NEIGHBOURS})
    async with open_domain("alice", "bob", options=options) as domain:
        await go_live(domain)


async def test_a_runtime_that_names_no_peer_dials_no_private_address(autojump_clock):
    """T10: Alice tells Bob hers, and asks him to dial; he knows her by no name."""
    options = DomainOptions(hosts=LAN, links={"alice": NEIGHBOURS})
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await alice.ask(bob, 1)
        await trio.sleep(P2P_TIMEOUT)
        assert not [wire for wire in domain.network.wires if wire.kind is Carrier.TCP]
        assert (await alice.ask(bob, 2)).code == Code.OK


async def test_a_runtime_beyond_the_link_limit_goes_by_the_node_until_a_link_is_free(
    autojump_clock, monkeypatch
):
    """T11: it is refused, nothing is lost, and a later try succeeds."""
    monkeypatch.setattr(link_end, "HANDLED_LINKS", 1)
    async with open_domain("bob", "carol") as domain:
        bob, carol = domain["bob"], domain["carol"]
        async with domain.visitor("alice") as alice:
            await alice.ask(bob, 1)
            await bob.wait_for("live", alice)
            assert (await carol.ask(bob, 2)).code == Code.OK
            await carol.wait_for(None, bob)
            refused = [fact for fact in bob.facts(Op.SUBMIT) if fact.code == Code.UNAVAILABLE]
            assert [fact.from_ for fact in refused] == [bob.runtime.handler]
            assert await bob.status(alice) == "live"
        await trio.sleep(RETRY_COOL_DOWN)
        await go_live(domain, "carol", "bob")
        assert bob.hyperty.heard[:2] == [1, 2]
