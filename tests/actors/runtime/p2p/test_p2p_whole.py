"""P2P between whole runtimes of one domain, over a node (PFY-04; SC-16, 17, 20, 23..28)."""

import attrs
import pytest
import trio
import trio.lowlevel
import trio.testing

from actors.runtime.bus.interceptor import Interceptor
from fsm.judge.trace_line import Verdict
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import Kind, Op
from tests.support.runtime.domain import P2P_KINDS, DomainOptions, go_live, judged, open_domain
from transports.link import Kind as Carrier

SET_UP = ["created", "in-progress", "live"]


@pytest.mark.parametrize("carrier", P2P_KINDS)
async def test_the_first_request_goes_by_the_node_and_a_link_is_set_up_beside_it(
    carrier, autojump_clock
):
    """RES-11, P2P-07, P2P-13."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=(carrier,))) as domain:
        alice, bob = domain["alice"], domain["bob"]
        answer = await alice.ask(bob, "hello")
        assert (answer.code, answer.body["value"]) == (200, "hello")
        await go_live(domain)
        assert [new for role, new in alice.steps() if role == "requester"] == SET_UP
        assert [new for role, new in bob.steps() if role == "handler"] == SET_UP
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_the_handler_side_is_registered_in_order(autojump_clock):
    """P2P-17: Mint PC, listener at the bus, M-05, listener at the MiniBUS, then live (I-P17)."""
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


async def test_traffic_takes_the_live_link_in_both_directions_stamped_by_both_ends(autojump_clock):
    """RES-02, P2P-20."""
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


class Spoiling(Interceptor):
    """A stage of an application that writes half a character into each answer."""

    def intercept(self, message: Message, by: str) -> Message:
        is_answer = message.is_final and message.body.get("value") == "spoil"
        return (
            attrs.evolve(message, body={"code": 200, "value": "\ud83d"}) if is_answer else message
        )


@pytest.mark.parametrize("is_direct", [True, False])
async def test_who_waits_for_an_answer_that_cannot_be_written_hears_so(is_direct, autojump_clock):
    more = {"bob": {"interceptors": (Spoiling(),)}}
    async with open_domain("alice", "bob", options=DomainOptions(more=more)) as domain:
        if is_direct:
            await go_live(domain)
        began = trio.current_time()
        answer = await domain["alice"].ask(domain["bob"], "spoil")
        assert (answer.code, trio.current_time() - began < 1) == (502, True)
        assert answer.via[0].startswith(f"{domain['bob'].runtime.url}/p2phandler") is is_direct
        assert domain["bob"].runtime.counters.drops[DropReason.MALFORMED] == 1


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


async def test_the_handlers_row_goes_at_once_when_the_requesters_runtime_leaves(autojump_clock):
    """I-P19: an orderly goodbye is for good."""
    async with open_domain("bob") as domain:
        bob = domain["bob"]
        async with domain.visitor("alice") as alice:
            await alice.ask(bob, 1)
            await bob.wait_for("live", alice)
        await trio.testing.wait_all_tasks_blocked()
        assert await bob.status(alice) is None
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_both_asking_at_once_get_one_link_the_smaller_runtime_asked_for(autojump_clock):
    """P2P-27, I-P20."""
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
        refused = [fact for fact in alice.facts(Op.SUBMIT) if fact.code == 409]
        assert [fact.from_ for fact in refused] == [f"{alice.runtime.url}/p2phandler/1"]
        assert [new for _, new in alice.steps("handler_controller")] == ["observing", "closed"]
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT


async def test_one_handler_serves_two_requesters_and_one_cut_is_no_matter_of_the_other(
    autojump_clock,
):
    """P2P-19, SC-27."""
    async with open_domain("alice", "bob", "carol") as domain:
        await go_live(domain, "alice", "bob")
        await go_live(domain, "carol", "bob")
        alice, bob, carol = (domain[name] for name in ("alice", "bob", "carol"))
        for each in (alice, carol):
            assert (await each.ask(bob, 0)).via[0].rpartition("/")[0].endswith("/conn")
        assert (await bob.ask(alice, 1)).via[0].endswith("/p2prequester/1")
        domain.network.open_wires(Carrier.TCP)[0].cut()
        assert (await bob.ask(carol, 2)).via[0].endswith("/p2prequester/1")
        assert (await carol.ask(bob, 3)).code == (await alice.ask(bob, 4)).code == 200
        assert bob.runtime.url in [entry.remote for entry in await alice.runtime.links()]
    for member in (alice, bob, carol):
        assert judged(member).verdict is Verdict.CONFORMANT


@pytest.mark.parametrize("pause", range(0, 120, 12))
async def test_a_runtime_that_leaves_in_the_middle_of_a_set_up_leaves_nothing_open(
    pause, autojump_clock
):
    """I-R7: searches, entries and controllers end, too; the judge says so of every entity."""
    async with open_domain("bob") as domain:
        bob = domain["bob"]
        async with domain.visitor("alice") as alice:
            await alice.post(bob, 1)
            for _ in range(pause):
                await trio.lowlevel.checkpoint()
    searches = alice.facts(Op.STEP, Kind.STATE)
    assert {"resolve_job"} <= {fact.machine for fact in searches}
    assert judged(alice).verdict is Verdict.CONFORMANT
    assert judged(bob).verdict is Verdict.CONFORMANT
