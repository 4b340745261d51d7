"""A node that has forgotten an object is sent it until it takes it (STB-09, C-44)."""

from itertools import pairwise

import pytest
import trio

from actors.node.components import PathService
from actors.runtime.sync.reporter import Renewal, ReportedObjects
from specs.limits.protocol import RENEW_TIMEOUT
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

    def renewal(self, permits=None):
        return Renewal(URL, self.ask, permits or trio.CapacityLimiter(RENEWED_AT_ONCE))

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


async def test_a_deleted_object_is_not_asked_for_again(autojump_clock):
    node = Node(BUSY)
    renewal = node.renewal()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(renewal.run)
        await trio.sleep(0.01)
        renewal.end()
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


async def test_an_object_is_found_again_though_the_node_was_busy_when_it_came_back(
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


async def observe(watcher, url):
    async with watcher.observe(url):
        await trio.sleep_forever()


@pytest.mark.parametrize("is_observed", [False, True])
async def test_a_reopened_session_does_not_wait_for_an_object_that_is_being_deleted(
    autojump_clock, is_observed
):
    async with (
        place() as (made, sensor, watcher),
        trio.open_nursery() as nursery,
        sensor.report("ctxt", {"t": 0}) as thing,
    ):
        if is_observed:
            nursery.start_soon(observe, watcher, thing.url)
            await trio.sleep(1)
        made.node.cancel()
        await trio.sleep(0.1)
        nursery.start_soon(made.start)
        with trio.fail_after(RENEW_TIMEOUT / 2):
            await thing.delete()
        nursery.cancel_scope.cancel()


async def test_an_object_that_is_deleted_while_it_is_claimed_gets_no_paths(
    autojump_clock, monkeypatch
):
    set_paths, kinds, is_claimed = ReportedObjects.set_paths, [], trio.Event()

    async def set_slowly(objects, kind, paths):
        kinds.append(kind)
        answer = await set_paths(objects, kind, paths)
        is_claimed.set()
        await trio.sleep(1 if len(paths) == 1 else 0)
        return answer

    async with place() as (made, sensor, _), sensor.report("ctxt", {"t": 0}) as thing:
        monkeypatch.setattr(ReportedObjects, "set_paths", set_slowly)
        made.node.cancel()
        await trio.sleep(0.1)
        await made.start()
        await is_claimed.wait()
        await thing.delete()
        await trio.sleep(5)
        assert kinds == [MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE]
