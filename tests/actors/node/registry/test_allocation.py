"""Addresses of the node's domain (M-18..M-20, MN-10..MN-12, I-A1..I-A7)."""

import pytest

from specs.limits.protocol import MAX_ALLOCATION, SESSION_IDLE
from tests.support.node.node_peer import ALLOCATION, RA, RB, SM, open_world

ALLOC = f"{RA}/address-allocation"


async def test_as_many_as_asked_for_and_all_different(autojump_clock):
    """MSG-10."""
    async with open_world() as world:
        ra = await world.peer()

        addresses = await ra.allocate("connection", 5)

        assert len(set(addresses)) == 5
        assert all(one.startswith("connection://a.ex/") for one in addresses)


@pytest.mark.parametrize(
    "body",
    [
        {"scheme": "hyperty", "value": {"number": 0}},
        {"scheme": "hyperty", "value": {"number": MAX_ALLOCATION + 1}},
        {"scheme": "hyperty", "value": {}},
        {"scheme": "hyperty"},
        {"scheme": "gopher", "value": {"number": 1}},
        {"value": {"number": 1}},
    ],
)
async def test_an_invalid_request_gets_400(body, autojump_clock):
    async with open_world() as world:
        ra = await world.peer()

        assert (await ra.ask("create", ALLOC, ALLOCATION, **body)).code == 400


@pytest.mark.parametrize(("type_", "body"), [("read", {}), ("delete", {}), ("update", {})])
async def test_allocation_knows_create_and_delete_only(type_, body, autojump_clock):
    """MSG-10, MSG-13: what it does not know, or cannot read, is 400."""
    async with open_world() as world:
        ra = await world.peer()

        assert (await ra.ask(type_, ALLOC, ALLOCATION, **body)).code == 400


async def test_the_key_of_another_session_frees_nothing(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        wanted = {"number": 1, "allocationKey": "k"}
        await ra.ask("create", ALLOC, ALLOCATION, scheme="comm", value=wanted)

        answer = await rb.ask("delete", f"{RB}/ua", ALLOCATION, resource="k")

        assert answer.code == 200
        assert [view.addresses != () for view in await world.node.sessions()] == [True, False]


async def test_freeing_with_one_foreign_address_frees_none(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (ha,), (hb,) = await ra.allocate(), await rb.allocate()

        answer = await ra.ask("delete", ALLOC, ALLOCATION, childrenResources=[ha, hb])

        assert answer.code == 403
        assert [view.addresses for view in await world.node.sessions()] == [(ha,), (hb,)]


async def test_a_freed_address_is_no_longer_subscribed_to(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (ha,) = await ra.allocate("comm")
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=[f"{ha}/changes"])

        await ra.ask("delete", ALLOC, ALLOCATION, resource=ha)

        assert [view.paths for view in await world.node.sessions()] == [(), ()]


async def test_a_returning_runtime_claims_its_addresses_and_no_other_runtime_can(autojump_clock):
    """RT-03, SYN-25: its session was over, and its addresses released."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [had] = await ra.allocate("comm")
        await ra.control("close")
        claim = {"resources": [had]}
        assert (await rb.ask("subscribe", f"{RB}/sm", SM, source=RB, **claim)).code == 403

        again = await world.peer(RA)
        assert (await again.ask("subscribe", f"{RA}/sm", SM, source=RA, **claim)).code == 200
        assert (await again.ask("read", had, "comm://a.ex/nobodys")).code == 404


def offered(peer, operation, thing, heir):
    """Ask for one step of the first hand-over of an object."""
    params = {"resource": thing, "operation": operation, "number": 1}
    delegate = {} if operation == "withdraw" else {"delegate": heir}
    sender = f"{peer.runtime}/address-allocation"
    return peer.ask("update", sender, ALLOCATION, **params, **delegate)


@pytest.mark.parametrize("ending", ["closed", "expired"])
async def test_an_offer_ends_with_the_session_it_was_made_to(ending, autojump_clock):
    """SYN-26, I-D1: a later session of that runtime was offered nothing."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [thing], [heir] = await ra.allocate("comm"), await rb.allocate()
        assert (await offered(ra, "offer", thing, heir)).code == 200
        if ending == "closed":
            await rb.control("close")
        await rb.link.aclose()
        await ra.silence(SESSION_IDLE + 1)

        again = await world.peer(RB)
        assert (await offered(again, "take", thing, heir)).code == 403
        assert (await offered(ra, "withdraw", thing, heir)).code == 200
        owners = {view.runtime: view.addresses for view in await world.node.sessions()}
        assert owners == {RA: (thing,), RB: ()}


@pytest.mark.parametrize("ending", ["freed", "closed"])
async def test_the_offers_of_an_address_end_with_its_owner(ending, autojump_clock):
    """SYN-26: the numbers of its next life are its own."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [thing], [heir] = await ra.allocate("comm"), await rb.allocate()
        for operation in ("offer", "withdraw"):
            assert (await offered(ra, operation, thing, heir)).code == 200
        assert (await offered(ra, "offer", thing, heir)).code == 409
        if ending == "freed":
            await ra.ask("delete", ALLOC, ALLOCATION, resource=thing)
        else:
            await ra.control("close")
            ra = await world.peer(RA)
        claim = await ra.ask("subscribe", f"{RA}/sm", SM, source=RA, resources=[thing])
        assert claim.code == 200
        assert (await offered(ra, "offer", thing, heir)).code == 200
