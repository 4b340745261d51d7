"""Changes by a direct link, and by the node when there is none (P2P-30, SYN-27, I-D12)."""

import trio

from specs.limits.sync import MAX_WITNESSED
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Op
from tests.support.link_world import UNLINKED, pair


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


async def test_so_many_requests_by_links_are_verified_at_once(autojump_clock):
    """Who has asked for observers that nobody knows is busy, and is verified again later."""
    async with pair(p2p=True) as two, trio.open_nursery() as nursery:
        two.slow_down(by_node=3, by_link=0)
        for number in range(MAX_WITNESSED):
            unknown = MessageType.UNSUBSCRIBE, f"hyperty://a.example/{number}"
            nursery.start_soon(two.ask_by_link, *unknown)
        for pause, code in ((1, Code.UNAVAILABLE), (60, Code.UNAUTHENTICATED)):
            await trio.sleep(pause)
            answer = await two.ask_by_link(MessageType.READ, two.bob.address, part="")
            assert answer.code == code
