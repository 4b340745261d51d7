"""Changes by a direct link, and by the node when there is none (P2P-30, SYN-27, I-D12)."""

import pytest
import trio

from fsm.effects import is_p2p_part
from specs.limits import sync
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Op
from tests.support.link_world import LINKED, UNLINKED, pair, reaches, streaming
from tests.support.runtime.domain import DOMAIN, NODE_PLACE, P2P_KINDS, DomainOptions, go_live
from transports.link import Kind as Carrier
from transports.system import open_system_network


@pytest.mark.parametrize("carrier", P2P_KINDS)
async def test_an_observer_with_a_live_link_needs_no_path_at_the_node(carrier, autojump_clock):
    """P2P-30: neither the subscription nor any change passes the node."""
    async with pair(options=DomainOptions(kinds=(carrier,)), p2p=True) as two:
        assert two.copy.value == {"n": 0}
        for n in range(1, 6):
            await two.obj.set("n", n)
        await two.follows(6)
        link = two.branches()
        assert two.copy.value == {"n": 5}
        assert (two.at_node(), two.paths(), two.reads()) == (0, [], 0)
        assert [op for op, _ in link] == [Op.ADD]
        assert two.applied() == [1, 2, 3, 4, 5, 6]


async def test_an_observer_without_a_link_hears_by_the_node(autojump_clock):
    async with pair(UNLINKED) as two:
        await two.obj.set("n", 1)
        await two.follows(2)
        assert (two.at_node(), [op for op, _ in two.paths()]) == (1, [Op.ADD])
        assert two.branches() == []


async def test_an_observer_that_wants_no_link_hears_by_the_node(autojump_clock):
    async with pair(LINKED, p2p=False) as two:
        await two.obj.set("n", 1)
        await two.follows(2)
        assert (two.at_node(), two.branches()) == (1, [])


async def test_an_observer_that_wants_a_link_has_one_set_up(autojump_clock):
    """Nobody has asked the reporter for anything: the record says how to link to it."""
    async with pair(UNLINKED, p2p=True) as two:
        await two.link_is("live")
        await two.path_has_steps(1, "add")
        await trio.sleep(1)
        at_node = two.at_node()
        await two.obj.set("n", 1)
        await two.follows(2)
        assert two.at_node() == at_node
        assert [op for op, _ in two.paths()] == [Op.ADD, Op.DEL]


async def test_by_default_changes_come_by_the_link_there_is(autojump_clock):
    async with pair(LINKED) as two:
        await two.obj.set("n", 1)
        await two.follows(2)
        assert (two.at_node(), two.paths()) == (0, [])


async def test_unsubscription_and_deletion_go_by_the_link(autojump_clock):
    """M-43, M-47: the node sees nothing of them, either."""
    async with pair(p2p=True) as two, two.another_observer() as other:
        with trio.fail_after(1):  # the answers, too: nobody waits for one that finds no way
            await two.obj.delete()
        with trio.fail_after(5):
            await other.run_dry()
        assert other.copy.is_gone
        assert two.said_at_node("delete") == two.said_at_node("subscribe") == 0
    assert two.said_at_node("unsubscribe") == 0
    assert [op for op, _ in two.branches()] == [Op.ADD, Op.DEL]


async def test_the_last_observer_takes_the_listener_of_the_link_with_it(autojump_clock):
    """I-D7, SC-32: what is changed later goes to the node only, which knows of no observer."""
    async with pair(p2p=True) as two:
        await two.leave()
        assert [op for op, _ in two.branches()] == [Op.ADD, Op.DEL]
        before = two.arrived(two.bob)
        await two.obj.set("n", 1)
        await trio.sleep(1)
        sent = [fact for fact in two.alice.facts(Op.XMIT) if fact.to == two.changes]
        assert [is_p2p_part(fact.stub) for fact in sent] == [False]
        assert (two.at_node(), two.arrived(two.bob)) == (1, before)
        assert two.said_at_node("unsubscribe") == 0


