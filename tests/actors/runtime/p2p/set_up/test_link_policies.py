"""Runtimes that want links to some, wait for them, or do without (RES-06, RES-09, RES-10, T11)."""

import trio

from fsm.judge.trace_line import Verdict
from fsm.p2p.link_policy import LinkPolicy, P2pUse, P2pWait
from specs.limits.protocol import P2P_TIMEOUT
from specs.message import MessageType
from specs.trace import Op
from tests.support.runtime.domain import DomainOptions, judged, open_domain

PATIENT = LinkPolicy(P2pUse.WHENEVER_POSSIBLE, wait=P2pWait.AWAIT)

ALWAYS, NEVER = P2pUse.WHENEVER_POSSIBLE, P2pUse.NEVER


def want(**links):
    return DomainOptions(links=links)


def routes_of(member, other):
    """The stubs by which requests went to another's hyperty."""
    sent = [fact for fact in member.facts(Op.XMIT) if fact.to == other.address]
    return ["link" if "p2prequester" in fact.stub else "node" for fact in sent]


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
