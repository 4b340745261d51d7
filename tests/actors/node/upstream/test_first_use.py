"""What upstream's peers call themselves: bound at first use, and nothing else is learnt (C-43)."""

import pytest

from tests.support.node.legacy_peer import OLD, plain_peer
from tests.support.node.node_peer import ALLOCATION, MN, RA
from tests.support.node.upstream import DOORS, met, reported


@DOORS
@pytest.mark.parametrize(
    "name",
    ["runtime://a.ex/registry/1", "runtime://a.ex/p2phandler/3", f"{OLD}/registry/allocation"],
)
async def test_a_component_of_its_own_naming_is_bound_at_first_use(door, name, autojump_clock):
    async with met(door) as (world, old, new):
        asked = {"scheme": "hyperty", "value": {"number": 1}}
        assert (await reported(old, "create", ALLOCATION, asked, from_=name))[0] == 200

        sent = await new.post("read", f"{RA}/ua", name.replace("runtime", "hyperty-runtime", 1))
        assert (await old.hear())["id"] == sent.id
        rows = [fact.key for fact in world.tracer.facts if fact.table == "alloc"]
        assert len(rows) == (1 if name.startswith(OLD) else 2)


@DOORS
async def test_a_bound_address_belongs_to_its_session_until_the_session_is_over(
    door, autojump_clock
):
    async with met(door) as (world, old, new):
        name, inside = "runtime://a.ex/registry/1", "hyperty-runtime://a.ex/registry/1"
        assert (await reported(old, "read", f"{MN}/x", {}, from_=name))[0] == 404
        other = await door(world, "runtime://a.ex/other")

        assert (await reported(other, "read", f"{MN}/x", {}, from_=name))[0] == 401
        assert (await new.ask("read", inside, f"{MN}/x")).code == 401
        close = {"cmd": "disconnect"} if door is plain_peer else {
            "id": 9, "type": "close", "from_": old.session_url, "to": "mn:/session",
        }  # fmt: skip
        await old.say(**close)
        await other.silence()
        assert (await reported(other, "read", f"{MN}/x", {}, from_=name))[0] == 404


@DOORS
async def test_a_connecting_runtime_takes_back_addresses_below_its_own(door, autojump_clock):
    async with met(door) as (world, old, _):
        name = "runtime://a.ex/rz/registry"
        assert (await reported(old, "read", f"{MN}/x", {}, from_=name))[0] == 404
        rz = await world.peer("hyperty-runtime://a.ex/rz")

        assert (await reported(old, "read", f"{MN}/x", {}, from_=name))[0] == 401
        assert (await rz.ask("read", f"{rz.runtime}/registry", f"{MN}/x")).code == 404


@DOORS
@pytest.mark.parametrize(
    "name",
    ["hyperty://a.ex/nobody", "comm://a.ex/nobody", "runtime://a.ex/nobody", "runtime://a.ex/ra/x",
     "domain://msg-node.a.ex/sm", "runtime://b.ex/registry/1", "user://a.ex/x"],
)  # fmt: skip
async def test_nothing_else_is_learnt(door, name, autojump_clock):
    async with met(door) as (world, old, _):
        assert (await reported(old, "read", f"{MN}/x", {}, from_=name))[0] == 401
        assert not [fact for fact in world.tracer.facts if fact.table == "alloc"]
