"""What hyperties had at a node of a group that was killed, they have again before they use it."""

from contextlib import AsyncExitStack

import pytest
import trio

import actors
from fsm.registry.node_rights import Observation
from tests.actors.node.group.test_domain import runtimes
from tests.support.node.group_world import open_group
from tests.system.session.test_had_again import Caller, Course, Echo, until

CALLERS = 1


async def ask_on(course, hyperty, echo):
    """Ask at a rate of its own: also while the node is away."""

    async def ask():
        begun = course.up
        answer = await hyperty.request(echo.url, 7)
        later, why = answer.body.get("retryAfter"), answer.body.get("description")
        course.note(begun, "rate", answer.code, later, why)

    async with trio.open_nursery() as asking:
        while True:
            asking.start_soon(ask)
            await trio.sleep(0.1)


KILLED = {"of those who ask": [0], "of the one that is asked": [1], "all": [0, 1, 2]}


@pytest.mark.parametrize("killed", KILLED.values(), ids=KILLED)
async def test_runtimes_of_killed_nodes_are_used_as_before_at_another(killed, autojump_clock):
    """STB-09, MN-22: nothing is refused because the other node does not know whose it is."""
    course = Course()
    async with AsyncExitStack() as opened:
        group = await opened.enter_async_context(open_group(3, observation=Observation.OWNER))
        places = await opened.enter_async_context(runtimes(group))
        here, there = [place.runtime for place in places]
        echo = await there.deploy(Echo, resources=["echo"])
        hyperties = [await here.deploy(Echo) for _ in range(CALLERS)]
        callers = [Caller(course, hyperty, echo.url) for hyperty in hyperties]
        thing = await opened.enter_async_context(echo.report("comm", {"n": 0}))
        copies = [await opened.enter_async_context(one.observe(thing.url)) for one in hyperties]
        nursery = await opened.enter_async_context(trio.open_nursery())
        nursery.start_soon(ask_on, course, hyperties[0], echo)
        for caller in callers:
            nursery.start_soon(caller.request)
            nursery.start_soon(caller.search)
            nursery.start_soon(caller.watch)
        await until(lambda: all(one.answers > 2 and one.seen for one in callers))

        other = await group.node()
        for number in killed:
            if number < len(places):
                places[number].go(other)
            await group.kill(group.nodes[number])
        course.up += 1
        for one in callers:
            one.answers = one.finds = 0

        await until(lambda: all(one.answers > 2 and one.finds > 2 for one in callers))
        await thing.set("n", 1)
        await until(lambda: all(copy.value["n"] == 1 for copy in copies))
        late = await there.deploy(Echo, resources=["echo"])
        wanted = (late.url, actors.Change.APPEARED)
        await until(lambda: all(wanted in one.seen for one in callers))
        assert course.wrong == []
        nursery.cancel_scope.cancel()
