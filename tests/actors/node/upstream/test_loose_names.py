"""Runtimes of upstream's forms with slashes in their names, and shared components."""

from fsm.registry.node_rights import Names
from tests.support.node.node_peer import ALLOCATION
from tests.support.node.upstream import DOORS, met, reported

STUB = "hyperty-runtime://a.ex/protostub/1"


def loose(door):
    return met(door, names=Names.LOOSE)


@DOORS
async def test_two_stubs_may_allocate_from_one_component(door, autojump_clock):
    """Both of upstream's peers call themselves so in its suite of messages."""
    async with loose(door) as (world, old, _):
        other, asked = await door(world, "runtime://a.ex/2"), {"value": {"number": 1}}
        asked["scheme"] = "hyperty"
        component = f"{STUB}/registry/allocation"
        for peer in (old, other, old):
            assert (await reported(peer, "create", ALLOCATION, asked, from_=component))[0] == 200
