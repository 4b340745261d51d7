"""A node that has forgotten an object is sent it until it takes it (STB-09, C-44)."""

from itertools import pairwise

import pytest
import trio

from actors.node.components import PathService
from actors.runtime.sync.reporter import Renewal
from specs.limits.sync import RENEWED_AT_ONCE
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from tests.actors.runtime.sync.test_path_renewed import place

URL = "comm://a.ex/1"
ASKED = Message(1, MessageType.SUBSCRIBE, "ra/sm", "domain://msg-node.a.ex/sm", {})
YES, BUSY = reply_to(ASKED, Code.OK, {}), refuse(ASKED, Code.UNAVAILABLE, "busy")
LOST = refuse(ASKED, Code.FORBIDDEN, "it is another's")


class Node:
    """Answers what it is ordered to, the last of it for good."""

    def __init__(self, *answers, after=0.0):
        self.answers, self.after = list(answers), after
        self.asked, self.at_once, self.most = [], 0, 0

    def renewal(self, may_ask=lambda: True, permits=None):
        return Renewal(URL, self.ask, may_ask, permits or trio.CapacityLimiter(RENEWED_AT_ONCE))

    async def ask(self):
        self.asked.append(trio.current_time())
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await trio.sleep(self.after)
        self.at_once -= 1
        return self.answers.pop(0) if self.answers[1:] else self.answers[0]


async def test_a_busy_node_is_asked_again_after_longer_and_longer_pauses(autojump_clock):
    node = Node(BUSY, BUSY, BUSY, YES)
    assert await node.renewal().run()
    pauses = [after - before for before, after in pairwise(node.asked)]
    assert pauses[1:] == pytest.approx([2 * pauses[0], 4 * pauses[0]])


async def test_an_address_that_is_lost_is_not_asked_for_again(autojump_clock):
    node = Node(LOST)
    assert not await node.renewal().run()
    assert len(node.asked) == 1


async def test_an_renewalthat_is_gone_is_not_asked_for_again(autojump_clock):
    node = Node(BUSY)
    renewal = node.renewal()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(renewal.run)
        await trio.sleep(0.01)
        renewal.end()
    assert len(node.asked) == 1


async def test_an_renewalin_doubt_is_asked_for_when_it_is_not_any_more(autojump_clock):
    node = Node(YES)
    until = trio.current_time() + 5
    assert await node.renewal(lambda: trio.current_time() > until).run()
    assert len(node.asked) == 1


async def test_an_renewalin_doubt_that_is_forgotten_once_more_rests(autojump_clock):
    node = Node(YES)
    until, looks = trio.current_time() + 5, iter(range(100))
    renewal = node.renewal(lambda: next(looks) >= 0 and trio.current_time() > until)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(renewal.run)
        await trio.sleep(0.5)
        assert not await renewal.run()
    assert len(node.asked) == 1


async def test_a_node_that_forgets_once_more_meanwhile_is_asked_once_more(autojump_clock):
    node = Node(YES, after=1)
    renewal = node.renewal()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(renewal.run)
        await trio.sleep(0.5)
        assert not await renewal.run()
    assert len(node.asked) == 2


async def test_repeats_alternate_between_all_objects(autojump_clock):
    node = Node(YES, after=1)
    permits = trio.CapacityLimiter(RENEWED_AT_ONCE)
    async with trio.open_nursery() as nursery:
        for _ in range(10 * RENEWED_AT_ONCE):
            nursery.start_soon(node.renewal(permits=permits).run)
    assert len(node.asked) == 10 * node.most == 10 * RENEWED_AT_ONCE


async def test_an_renewalis_found_again_though_the_node_was_busy_when_it_came_back(
    autojump_clock, monkeypatch
):
    receive, refused = PathService.receive, []

    def busy_at_first(desk, message, by):
        is_of_object = message.type is MessageType.SUBSCRIBE and "ctxt:" in str(message.body)
        if is_of_object and trio.current_time() < busy_until:
            refused.append(message)
            return refuse(message, Code.UNAVAILABLE, "busy")
        return receive(desk, message, by)

    async with place() as (made, sensor, watcher), sensor.report("ctxt", {"t": 0}) as thing:
        made.node.cancel()
        await trio.sleep(1)
        busy_until = trio.current_time() + 30
        monkeypatch.setattr(PathService, "receive", busy_at_first)
        await made.start()
        await trio.sleep(90)
        assert len(refused) > 2
        async with watcher.observe(thing.url) as copy:
            await thing.set("t", 1)
            with trio.fail_after(5):
                await copy.wait_for(lambda value: value["t"] == 1)
