"""Links whose listeners have moved for good come back by a new offer (P2P-16, t8)."""

import pytest
import trio

from fsm.judge.trace_line import Verdict
from specs.limits.protocol import PING_PERIOD
from specs.trace import Kind, Op
from tests.actors.runtime.p2p.set_up.moving_network import moving_in_memory, moving_on_sockets
from tests.support.runtime.domain import P2P_KINDS, DomainOptions, go_live, judged, open_domain
from transports.link import Kind as Carrier

SET_UP = ["created", "in-progress", "live"]
ANEW = ["disconnected", "in-progress", "live"]
MESSAGES = 60
PAUSE = 0.25
"""Seconds between two messages: the last ones are sent when the link is long back."""


def link_steps(member, role):
    return [new for who, new in member.steps() if who == role]


def entry_causes(member):
    facts = member.facts(Op.STEP, Kind.STATE)
    return [fact.cause for fact in facts if fact.machine == "p2p_entry"]


def carriers(member, other):
    """The stubs that carried what one sent to the other, each once in a row."""
    sent = [fact.stub for fact in member.facts(Op.XMIT) if fact.to == other.address]
    return [stub for stub, before in zip(sent, [None, *sent[:-1]], strict=True) if stub != before]


def is_link(stub):
    return "/p2p" in stub


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


def assert_came_back_anew(domain):
    alice, bob = domain["alice"], domain["bob"]
    assert link_steps(alice, "requester") == [*SET_UP, *ANEW]
    assert link_steps(bob, "handler") == [*SET_UP, *ANEW]
    for member in (alice, bob):
        assert entry_causes(member)[1:] == ["live", "lost", "restored"]
    for one, other in ((alice, bob), (bob, alice)):
        assert [is_link(stub) for stub in carriers(one, other)][-3:] == [True, False, True]


def assert_conformant(domain):
    for member in domain.members.values():
        assert judged(member).verdict is Verdict.CONFORMANT


@pytest.mark.parametrize("carrier", P2P_KINDS)
async def test_traffic_goes_by_the_node_until_the_new_offer_is_answered(carrier, autojump_clock):
    options = DomainOptions(kinds=(carrier,), network=moving_in_memory)
    async with open_domain("alice", "bob", options=options) as domain:
        await move_and_talk(domain, cut)
        assert_came_back_anew(domain)
    assert_conformant(domain)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("carrier", P2P_KINDS)
async def test_so_it_is_over_real_sockets(carrier, hasty_clock):
    options = DomainOptions(kinds=(carrier,), network=moving_on_sockets)
    async with open_domain("alice", "bob", options=options) as domain:
        await move_and_talk(domain, cut)
        assert_came_back_anew(domain)
    assert_conformant(domain)


async def test_new_listeners_take_the_place_of_the_old_ones(autojump_clock):
    options = DomainOptions(network=moving_in_memory)
    async with open_domain("alice", "bob", options=options) as domain:
        await move_and_talk(domain, cut)
        places = domain.network.places
        assert len(places) == len(set(places)) == 4
        memory = domain.network._network
        assert {place for _, place in memory._listeners} & set(places) == set(places[2:])


async def test_a_handler_that_has_not_noticed_gives_up_its_link_for_the_new_offer(autojump_clock):
    """What it wrote into the dead link meanwhile goes by the node then, once and in order."""

    async def cut_unseen(network):
        for line in network.accepted:
            line.is_deaf = True
        await network.cut()

    options = DomainOptions(network=moving_in_memory)
    async with open_domain("alice", "bob", options=options) as domain:
        begun = trio.current_time()
        await move_and_talk(domain, cut_unseen)
        assert trio.current_time() < begun + PING_PERIOD
        assert_came_back_anew(domain)
        left = [
            fact.why
            for fact in domain["bob"].facts(Op.STEP, Kind.STATE)
            if fact.machine == "p2p_connection" and fact.new == "disconnected"
        ]
        assert left == ["the requester offers anew"]
    assert_conformant(domain)


async def test_a_new_offer_that_comes_to_nothing_fails_at_both_ends(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        for port in range(40_001, 40_020):
            domain.network.refuse(f"127.0.0.1:{port}")
        domain.cut_links(Carrier.TCP)
        await alice.wait_for(None, bob)
        await bob.wait_for(None, alice)
        assert link_steps(alice, "requester") == [*SET_UP, *ANEW[:2], "failed"]
        assert link_steps(bob, "handler") == [*SET_UP, *ANEW[:2], "failed"]
        assert (await alice.ask(bob, 1)).code == 200
    assert_conformant(domain)


async def test_a_link_comes_back_anew_again_and_again(autojump_clock):
    options = DomainOptions(network=moving_in_memory)
    async with open_domain("alice", "bob", options=options) as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        for _ in range(3):
            domain.network.move()
            await domain.network.cut()
            await trio.sleep(0.1)
            await alice.wait_for("live", bob)
            await bob.wait_for("live", alice)
        assert link_steps(alice, "requester") == [*SET_UP, *ANEW * 3]
        assert (await alice.ask(bob, 1)).via[0].endswith("/conn/1")
        # In place, by the secrets of the last negotiation.
        await domain.network.cut()
        await trio.sleep(0.1)
        await alice.wait_for("live", bob)
        assert link_steps(alice, "requester") == [*SET_UP, *ANEW * 3, "disconnected", "live"]
    assert_conformant(domain)
