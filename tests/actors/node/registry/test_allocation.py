"""Addresses of the node's domain (M-18..M-20, MN-10..MN-12, I-A1..I-A7)."""

import pytest

from specs.limits.protocol import MAX_ALLOCATION
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


async def test_an_address_goes_to_no_other_runtime(autojump_clock):
    """SYN-26 left: a peer that still offers or takes an address is told what there is."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [thing], [heir] = await ra.allocate("comm"), await rb.allocate()
        for peer, operation in ((ra, "offer"), (rb, "take")):
            params = {"resource": thing, "operation": operation, "number": 1, "delegate": heir}
            sender = f"{peer.runtime}/address-allocation"
            answer = await peer.ask("update", sender, ALLOCATION, **params)
            why = "address allocation knows create and delete, not update"
            assert (answer.code, answer.body["description"]) == (400, why)
        owners = {view.runtime: view.addresses for view in await world.node.sessions()}
        assert owners == {RA: (thing,), RB: (heir,)}
