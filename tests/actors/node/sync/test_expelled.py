"""An owner shuts observers out at the node: they hear nothing more, react or not (SYN-21, S3)."""

from contextlib import asynccontextmanager

import pytest
from trio.testing import wait_all_tasks_blocked

from fsm.registry.node_rights import Observation
from tests.support.node.legacy_peer import OLD, OLD_INSIDE, plain_peer, session_peer
from tests.support.node.node_peer import RA, RB, RX, SM, open_world

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


@pytest.mark.parametrize("more", [{}, {"runtime": RB}])
async def test_an_expelled_observer_receives_nothing_more(more, autojump_clock):
    async with observed(HB) as (world, ra, rb, obj):
        assert await hears(ra, rb, obj)
        assert await cut(ra, obj, HB, **more) == 200
        assert not await hears(ra, rb, obj)
        assert [new for *_, new in world.steps("node_subscription")] == ["held", "active", "held"]


async def test_the_neighbour_of_an_expelled_observer_is_served_until_it_is_expelled_too(
    autojump_clock,
):
    async with observed(HB, HB2) as (_, ra, rb, obj):
        assert await cut(ra, obj, HB) == 200
        assert await hears(ra, rb, obj)
        assert await cut(ra, obj, HB2) == 200
        assert not await hears(ra, rb, obj)


async def test_a_readmitted_observer_receives_changes_again(autojump_clock):
    async with observed(HB) as (_, ra, rb, obj):
        await cut(ra, obj, HB)
        await rb.post("subscribe", MANAGER, f"{obj}/subscription", source=HB)
        await ra.post_answer(await ra.hear(), 200, value={"version": 2})
        await rb.hear()
        assert await hears(ra, rb, obj)


@pytest.mark.parametrize("runtime", [RB, RX])
async def test_only_the_owner_can_expel_an_observer(runtime, autojump_clock):
    async with observed(HB) as (world, ra, rb, obj):
        outsider = rb if runtime == RB else await world.peer(RX)
        for more in ({}, {"runtime": RB}):
            assert await cut(outsider, obj, HB, **more) == 403
        assert await hears(ra, rb, obj)


async def test_the_owner_of_one_object_cannot_expel_from_another_one(autojump_clock):
    async with observed(HB) as (_, ra, rb, obj):
        (mine,) = await rb.allocate("comm")
        answer = await rb.ask("unsubscribe", MANAGER, SM, resources=[mine, obj], observer=HB)
        assert answer.code == 403
        assert await hears(ra, rb, obj)


async def test_an_outsider_that_speaks_like_the_object_is_not_heard(autojump_clock):
    """The word of the owner's sync manager to the observer's, forged."""
    async with observed(HB) as (world, ra, rb, obj):
        outsider = await world.peer(RX)
        for from_ in (f"{obj}/subscription", f"{RX}/sm"):
            await outsider.post("unsubscribe", from_, MANAGER, resource=obj, observer=HB)
        await wait_all_tasks_blocked()
        heard = [] if await rb.silence() else rb.heard
        assert [one.from_ for one in heard] == [f"{RX}/sm"]
        rb.heard.clear()
        assert await hears(ra, rb, obj)


@pytest.mark.parametrize("door", [plain_peer, session_peer])
async def test_an_upstream_observer_is_shut_out_without_its_help(door, autojump_clock):
    """It knows no word for that; nothing comes any more all the same."""
    async with open_world(observation=Observation.OWNER, allow_legacy=True) as world:
        ra, old = await world.peer(RA), await door(world)
        (obj,) = await ra.allocate("comm")
        path = {"resources": [f"{obj}/changes"]}
        await old.ask(id=1, type="subscribe", from_=f"{OLD}/sm", to=SM, body=path)
        await old.say(
            id=2, type="subscribe", from_=f"{OLD}/sm", to=f"{obj}/subscription",
            body={"source": f"{OLD}/hb"},
        )  # fmt: skip
        await ra.post_answer(await ra.hear(), 200, value={})
        assert (await old.hear())["body"]["code"] == 200
        await ra.post("update", obj, f"{obj}/changes", version=2)
        assert (await old.hear())["body"]["version"] == 2

        assert await cut(ra, obj, f"{OLD_INSIDE}/hb", runtime=OLD_INSIDE) == 200
        await ra.post("update", obj, f"{obj}/changes", version=3)
        assert await old.silence()
