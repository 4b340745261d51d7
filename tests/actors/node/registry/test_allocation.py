"""Addresses of the node's domain (M-18..M-20, MN-10..MN-12, I-A1..I-A7)."""

import pytest

from tests.support.node.node_peer import ALLOCATION, RA, RB, SM, open_world

ALLOC = f"{RA}/address-allocation"


async def test_as_many_as_asked_for_and_all_different(autojump_clock):
    """MSG-10."""
    async with open_world() as world:
        ra = await world.peer()

        addresses = await ra.allocate("connection", 5)

        assert len(set(addresses)) == 5
        assert all(one.startswith("connection://a.ex/") for one in addresses)


@pytest.mark.parametrize(("type_", "body"), [("read", {}), ("delete", {}), ("update", {})])
async def test_allocation_knows_create_and_delete_only(type_, body, autojump_clock):
    """MSG-10, MSG-13: what it does not know, or cannot read, is 400."""
    async with open_world() as world:
        ra = await world.peer()

        assert (await ra.ask(type_, ALLOC, ALLOCATION, **body)).code == 400


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
