"""Children of objects by a direct link: SYN-24, SYN-27, P2P-30, I-D10, I-D12."""

import pytest
import trio

import actors
from actors.runtime.hyperty.hyperty import Hyperty
from specs.message import Message, MessageType
from specs.trace import Op
from tests.support.link_world import LINKED, UNLINKED, pair
from tests.support.runtime.domain import NODE_PLACE, DomainOptions, go_live, open_domain
from transports.link import Kind as Carrier
from transports.system import open_system_network


async def reported(children, wanted, within=200):
    """Wait until children have these values, in any order."""
    with trio.fail_after(within):
        await trio.lowlevel.checkpoint()
        while sorted(str(child.value) for child in children.values()) != sorted(map(str, wanted)):
            assert await children.wait_for_change()


def at_node(two):
    """How many messages to the children of the object the node was given."""
    facts = two.domain.node_tracer.facts
    return len([one for one in facts if one.to == two.children and one.op is Op.RCV])


@pytest.mark.parametrize("p2p", [True, None])
async def test_children_of_both_sides_go_by_the_link(p2p, autojump_clock):
    """P2P-30, M-48..M-50: new ones, their answers, changes and ends pass no node."""
    async with pair(LINKED, p2p=p2p) as two:
        mine = await two.copy.children.create("mine")
        theirs = await two.obj.children.create("theirs")
        for children in (two.copy.children, two.obj.children):
            await reported(children, ["mine", "theirs"], within=1)
        await mine.update("my later")
        await theirs.update("their later")
        for children in (two.copy.children, two.obj.children):
            await reported(children, ["my later", "their later"])
        await mine.update({"a": 1, "b": 2})
        await mine.remove("a")
        for children in (two.copy.children, two.obj.children):
            await reported(children, [{"b": 2}, "their later"], within=1)
        await mine.delete()
        await theirs.delete()
        for children in (two.copy.children, two.obj.children):
            await reported(children, [])
        await trio.sleep(100)
        assert (at_node(two), two.paths()) == (0, [])


async def test_children_go_by_the_link_while_the_node_is_away(autojump_clock):
    async with pair(LINKED, p2p=True) as two:
        await two.copy.children.create("before")
        network = two.domain.network
        network.refuse(NODE_PLACE)
        for wire in network.open_wires(Carrier.WEBSOCKET):
            wire.cut()
        with trio.fail_after(1):
            await two.copy.children.create("mine")
            await two.obj.children.create("theirs")
            for children in (two.copy.children, two.obj.children):
                await reported(children, ["before", "mine", "theirs"])
        network.allow(NODE_PLACE)


async def test_an_observer_that_wants_no_link_has_children_by_the_node(autojump_clock):
    async with pair(LINKED, p2p=False) as two:
        await two.copy.children.create("mine")
        await two.obj.children.create("theirs")
        for children in (two.copy.children, two.obj.children):
            await reported(children, ["mine", "theirs"])
        assert at_node(two) >= 2


async def test_no_child_is_taken_from_a_link_that_was_not_asked_for_it(autojump_clock):
    """I-D10: not even from the reporter's own runtime, whose object it is."""
    async with pair(LINKED, p2p=False) as two:
        await two.copy.children.create("mine")
        report = {"resource": f"{two.alice.address}#1", "value": "unasked", "version": 1}
        await two.say_as(
            two.alice, two.bob, Message(999, MessageType.UPDATE, two.obj.url, two.children, report)
        )
        await trio.sleep(1)
        drops = [one for one in two.bob.facts(Op.DROP) if one.to == two.children and one.id == 999]
        assert "denied" in [one.reason for one in drops]


async def test_children_come_on_when_changes_move_to_a_link(autojump_clock):
    """SYN-27."""
    async with pair(UNLINKED) as two:
        await two.copy.children.create("before")
        await go_live(two.domain)
        await two.path_has_steps(1, "add")
        await trio.sleep(5)
        before = at_node(two)
        await two.obj.children.create("after")
        await two.copy.children.create("mine")
        for children in (two.copy.children, two.obj.children):
            await reported(children, ["before", "after", "mine"])
        assert at_node(two) == before


async def test_observers_with_and_without_links_have_the_same_children(autojump_clock):
    """I-D12: one by the link, one by the node, one beside the reporter; each may write."""
    async with pair(LINKED, p2p=True) as two, two.domain.visitor("carol") as carol:
        beside = Writer()
        address = await two.alice.runtime.deploy("beside", lambda: beside)
        for observer in (carol.address, address):
            await two.obj.allow(observer)
        async with (
            carol.hyperty.observe(two.obj.url, p2p=False) as far,
            beside.observe(two.obj.url) as near,
        ):
            everywhere = [each.children for each in (two.obj, two.copy, far, near)]
            made = [await children.create(str(n)) for n, children in enumerate(everywhere)]
            for children in everywhere:
                await reported(children, "0123", within=1)
            for child in made[:2]:
                await child.update("new")
            for child in made[2:]:
                await child.delete()
            for children in everywhere:
                await reported(children, ["new", "new"], within=1)


class Writer(Hyperty):
    """Observes, and writes children."""


