"""P2P between whole runtimes of one domain, over a node (SC-16, 17, 20, 23..28)."""

import pytest
import trio
import trio.lowlevel

from actors.runtime.policy import Policy
from fsm.trace_line import Verdict
from specs.trace import Kind, Op
from tests.support.domain import NODE_PLACE, P2P_PLACES, Wishes, judged, open_domain
from transports.errors import LinkError
from transports.link import Kind as Carrier

SET_UP = ["created", "in-progress", "live"]


async def go_live(domain, one="alice", other="bob"):
    """Let one ask the other, until both ends of their link are live."""
    await domain[one].ask(domain[other], "first")
    await domain[one].wait_for("live", domain[other])
    await domain[other].wait_for("live", domain[one])


@pytest.mark.parametrize("carrier", list(Carrier))
async def test_the_first_request_goes_by_the_node_and_a_link_is_set_up_beside_it(
    carrier, autojump_clock
):
    async with open_domain("alice", "bob", wishes=Wishes(kinds=(carrier,))) as domain:
        alice, bob = domain["alice"], domain["bob"]
        answer = await alice.ask(bob, "hello")
        assert (answer.code, answer.body["value"]) == (200, "hello")
        await go_live(domain)
        assert [new for role, new in alice.steps() if role == "requester"] == SET_UP
        assert [new for role, new in bob.steps() if role == "handler"] == SET_UP
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_status_events_follow_the_steps_one_by_one(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice = domain["alice"]
        told = [
            (fact.type, fact.to)
            for fact in alice.facts(Op.SUBMIT)
            if (fact.to or "").endswith("/p2prequester/1/status")
        ]
    assert [type_ for type_, _ in told][:3] == ["create", "update", "update"]


async def test_the_handler_side_is_registered_in_order(autojump_clock):
    """Mint PC, listener at the bus, M-05, listener at the MiniBUS, then live (I-P17)."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        handler = f"{domain['bob'].runtime.url}/p2phandler/1"
        link = f"{handler}/conn/1"
        rows = [
            (actor, fact.table, fact.val)
            for actor, fact in domain["bob"].tracer.records
            if fact.k is Kind.TABLE and link in f"{fact.key} {fact.val}"
        ]
        tables = [(actor, table) for actor, table, _ in rows]
    assert tables.index(("bus", "listeners")) < tables.index((f"minibus:{handler}", "listeners"))
    assert tables.index((f"minibus:{handler}", "listeners")) < tables.index(("registry", "p2p"))


async def test_traffic_takes_the_live_link_both_ways_stamped_by_both_ends(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        before = len([fact for fact in alice.facts(Op.XMIT) if fact.link])
        answer = await alice.ask(bob, "direct")
        requests = [fact for fact in alice.facts(Op.XMIT) if fact.to == bob.address]
        assert answer.via == (
            f"{bob.runtime.url}/p2phandler/1/conn/1",
            f"{alice.runtime.url}/p2prequester/1",
        )
        assert requests[-1].stub == f"{alice.runtime.url}/p2prequester/1"
        assert len([fact for fact in alice.facts(Op.XMIT) if fact.link]) > before
        back = await bob.ask(alice, "back")
        assert back.via[0] == f"{alice.runtime.url}/p2prequester/1"


async def test_signalling_never_takes_the_link(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        carried = [
            fact
            for member in domain.members.values()
            for fact in member.facts(Op.XMIT)
            if fact.link and "/p2p" in (fact.stub or "")
        ]
        assert not [fact for fact in carried if "connection://" in f"{fact.from_} {fact.to}"]


async def test_a_cut_link_loses_nothing_doubles_nothing_and_comes_back(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        bob.hyperty.heard.clear()
        codes = []

        async def ask(number):
            codes.append((await alice.ask(bob, number)).code)

        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(ask, number)
                if number == 100:
                    await trio.lowlevel.checkpoint()
                    domain.cut_links(Carrier.TCP)
        assert codes == [200] * 200
        assert sorted(bob.hyperty.heard) == list(range(200))
        await alice.wait_for("live", bob)
        await bob.wait_for("live", alice)
        assert [new for role, new in alice.steps() if role == "requester"] == [
            *SET_UP,
            "disconnected",
            "live",
        ]
        assert (await alice.ask(bob, "again")).via[0].endswith("/conn/1")
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


@pytest.mark.parametrize("pause", range(6))
async def test_what_one_sends_arrives_once_and_in_order_across_cuts(pause, autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        bob.hyperty.heard.clear()

        async def cut_now_and_then():
            for _ in range(5):
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
                domain.cut_links(Carrier.TCP)
                await trio.sleep(0.4)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cut_now_and_then)
            for number in range(1000):
                await alice.post(bob, number)
                if number % 20 == 0:
                    await trio.sleep(0.05)
        await trio.sleep(2)
        assert bob.hyperty.heard == list(range(1000))
        assert len([new for role, new in alice.steps() if new == "disconnected"]) >= 2


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
    async with open_domain("alice", "bob", wishes=Wishes(weather=refuse_all)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await fails_and_carries_on(domain)
        assert ("handler", "failed") in bob.steps()
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_a_set_up_that_takes_too_long_fails_at_both_ends(autojump_clock):
    """SC-24: what is dialled answers nothing."""
    async with open_domain("alice", "bob", wishes=Wishes(weather=swallow_all)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await fails_and_carries_on(domain)
        assert ("handler", "failed") in bob.steps()
        whys = [fact.why for fact in alice.facts(Op.STEP, Kind.STATE) if fact.new == "failed"]
        assert whys[0] == "timeout"
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_a_refused_object_ends_the_set_up_and_the_node_carries_on(autojump_clock):
    """SC-23: created -> failed."""
    wishes = Wishes(object_schemes=frozenset({"comm"}))
    async with open_domain("alice", "bob", wishes=wishes) as domain:
        await fails_and_carries_on(domain)
        steps = [new for role, new in domain["alice"].steps() if role == "requester"]
        assert steps[:2] == ["created", "failed"]
    assert judged(domain["alice"]).verdict is Verdict.CONFORMANT


class NoLinks(Policy):
    """Lets nobody invite this runtime's handler."""

    def refusal(self, message, by):
        return "no links here" if message.to.endswith("/p2phandler/1") else None


async def test_a_refused_invitation_ends_the_set_up_and_the_node_carries_on(autojump_clock):
    async with open_domain("alice", "bob", wishes=Wishes(policies={"bob": NoLinks()})) as domain:
        await fails_and_carries_on(domain)
        assert domain["bob"].steps() == []
    assert judged(domain["alice"]).verdict is Verdict.CONFORMANT


async def test_a_failed_set_up_is_tried_again_after_a_while(autojump_clock):
    async with open_domain("alice", "bob", wishes=Wishes(weather=refuse_all)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await fails_and_carries_on(domain)
        for place in P2P_PLACES:
            domain.network.allow(place)
        await trio.sleep(6)
        await go_live(domain)
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_who_cannot_dial_is_dialled_and_so_again_after_a_cut(autojump_clock):
    """The requester reaches nothing; the handler reaches the requester."""

    def one_way(network):
        network.refuse(P2P_PLACES[1])

    async with open_domain("alice", "bob", wishes=Wishes(weather=one_way)) as domain:
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


async def test_a_stranger_at_a_candidate_gets_nothing_and_harms_nobody(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        for wire in domain.network.open_wires(Carrier.TCP):
            pipe = await domain.network.dial(Carrier.TCP, wire.address)
            await pipe.send(
                b'{"id":1,"type":"read","from":"hyperty://x.ex/1","to":"hyperty://y.ex/2"}'
            )
            with pytest.raises(LinkError):
                await pipe.receive()
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


@pytest.mark.parametrize("lost", range(1, 25))
async def test_each_frame_of_signalling_lost_in_turn_leaves_no_half_link(lost, autojump_clock):
    """R9: it ends live at both ends, or at neither; a later try succeeds."""
    one = LoseOne(lost)

    def weather(network):
        network.disturb(NODE_PLACE, one, one)

    async with open_domain("alice", "bob", wishes=Wishes(weather=weather)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await alice.ask(bob, 1)).code == 200
        await trio.sleep(20)
        assert (await alice.status(bob) == "live") == (await bob.status(alice) == "live")
        assert (await alice.ask(bob, 2)).code == 200
        await trio.sleep(20)
        await go_live(domain)
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_a_live_link_ends_in_good_order_when_a_runtime_leaves(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
    assert alice.steps()[-1] == ("requester", "disconnected")
    assert bob.steps()[-1] == ("handler", "disconnected")
    assert len(alice.facts(Op.OPEN, Kind.LINK)) == len(alice.facts(Op.CLOSE, Kind.LINK))
    assert len(bob.facts(Op.OPEN, Kind.LINK)) == len(bob.facts(Op.CLOSE, Kind.LINK))
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_both_asking_at_once_get_one_link_the_smaller_runtime_asked_for(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alice.ask, bob, 1)
            nursery.start_soon(bob.ask, alice, 2)
        await alice.wait_for("live", bob)
        await bob.wait_for("live", alice)
        await trio.sleep(30)
        assert await alice.status(bob) == await bob.status(alice) == "live"
        opened = [fact.link for fact in alice.facts(Op.OPEN, Kind.LINK)]
        assert len(opened) == 1
        assert ("requester", "live") in alice.steps()
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_one_handler_serves_two_requesters_and_one_cut_is_no_matter_of_the_other(
    autojump_clock,
):
    async with open_domain("alice", "bob", "carol") as domain:
        await go_live(domain, "alice", "bob")
        await go_live(domain, "carol", "bob")
        alice, bob, carol = (domain[name] for name in ("alice", "bob", "carol"))
        assert (await bob.ask(alice, 1)).via[0].endswith("/p2prequester/1")
        domain.network.open_wires(Carrier.TCP)[0].cut()
        assert (await bob.ask(carol, 2)).via[0].endswith("/p2prequester/1")
        assert (await carol.ask(bob, 3)).code == (await alice.ask(bob, 4)).code == 200
        assert bob.runtime.url in [entry.remote for entry in await alice.runtime.links()]
    for member in (alice, bob, carol):
        assert judged(member).verdict is Verdict.CONFORMANT
