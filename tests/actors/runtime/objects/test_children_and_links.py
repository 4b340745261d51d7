"""Children of objects whose changes come by a direct link: SYN-24, P2P-30, I-D10."""

import pytest
import trio

import actors
from actors.runtime.bus.messages import Submitted
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from tests.support.link_world import LINKED, UNLINKED, pair
from tests.support.runtime.domain import go_live


async def reported(children, wanted):
    with trio.fail_after(100):
        await trio.lowlevel.checkpoint()
        while [child.value for child in children.values()] != wanted:
            assert await children.later()


async def test_children_come_by_the_node_where_changes_come_by_a_link(autojump_clock):
    async with pair(LINKED) as two:
        child = await two.copy.children.create("mine")
        await two.obj.children.create("theirs")
        await reported(two.copy.children, ["mine", "theirs"])
        await child.update("later")
        await reported(two.obj.children, ["later", "theirs"])
        await two.obj.set("n", 1)
        await two.follows(2)
        assert two.at_node() == 0


async def test_children_come_on_when_changes_move_to_a_link(autojump_clock):
    async with pair(UNLINKED) as two:
        await two.copy.children.create("before")
        await go_live(two.domain)
        await trio.sleep(5)
        await two.obj.children.create("after")
        await reported(two.copy.children, ["before", "after"])
        await two.copy.children.create("mine")
        await reported(two.obj.children, ["before", "after", "mine"])


async def test_an_observer_by_links_only_has_no_children(autojump_clock):
    """SC-37: the provisional answer names none."""
    async with pair(LINKED, p2p=True) as two:
        with pytest.raises(actors.ObjectError, match="403"):
            await two.copy.children.create("nowhere")


async def test_nothing_of_a_child_is_taken_from_a_link(autojump_clock):
    """I-D10: a peer could speak for any other there; the node would know."""
    async with pair(LINKED) as two:
        bus = two.alice.runtime._parts.bus
        link = (await two.alice.runtime.links())[0].link
        for sender in ("hyperty://c.example/hc", two.obj.url):
            to = f"{two.obj.url}/children/resources"
            body = {"resource": f"{sender}#1", "value": "forged"}
            await bus.tell(Submitted(Message(9, MessageType.CREATE, sender, to, body), link))
        await trio.sleep(1)
        assert len(two.obj.children) == 0
        drops = two.alice.runtime.counters.ledger().counts
        assert drops[DropReason.UNKNOWN_SOURCE] == 2
