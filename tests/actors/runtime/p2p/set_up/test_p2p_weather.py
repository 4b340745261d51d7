"""P2P in bad weather: refused, late, lost, silent, visited by outsiders (SC-23..25, R9)."""

import trio

from actors.runtime.policy import Policy
from fsm.judge.trace_line import Verdict
from specs.trace import Kind, Op
from tests.support.runtime.domain import P2P_PLACES, DomainOptions, judged, open_domain


class NoLinks(Policy):
    """Lets nobody invite this runtime's handler."""

    def refusal(self, message, by):
        return "no links here" if message.to.endswith("/p2phandler/1") else None


async def fails_and_carries_on(domain, alice_end=("requester", "failed")):
    """The set-up comes to nothing at both ends, and the node carries what is asked."""
    alice, bob = domain["alice"], domain["bob"]
    assert (await alice.ask(bob, 1)).code == 200
    await trio.sleep(12)
    assert alice_end in alice.steps()
    assert "live" not in [new for _, new in alice.steps() + bob.steps()]
    assert await alice.status(bob) is None
    assert await bob.status(alice) is None
    assert (await alice.ask(bob, 2)).code == 200


def swallow_all(network):
    for place in P2P_PLACES:
        network.disturb(place, lambda *_: (), lambda *_: ())


async def test_a_set_up_that_takes_too_long_fails_at_both_ends(autojump_clock):
    """SC-24: what is dialled answers nothing."""
    async with open_domain("alice", "bob", options=DomainOptions(weather=swallow_all)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await fails_and_carries_on(domain)
        assert ("handler", "failed") in bob.steps()
        whys = [fact.why for fact in alice.facts(Op.STEP, Kind.STATE) if fact.new == "failed"]
        assert whys[0] == "timeout"
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_a_refused_object_ends_the_set_up_and_the_node_carries_on(autojump_clock):
    """P2P-08, P2P-14, SC-23: created -> failed."""
    options = DomainOptions(object_schemes=frozenset({"comm"}))
    async with open_domain("alice", "bob", options=options) as domain:
        await fails_and_carries_on(domain)
        steps = [new for role, new in domain["alice"].steps() if role == "requester"]
        assert steps[:2] == ["created", "failed"]
    assert judged(domain["alice"]).verdict is Verdict.CONFORMANT


async def test_a_refused_invitation_ends_the_set_up_and_the_node_carries_on(autojump_clock):
    """P2P-08, P2P-14."""
    async with open_domain(
        "alice", "bob", options=DomainOptions(policies={"bob": NoLinks()})
    ) as domain:
        await fails_and_carries_on(domain)
        assert domain["bob"].steps() == []
    assert judged(domain["alice"]).verdict is Verdict.CONFORMANT
