"""Children of objects by a direct link: SYN-24, SYN-27, P2P-30, I-D10, I-D12."""

import trio

import actors
from specs.trace import Op
from tests.support.link_world import LINKED, UNLINKED, pair
from tests.support.runtime.domain import NODE_PLACE, DomainOptions, go_live, open_domain
from transports.link import Kind as Carrier


async def reported(children, wanted, within=200):
    """Wait until children have these values, in any order."""
    with trio.fail_after(within):
        await trio.lowlevel.checkpoint()
        while sorted(str(child.value) for child in children.values()) != sorted(map(str, wanted)):
            assert await children.wait_for_change()


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


async def test_a_window_moves_on_by_the_link_as_by_the_node(autojump_clock):
    async with open_domain("alice", "bob", "carol") as domain:
        await go_live(domain)
        alice, bob = domain["alice"].hyperty, domain["bob"].hyperty
        carol = domain["carol"].hyperty
        async with (
            alice.report(
                "comm", {}, observers=(bob.url, carol.url), children=actors.ChildWindow(last=4)
            ) as thing,
            bob.observe(thing.url, p2p=True) as linked,
            carol.observe(thing.url, p2p=False) as copy,
        ):
            for number in range(30):
                await (thing, linked, copy)[number % 3].children.create(number)
            for children in (thing.children, linked.children, copy.children):
                await reported(children, range(26, 30))
            await thing.children[next(iter(thing.children))].delete()
            for children in (thing.children, linked.children, copy.children):
                await reported(children, range(27, 30))


def at_node(two):
    """How many messages to the children of the object the node was given."""
    facts = two.domain.node_tracer.facts
    return len([one for one in facts if one.to == two.children and one.op is Op.RCV])


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