class Burst:
    """What one side does to its children, as fast as it goes."""

    def __init__(self, children, name, count, pause):
        self.children = children
        self.name = name
        self.count = count
        self.pause = pause
        self.done = trio.Event()
        self.there = {}

    async def run(self):
        for number in range(self.count):
            child = await self.children.create(f"{self.name} {number}")
            self.there[child.id] = f"{self.name} {number}"
            if number % 3 == 1:
                await child.update(f"{self.name} {number} later")
                self.there[child.id] = f"{self.name} {number} later"
            if number % 3 == 2:
                await child.delete()
                del self.there[child.id]
            await trio.sleep(self.pause)
        self.done.set()


def shown(children):
    return {child.id: child.value for child in children.values()}


async def all_equal(bursts, everywhere):
    """Wait until all have exactly what was made and not deleted."""
    with trio.fail_after(300):
        for burst in bursts:
            await burst.done.wait()
        wanted = {name: value for burst in bursts for name, value in burst.there.items()}
        for children in everywhere:
            while shown(children) != wanted:
                assert await children.wait_for_change()
    for children in everywhere:
        assert sorted(shown(children).values()) == sorted(set(wanted.values()))


@pytest.mark.parametrize("how", ["cut", "away", "for good"])
@pytest.mark.parametrize("latency", [0.0, 0.03])
async def test_a_link_lost_in_a_burst_of_both_sides_loses_no_child(how, latency, autojump_clock):
    """P2P-30: all equal at the end, and no new child is refused for the loss."""
    async with pair(LINKED) as two, trio.open_nursery() as nursery:
        if latency:
            two.slow_down(by_node=latency, by_link=latency / 3)
        ends = (two.obj.children, two.copy.children)
        bursts = [Burst(each, name, 60, 0.02) for each, name in zip(ends, "ab", strict=True)]
        for burst in bursts:
            nursery.start_soon(burst.run)
        await trio.sleep(0.5 + 10 * latency)
        assert at_node(two) == 0
        assert not any(burst.done.is_set() for burst in bursts)
        if how == "cut":
            two.domain.cut_links(Carrier.TCP)
        elif how == "for good":
            await two.end_link()
        else:
            with two.link_away():
                await trio.sleep(3)
        await all_equal(bursts, ends)
        if how != "cut":
            assert at_node(two) > 0


async def test_ten_losses_in_a_burst_lose_no_child(autojump_clock):
    async with pair(LINKED) as two, trio.open_nursery() as nursery:
        ends = (two.obj.children, two.copy.children)
        bursts = [Burst(each, name, 90, 0.4) for each, name in zip(ends, "ab", strict=True)]
        for burst in bursts:
            nursery.start_soon(burst.run)
        for _ in range(10):
            await trio.sleep(3.3)
            two.domain.cut_links(Carrier.TCP)
        await all_equal(bursts, ends)


async def test_a_burst_over_real_sockets_survives_the_end_of_its_link():
    options = DomainOptions(kinds=(Carrier.TCP,), network=open_system_network)
    async with pair(options=options) as two, trio.open_nursery() as nursery:
        ends = (two.obj.children, two.copy.children)
        bursts = [Burst(each, name, 40, 0.0) for each, name in zip(ends, "ab", strict=True)]
        for burst in bursts:
            nursery.start_soon(burst.run)
        with trio.fail_after(60):
            while len(shown(two.obj.children)) < 10:
                await two.obj.children.wait_for_change()
            await two.end_link()
            await all_equal(bursts, ends)


async def test_a_burst_that_moves_to_a_link_loses_no_child(autojump_clock):
    async with pair(UNLINKED) as two, trio.open_nursery() as nursery:
        two.slow_down(by_node=0.02, by_link=0.005)
        ends = (two.obj.children, two.copy.children)
        bursts = [Burst(each, name, 60, 0.05) for each, name in zip(ends, "ab", strict=True)]
        for burst in bursts:
            nursery.start_soon(burst.run)
        await trio.sleep(1)
        await go_live(two.domain)
        await two.path_has_steps(1, "add")
        assert not any(burst.done.is_set() for burst in bursts)
        await all_equal(bursts, ends)


async def test_children_of_a_stored_object_go_by_the_link_and_are_kept(tmp_path):
    """SYN-28, M-51: an acknowledged child is on disk, whichever way it came."""
    options = DomainOptions(more={"alice": {"store": tmp_path / "objects.sqlite"}})
    stored = {"name": "stored", "store": True}
    for life in (1, 2):
        async with open_domain("alice", "bob", options=options) as domain:
            await go_live(domain)
            alice, bob = domain["alice"].hyperty, domain["bob"].hyperty
            async with (
                alice.report("comm", {}, observers=(bob.url,), **stored) as thing,
                bob.observe(thing.url, p2p=True) as copy,
            ):
                if life == 1:
                    await copy.children.create("mine")
                    await thing.children.create("theirs")
                for children in (copy.children, thing.children):
                    await reported(children, ["mine", "theirs"], within=30)


async def test_an_expelled_observer_hears_and_writes_no_child_by_its_link(autojump_clock):
    """I-D7, I-D10: its neighbour observes on, over the same link."""
    async with pair(LINKED, p2p=True) as two, two.another_observer(p2p=True) as other:
        await two.copy.children.create("before")
        await reported(other.copy.children, ["before"])
        await two.obj.expel(two.bob.address)
        await trio.sleep(1)
        with pytest.raises(actors.ObjectError, match=r"403|410"):
            await two.copy.children.create("after")
        await other.copy.children.create("still")
        await reported(two.obj.children, ["before", "still"])
        assert list(shown(two.copy.children).values()) == ["before"]
