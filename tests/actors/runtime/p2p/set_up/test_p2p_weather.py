"""P2P in bad weather: refused, late, lost, silent, visited by outsiders (SC-23..25, R9)."""

import pytest
import trio

from actors.keys.certificate import make_certificate
from actors.runtime.policy import Policy
from fsm.judge.trace_line import Verdict
from specs.trace import Kind, Op
from tests.support.link_tls import peer_tls
from tests.support.runtime.domain import (
    NODE_PLACE,
    P2P_PLACES,
    DomainOptions,
    go_live,
    judged,
    open_domain,
)
from transports.errors import DialError
from transports.link import Kind as Carrier


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


def refuse_all(network):
    for place in P2P_PLACES:
        network.refuse(place)


def swallow_all(network):
    for place in P2P_PLACES:
        network.disturb(place, lambda *_: (), lambda *_: ())


async def test_when_nothing_can_be_dialled_both_ends_fail_and_the_node_carries_on(autojump_clock):
    async with open_domain("alice", "bob", options=DomainOptions(weather=refuse_all)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await fails_and_carries_on(domain)
        assert ("handler", "failed") in bob.steps()
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


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


class NoLinks(Policy):
    """Lets nobody invite this runtime's handler."""

    def refusal(self, message, by):
        return "no links here" if message.to.endswith("/p2phandler/1") else None


async def test_a_refused_invitation_ends_the_set_up_and_the_node_carries_on(autojump_clock):
    """P2P-08, P2P-14."""
    async with open_domain(
        "alice", "bob", options=DomainOptions(policies={"bob": NoLinks()})
    ) as domain:
        await fails_and_carries_on(domain)
        assert domain["bob"].steps() == []
    assert judged(domain["alice"]).verdict is Verdict.CONFORMANT


async def test_a_failed_set_up_is_tried_again_after_a_while(autojump_clock):
    async with open_domain("alice", "bob", options=DomainOptions(weather=refuse_all)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await fails_and_carries_on(domain)
        for place in P2P_PLACES:
            domain.network.allow(place)
        await trio.sleep(6)
        await go_live(domain)
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_a_runtime_that_cannot_dial_is_dialled_also_after_a_cut(autojump_clock):
    """The requester reaches nothing; the handler reaches the requester."""

    def one_way(network):
        network.refuse(P2P_PLACES[1])

    async with open_domain("alice", "bob", options=DomainOptions(weather=one_way)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await go_live(domain)
        domain.cut_links(Carrier.TCP)
        await trio.sleep(0.1)
        await alice.wait_for("live", bob)
        await bob.wait_for("live", alice)
        assert (await alice.ask(bob, 1)).via[0].endswith("/conn/1")
    assert judged(alice).verdict is Verdict.CONFORMANT


async def test_a_link_that_does_not_come_back_is_given_up_and_a_new_one_made(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        await go_live(domain)
        refuse_all(domain.network)
        domain.cut_links(Carrier.TCP)
        assert (await alice.ask(bob, 1)).code == 200
        await alice.wait_for(None, bob)
        for place in P2P_PLACES:
            domain.network.allow(place)
        await trio.sleep(6)
        await go_live(domain)
        assert [entry.link[-1] for entry in await alice.runtime.links()] == ["2"]
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_an_outsider_at_a_candidate_gets_nothing_and_affects_no_link(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        for wire in domain.network.open_wires(Carrier.TCP):
            for tls in (None, peer_tls(make_certificate()).dialling):
                with pytest.raises(DialError):
                    await domain.network.dial(Carrier.TCP, wire.address, tls=tls)
        assert (await domain["alice"].ask(domain["bob"], 1)).via[0].endswith("/conn/1")


async def test_a_peer_that_falls_silent_is_noticed_and_the_node_carries_on(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        await go_live(domain)
        for wire in domain.network.open_wires(Carrier.TCP):
            wire.dialler.pattern = wire.acceptor.pattern = lambda *_: ()
        await trio.sleep(31)
        assert ("requester", "disconnected") in alice.steps()
        assert ("handler", "disconnected") in bob.steps()
        assert (await alice.ask(bob, 1)).code == 200
    assert judged(alice).verdict is Verdict.CONFORMANT


class LoseOne:
    """Loses the n-th frame of P2P signalling at the node, whoever sends it."""

    def __init__(self, lost):
        self.lost = lost
        self.seen = 0

    def __call__(self, _number, frame):
        if b"connection://" not in frame or b"registry" in frame:
            return (0.0,)
        self.seen += 1
        return () if self.seen == self.lost else (0.0,)


@pytest.mark.parametrize(
    "lost", [pytest.param(at, marks=[] if at % 2 else [pytest.mark.soak]) for at in range(1, 25)]
)
async def test_each_single_lost_frame_of_signalling_leaves_no_half_link(lost, autojump_clock):
    """R9: it ends live at both ends, or at neither; a later try succeeds."""
    one = LoseOne(lost)

    def weather(network):
        network.disturb(NODE_PLACE, one, one)

    async with open_domain("alice", "bob", options=DomainOptions(weather=weather)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await alice.ask(bob, 1)).code == 200
        await trio.sleep(20)
        assert (await alice.status(bob) == "live") == (await bob.status(alice) == "live")
        assert (await alice.ask(bob, 2)).code == 200
        await trio.sleep(20)
        await go_live(domain)
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT
