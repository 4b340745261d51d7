"""Each who observes is served by its own way, once and in order (I-M14, U-40, U-43, U-45)."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from specs.limits.protocol import PING_PERIOD
from tests.support.node.legacy_peer import plain_peer, session_peer
from tests.support.node.node_peer import RA, RB, RX, SM, open_world
from tests.support.node.upstream import DOORS, reported
from tests.support.trace.records import read, registered


def versions(heard):
    """Return the versions of changes; upstream's peers hear objects of JSON."""
    bodies = [one["body"] if isinstance(one, dict) else one.body for one in heard]
    return [body["version"] for body in bodies]


async def publish(owner, obj, numbers):
    for number in numbers:
        await owner.post("update", obj, f"{obj}/changes", version=number)


@DOORS
async def test_u40_observers_by_different_routes_are_served_alike(door, autojump_clock):
    """By a link of ours, by upstream's, and one whose link is lost at the moment."""
    async with open_world(allow_legacy=True) as world:
        ra, rb, rx = [await world.peer(one) for one in (RA, RB, RX)]
        old = await door(world)
        (obj,) = await ra.allocate("comm")
        changes = {"resources": [f"{obj}/changes"]}
        for one in (rb, rx):
            await one.ask("subscribe", f"{one.runtime}/sm", SM, **changes)
        assert (await reported(old, "subscribe", SM, changes))[0] == 200
        await rx.link.aclose()
        await wait_all_tasks_blocked()

        await publish(ra, obj, range(20))
        again = await world.outsider(RX)
        await again.control("re-open", runtimeURL=RX, token=rx.token)

        for one in (rb, old, again):
            assert versions([await one.hear() for _ in range(20)]) == list(range(20))
            assert await one.silence()


@pytest.mark.parametrize("lost_after", [0, 1, 100, 199, 200])
async def test_updates_stay_in_order_when_the_link_is_lost_between(lost_after, autojump_clock):
    """I-M14: what waited leaves before what comes later; none comes twice, none is missing."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (obj,) = await ra.allocate("comm")
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=[f"{obj}/changes"])

        await publish(ra, obj, range(lost_after))
        heard = [await rb.hear() for _ in range(lost_after)]
        await rb.link.aclose()
        await wait_all_tasks_blocked()
        await publish(ra, obj, range(lost_after, 200))
        again = await world.outsider(RB)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish, ra, obj, range(200, 300))
            await again.control("re-open", runtimeURL=RB, token=rb.token)

        heard += [await again.hear() for _ in range(lost_after, 300)]
        assert versions(heard) == list(range(300))
        assert await again.silence()


@pytest.mark.parametrize("objects", [2, 7])
async def test_each_object_keeps_its_order_while_others_publish_between(objects, autojump_clock):
    """I-M14 is per object; between objects of one owner the order of arrival holds as well."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        all_ = await ra.allocate("comm", objects)
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=[f"{one}/changes" for one in all_])

        for number in range(20):
            for one in all_:
                await publish(ra, one, [number])

        heard = [await rb.hear() for _ in range(20 * objects)]
        for one in all_:
            assert versions(had for had in heard if had.from_ == one) == list(range(20))


@pytest.mark.parametrize("peer", [plain_peer, session_peer])
async def test_u43_the_requested_lifetime_of_a_record_is_granted(peer, autojump_clock):
    """Nobody keeps a record alive whose owner has stopped to: its session may go on."""
    async with open_world(allow_legacy=True) as world:
        await peer(world)
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb, expires=PING_PERIOD)
        assert await rb.silence(PING_PERIOD - 1)
        assert (await read(ra, url)).code == 200
        assert await rb.silence(2)
        assert (await read(ra, url)).code in {404, 408}
