"""An owner shuts observers out at the node: they hear nothing more, react or not (SYN-21, S3)."""

from contextlib import asynccontextmanager

from trio.testing import wait_all_tasks_blocked

from fsm.registry.node_rights import Observation
from tests.support.node.node_peer import RA, RB, SM, open_world

HB, HB2 = f"{RB}/hb", f"{RB}/hb2"
MANAGER = f"{RB}/sm"


@asynccontextmanager
async def observed(*observers, **config):
    """An object of one runtime, which another observes for some hyperties."""
    async with open_world(observation=Observation.OWNER, **config) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (obj,) = await ra.allocate("comm")
        await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/changes"], source=RB)
        for observer in observers:
            await rb.post("subscribe", MANAGER, f"{obj}/subscription", source=observer)
            await ra.post_answer(await ra.hear(), 200, value={"version": 1})
            assert (await rb.hear()).code == 200
        yield world, ra, rb, obj


async def cut(owner, obj, observer, **more):
    """Have an observer shut out; return the code of the answer."""
    manager = f"{owner.runtime}/sm"
    answer = await owner.ask("unsubscribe", manager, SM, resources=[obj], observer=observer, **more)
    return answer.code


async def hears(owner, observer, obj):
    await owner.post("update", obj, f"{obj}/changes", version=2)
    await wait_all_tasks_blocked()
    return not await observer.silence() and bool(observer.heard.pop())


async def test_a_readmitted_observer_receives_changes_again(autojump_clock):
    async with observed(HB) as (_, ra, rb, obj):
        await cut(ra, obj, HB)
        await rb.post("subscribe", MANAGER, f"{obj}/subscription", source=HB)
        await ra.post_answer(await ra.hear(), 200, value={"version": 2})
        await rb.hear()
        assert await hears(ra, rb, obj)
