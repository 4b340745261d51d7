"""Components that follow an address of another's, and stop to (BUS-02, SYN-06, I-D7)."""

from types import SimpleNamespace

import trio
import trio.testing

from actors.runtime.sync.output import LinkWatches
from tests.support.wire.wire import A, B, C, event

CHANGES = f"{A}/changes"


async def publish(world):
    await world.port(A).post(event(1, to=CHANGES))
    await world.settle()


async def test_one_follower_stops_and_the_other_goes_on(world):
    await world.component(A)
    bob, carol = await world.component(B), await world.component(C)
    for follower in (B, C):
        world.agent.follow(CHANGES, follower)
    for _ in range(2):
        world.agent.unfollow(CHANGES, B)
    await publish(world)
    assert (bob, world.heard_by(carol)) == ([], [event(1, to=CHANGES)])


async def test_the_registry_is_not_asked_for_a_link_that_nobody_watches_any_more(nursery):
    ends = []

    async def find_link(*_, is_wanted):
        with trio.CancelScope():
            try:
                await trio.sleep_forever()
            finally:
                ends.append("ended")

    registry = SimpleNamespace(find_link=find_link)
    watches = LinkWatches(
        SimpleNamespace(registry=registry, spawn=nursery.start_soon), lambda *_: None
    )
    watches.watch(B, None)
    await trio.testing.wait_all_tasks_blocked()
    watches.unwatch(B)
    await trio.testing.wait_all_tasks_blocked()
    assert ends == ["ended"]


async def test_an_expelled_observer_follows_nothing(world):
    await world.component(A)
    bob, carol = await world.component(B), await world.component(C)
    for follower in (B, C):
        world.agent.follow(CHANGES, follower)
    world.agent.expel(B)
    await publish(world)
    assert (bob, world.heard_by(carol)) == ([], [event(1, to=CHANGES)])