async def test_each_runtime_is_sent_changes_by_one_path_only(autojump_clock):
    """I-D12: one observer by the link, one by the node; neither hears anything twice."""
    async with pair(p2p=True) as two, two.domain.visitor("carol") as carol:
        await two.obj.allow(carol.address)
        async with carol.hyperty.observe(two.obj.url, p2p=False) as copy:
            for n in range(1, 51):
                await two.obj.set("n", n)
            await two.follows(51)
            await reaches(copy, 51)
            assert two.at_node() == 50
            assert two.arrived(two.bob) == two.arrived(carol) == 50
            assert two.reads() == 0


async def test_one_observer_that_wants_no_link_excludes_the_link_for_its_runtime(autojump_clock):
    """One runtime, one way: for the time it observes all of it goes by the node."""
    async with pair(p2p=True) as two:
        async with two.another_observer(p2p=False) as other:
            await two.path_has_steps(1, "del")
            await two.obj.set("n", 1)
            await two.follows(2)
            await reaches(other.copy, 2)
            assert two.at_node() == 1
        await two.path_has_steps(2, "add")
        await trio.sleep(1)
        before = two.at_node()
        await two.obj.set("n", 2)
        await two.follows(3)
        assert two.at_node() == before


@pytest.mark.parametrize("carrier", P2P_KINDS)
async def test_a_stream_goes_on_when_its_link_is_cut_in_the_middle(carrier, autojump_clock):
    """I-D12, I-P22: every version once and in order, the same end, and at most one read."""
    async with (
        pair(options=DomainOptions(kinds=(carrier,)), p2p=True) as two,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(streaming(two, 1_000))
        await two.follows(500)
        assert two.at_node() == 0
        two.domain.cut_links(carrier)
        await two.follows(1_001)
        applied = two.applied()
        assert applied == sorted(set(applied))
        assert two.copy.value == two.obj.value
        assert two.reads() <= 1


@pytest.mark.parametrize(("pause", "away"), [(0.001, 0.2), (0.01, 3)])
async def test_a_stream_goes_by_the_node_for_as_long_as_the_link_is_away(
    pause, away, autojump_clock
):
    """I-D3, I-D12: what is missed between is in the next snapshot; that is read once, if at all.

    The node takes 40 ms, the link 5 ms: what went by the node would be overtaken on the way
    back if nothing waited.
    """
    async with pair(p2p=True) as two, trio.open_nursery() as nursery:
        two.slow_down(by_node=0.02, by_link=0.005)
        nursery.start_soon(streaming(two, 500, pause))
        await two.follows(150)
        with two.link_away():
            await trio.sleep(away)
        await two.follows(501)
        applied = two.applied()
        assert applied == sorted(set(applied))
        assert (two.copy.value, two.at_node() > 0) == (two.obj.value, True)
        assert two.reads() <= 1


async def test_a_stream_over_real_sockets_survives_the_end_of_its_link():
    """The handler closes the link for good in the middle; the rest comes by the node."""
    options = DomainOptions(kinds=(Carrier.TCP,), network=open_system_network)
    async with pair(options=options, p2p=True) as two, trio.open_nursery() as nursery:
        with trio.fail_after(60):
            nursery.start_soon(streaming(two, 300))
            await two.follows(100)
            assert two.at_node() == 0
            await two.end_link()
            await two.follows(301)
        assert two.applied() == sorted(set(two.applied()))
        assert (two.copy.value, two.at_node() > 0) == (two.obj.value, True)
        assert two.reads() <= 1


async def test_a_stream_moves_to_a_link_that_comes_to_be_live(autojump_clock):
    """I-B7, I-D12: no version is missed on the way over, none comes twice, nothing is read."""
    async with pair(UNLINKED) as two, trio.open_nursery() as nursery:
        nursery.start_soon(streaming(two, 500))
        await two.follows(150)
        await go_live(two.domain)
        await two.path_has_steps(1, "add")
        moved = two.copy.version
        await two.follows(501)
        assert 0 < moved < 501
        assert two.applied() == list(range(1, 502))
        assert two.reads() == 0
        assert [op for op, _ in two.paths()] == [Op.ADD, Op.DEL]


async def test_after_a_cut_the_stream_comes_back_to_the_link(autojump_clock):
    """The requester gets its link back; the observer moves over, and the node has rest."""
    async with pair() as two:
        two.domain.cut_links(Carrier.TCP)
        await two.path_has_steps(1, "del")
        await two.path_has_steps(2, "add")
        await trio.sleep(1)
        before = two.at_node()
        for n in range(1, 101):
            await two.obj.set("n", n)
        await two.follows(101)
        assert two.at_node() == before
        assert two.copy.value == {"n": 100}


async def test_a_link_that_comes_and_goes_costs_no_version_twice(autojump_clock):
    """I-D3, I-D4, I-D12: ten cuts in one stream, and at most one read for each."""
    async with pair(p2p=True) as two, trio.open_nursery() as nursery:
        nursery.start_soon(streaming(two, 500, 0.1))
        for cut in range(1, 11):
            await two.follows(cut * 45)
            two.domain.cut_links(Carrier.TCP)
        await two.follows(501)
        applied = two.applied()
        assert applied == sorted(set(applied))
        assert two.copy.value == two.obj.value
        assert two.reads() <= 10
        assert len([op for op, _ in two.branches() if op is Op.ADD]) > 1


async def test_changes_for_an_address_outside_the_link_go_by_the_node(autojump_clock):
    """MN-03: a peer does not speak for whom it names, but for those whose records say so."""
    async with pair(p2p=True) as two:
        outsider = f"hyperty://{DOMAIN}/outsider"
        answer = await two.ask_by_link(MessageType.SUBSCRIBE, outsider)
        assert (answer.code, two.obj.observers) == (Code.UNAUTHENTICATED, (two.bob.address,))
        neighbour = two.alice.address
        answer = await two.ask_by_link(MessageType.SUBSCRIBE, neighbour)
        assert answer.code == Code.UNAUTHENTICATED


@pytest.mark.parametrize(("most", "code"), [(0, Code.UNAVAILABLE), (1, Code.OK)])
async def test_so_many_requests_by_links_are_verified_at_once(
    most, code, monkeypatch, autojump_clock
):
    async with pair(p2p=True) as two:
        monkeypatch.setattr(sync, "MAX_WITNESSED", most)
        for _ in range(2):
            answer = await two.ask_by_link(MessageType.SUBSCRIBE, two.bob.address)
            assert answer.code == code


async def test_changes_are_not_taken_from_a_peer_that_was_not_asked(autojump_clock):
    """I-D1: carol has a link to bob too, and says that alice's object has changed."""
    async with pair(p2p=True) as two, two.domain.visitor("carol") as carol:
        await carol.ask(two.bob, "first")
        await carol.wait_for("live", two.bob)
        await two.bob.wait_for("live", carol)
        await two.forge(carol, {"version": 2, "attribute": "n", "value": 666})
        await two.obj.set("n", 1)
        await two.follows(2)
        assert two.copy.value == {"n": 1}
        dropped = [one for one in two.bob.facts(Op.DROP) if one.to == two.changes]
        assert [one.reason for one in dropped] == ["unknown-source"]


async def test_changes_come_by_the_link_while_the_node_is_away(autojump_clock):
    """P2P-30: what is live needs no node."""
    async with pair(p2p=True) as two:
        network = two.domain.network
        network.refuse(NODE_PLACE)
        for wire in network.open_wires(Carrier.WEBSOCKET):
            wire.cut()
        for n in range(1, 11):
            await two.obj.set("n", n)
        await two.follows(11)
        assert (two.copy.value, two.at_node()) == ({"n": 10}, 0)
        network.allow(NODE_PLACE)
        await trio.sleep(60)
        await two.obj.set("n", 11)
        await two.follows(12)
        assert (two.at_node(), two.reads()) == (0, 0)
