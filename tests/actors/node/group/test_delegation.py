"""The address of a data object goes to a runtime at another node (SYN-26, I-D1)."""

import pytest
import trio
import trio.testing

from specs.limits.group import GROUP_OBSERVERS_BYTES
from tests.support.node.group_world import open_group, resumed
from tests.support.node.node_peer import ALLOCATION, RA, RB
from transports.errors import LinkError

RC = "hyperty-runtime://a.ex/rc"


def asks(peer, operation, thing, heir, **more):
    """Ask for one step of the first hand-over of an object."""
    delegate = {} if operation == "withdraw" else {"delegate": heir}
    body = {"resource": thing, "operation": operation, "number": 1, **delegate, **more}
    return peer.ask("update", f"{peer.runtime}/address-allocation", ALLOCATION, **body)


async def asked(peer, operation, thing, heir):
    """Ask; return the code, None if the node closes the link."""
    try:
        return (await asks(peer, operation, thing, heir)).code
    except LinkError:
        return None


async def offered(one, two):
    """Let a runtime at one node offer its object to a hyperty of a runtime at another."""
    ra, rb = await one.peer(RA), await two.peer(RB)
    [thing], [heir] = await ra.allocate("comm"), await rb.allocate()
    assert (await asks(ra, "offer", thing, heir)).code == 200
    await trio.testing.wait_all_tasks_blocked()
    return ra, rb, thing, heir


async def owners(world, thing):
    """Return the runtime that owns an address at each node that has a session."""
    await trio.testing.wait_all_tasks_blocked()
    views = [view for member in world.nodes for view in await member.node.sessions()]
    return [view.runtime for view in views if thing in view.addresses]


@pytest.mark.parametrize(
    ("first", "then", "code", "owner"),
    [("take", "withdraw", 410, RB), ("withdraw", "take", 403, RA)],
)
async def test_an_offer_goes_with_the_session_of_its_owner(
    autojump_clock, first, then, code, owner
):
    async with open_group(3) as world:
        one, two, three = world.nodes
        ra, rb, thing, heir = await offered(one, two)
        ends = {"take": rb, "withdraw": await resumed(three, RA, ra.token)}
        assert (await asks(ends[first], first, thing, heir)).code == 200
        assert (await asks(ends[then], then, thing, heir)).code == code
        assert await owners(world, thing) == [owner]


async def test_of_a_take_and_a_withdrawal_at_once_one_counts(autojump_clock):
    """I-D1: the other link is closed, and its runtime is told when it asks again."""
    async with open_group() as world:
        one, two = world.nodes
        ra, rb, thing, heir = await offered(one, two)
        codes = {}

        async def ask(peer, operation):
            codes[operation] = await asked(peer, operation, thing, heir)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, ra, "withdraw")
            nursery.start_soon(ask, rb, "take")
        assert sorted(codes.values(), key=str) == [200, None]
        again = [await resumed(one, RA, ra.token), await resumed(two, RB, rb.token)]
        told = [
            await asked(peer, operation, thing, heir)
            for peer, operation in zip(again, ("withdraw", "take"), strict=True)
        ]
        is_taken = codes["take"] == 200
        assert told == ([410, 200] if is_taken else [200, 403])
        assert await owners(world, thing) == [RB if is_taken else RA]


async def test_an_offer_that_is_not_known_yet_is_asked_for_again(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        ra, rb = await one.peer(RA), await two.peer(RB)
        [thing], [heir] = await ra.allocate("comm"), await rb.allocate()
        await trio.testing.wait_all_tasks_blocked()
        world.store.slow(0.5, two.engine)
        assert (await asks(ra, "offer", thing, heir)).code == 200
        early = await asks(rb, "take", thing, heir)
        assert early.code == 503
        assert early.body["retryAfter"]
        await trio.sleep(1)
        assert (await asks(rb, "take", thing, heir)).code == 200


@pytest.mark.parametrize("is_fresh", [False, True])
async def test_an_offer_ends_with_the_session_it_was_made_to_at_all_nodes(is_fresh, autojump_clock):
    """I-A7; a node that starts later reads so, too."""
    async with open_group() as world:
        one, two = world.nodes
        ra, rb, thing, heir = await offered(one, two)
        await rb.control("close")
        await trio.testing.wait_all_tasks_blocked()
        there = await world.node() if is_fresh else two
        again = await there.peer(RB)
        assert (await asks(again, "take", thing, heir)).code == 403
        assert (await asks(ra, "withdraw", thing, heir)).code == 200
        assert await owners(world, thing) == [RA]


async def test_a_row_names_as_many_observers_as_fit(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        ra, rb, thing, heir = await offered(one, two)
        path = [f"{thing}/changes"]
        assert (await ra.ask("subscribe", f"{RA}/sm", f"{ra.node}/sm", resources=path)).code == 200
        observers = [f"hyperty://a.ex/{number:0500}" for number in range(100)]
        assert (await asks(rb, "take", thing, heir, observers=observers)).code == 200
        await trio.testing.wait_all_tasks_blocked()
        (row,) = [row for row in world.store.rows("owner/") if row.key == f"owner/{thing}"]
        assert len(row.value) < GROUP_OBSERVERS_BYTES + 500
        sent = await rb.post("update", thing, f"{thing}/changes", value=1)
        with trio.fail_after(10):
            assert (await ra.hear()).id == sent.id


@pytest.mark.parametrize("observers", [(), (f"{RA}/sm",)])
async def test_the_former_owner_hears_what_an_observer_hears(observers, autojump_clock):
    """SYN-26, S3: and nothing any more, once its last observer is expelled."""
    async with open_group(3) as world:
        one, two, three = world.nodes
        ra, rb, thing, heir = await offered(one, two)
        paths = [thing, f"{thing}/subscription", f"{thing}/changes"]
        await ra.ask("subscribe", f"{RA}/sm", f"{ra.node}/sm", resources=paths)
        named = {"observers": observers} if observers else {}
        assert (await asks(rb, "take", thing, heir, **named)).code == 200
        other = await three.peer(RC)
        await other.post("update", f"{RC}/sm", f"{thing}/subscription", value=0)
        with trio.fail_after(10):
            assert (await rb.hear()).to == f"{thing}/subscription"
        for _ in observers:
            sent = await rb.post("update", thing, f"{thing}/changes", value=1)
            with trio.fail_after(10):
                assert (await ra.hear()).id == sent.id
            await rb.ask(
                "unsubscribe", f"{RB}/sm", f"{rb.node}/sm",
                resources=[f"{thing}/changes"], observer=f"{RA}/sm",
            )  # fmt: skip
        await rb.post("update", thing, f"{thing}/changes", value=2)
        assert await ra.silence(1)
