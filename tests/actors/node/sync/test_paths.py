"""Who is delivered what (MN-14..MN-16, I-M5..I-M7, I-M14)."""

import pytest
import trio.testing

from specs.limits.protocol import MAX_SUBSCRIPTIONS
from specs.reply_code import DropReason
from tests.support.node.node_peer import RA, RB, RX, SM, open_world


async def test_an_update_goes_once_to_each_subscriber_and_not_back(autojump_clock):
    async with open_world() as world:
        ra, rb, rx = [await world.peer(one) for one in (RA, RB, RX)]
        (obj,) = await ra.allocate("comm")
        for peer in (ra, rb, rx, rb):
            sm = f"{peer.runtime}/sm"
            answer = await peer.ask("subscribe", sm, SM, resources=[f"{obj}/changes"])
            assert answer.code == 200

        update = await ra.post("update", obj, f"{obj}/changes", version=2)

        assert [await rb.hear(), await rx.hear()] == [update, update]
        assert await ra.silence()
        assert await rb.silence()


async def test_children_come_back_to_their_author_too(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        (obj,) = await ra.allocate("comm")
        await ra.ask("subscribe", f"{RA}/sm", SM, resources=[f"{obj}/children/chat"])

        child = await ra.post("update", obj, f"{obj}/children/chat", value=1)

        assert await ra.hear() == child


async def test_updates_leave_in_the_order_they_came(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (obj,) = await ra.allocate("comm")
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=[f"{obj}/changes"])

        sent = [await ra.post("update", obj, f"{obj}/changes", version=n) for n in range(100)]

        assert [await rb.hear() for _ in sent] == sent


async def test_after_an_unsubscribe_nothing_more_comes(autojump_clock):
    """MSG-14."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (obj,) = await ra.allocate("comm")
        path = [f"{obj}/changes"]
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=path)
        assert (await rb.ask("unsubscribe", f"{RB}/sm", SM, resources=path)).code == 200
        assert (await rb.ask("unsubscribe", f"{RB}/sm", SM, resources=path)).code == 200

        await ra.post("update", obj, f"{obj}/changes", version=2)

        assert await rb.silence()
        assert world.node.counters.drops[DropReason.NO_TARGET] == 1


async def test_a_subscriber_may_answer_what_was_fanned_out(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (obj,) = await ra.allocate("comm")
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=[f"{obj}/changes"])
        await ra.post("delete", f"{obj}/subscription", f"{obj}/changes")
        request = await rb.hear()

        await rb.post("response", request.to, request.from_, code=200, source=RB)

        assert (await ra.hear()).body == {"code": 200, "source": RB}


async def test_a_path_to_an_own_stub_leads_there(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        handler = f"{RB}/p2phandler/1"
        answer = await rb.ask(
            "subscribe", f"{RB}/ua", SM, resources=[handler], source=handler
        )  # fmt: skip
        assert answer.code == 200

        invitation = await ra.post("create", f"{RA}/sm", handler, value={})

        assert await rb.hear() == invitation


@pytest.mark.parametrize("part", ["", "/subscription", "/ua"])
async def test_messages_for_another_session_cannot_be_subscribed_to(part, autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (hb,) = await rb.allocate()

        for resource in (f"{hb}{part}", f"{RB}{part}"):
            answer = await ra.ask("subscribe", f"{RA}/sm", SM, resources=[resource])
            assert answer.code == 403


async def test_one_bad_address_in_a_list_sets_no_path_at_all(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        await world.peer(RB)

        resources = ["comm://a.ex/mine", f"{RB}/ua"]
        assert (await ra.ask("subscribe", f"{RA}/sm", SM, resources=resources)).code == 403

        assert [view.paths for view in await world.node.sessions()] == [(), ()]
        assert world.steps("address") == []


async def test_a_path_claims_an_unowned_address(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        made = "hyperty://a.ex/made-by-ra"
        claim = {"resources": [made], "source": f"{RA}/address-allocation"}
        assert (await ra.ask("subscribe", f"{RA}/address-allocation", SM, **claim)).code == 200

        assert (await rb.ask("subscribe", f"{RB}/sm", SM, resources=[made])).code == 403
        request = await rb.post("read", f"{RB}/ua", made)

        assert await ra.hear() == request


async def test_more_paths_than_a_session_may_have_get_413(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        paths = [f"comm://a.ex/o{n}/changes" for n in range(MAX_SUBSCRIPTIONS + 1)]
        parts = [paths[n : n + 250] for n in range(0, len(paths), 250)]

        codes = [(await ra.ask("subscribe", f"{RA}/sm", SM, resources=p)).code for p in parts]

        assert codes == [200, 200, 200, 200, 413]


async def test_the_subscription_manager_sets_and_removes_only(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)

        assert (await ra.ask("create", f"{RA}/sm", SM, resources=[])).code == 400


async def test_a_closed_session_leaves_no_path(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=["comm://a.ex/o/changes"])
        await rb.control("close")
        await trio.testing.wait_all_tasks_blocked()

        rows = [(f.op, f.key) for f in world.tracer.facts if f.k == "table" and f.table == "subs"]
        assert rows == [("add", "comm://a.ex/o/changes"), ("del", "comm://a.ex/o/changes")]
        assert ra.token
