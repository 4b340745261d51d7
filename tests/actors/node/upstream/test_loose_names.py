"""Runtimes of upstream's forms with slashes in their names, and shared components."""

import pytest

from fsm.registry.node_rights import Names
from tests.support.node.legacy_peer import OLD, plain_peer, session_outsider
from tests.support.node.node_peer import ALLOCATION, MN, RA, SM, open_world
from tests.support.node.upstream import DOORS, met, reported

NAME = "runtime://a.ex/Subscriber/0"
INSIDE = "hyperty-runtime://a.ex/Subscriber/0"
STUB = "hyperty-runtime://a.ex/protostub/1"


def loose(door):
    return met(door, names=Names.LOOSE)


@DOORS
async def test_a_runtime_with_a_slash_in_its_name_is_served_and_reached(door, autojump_clock):
    async with loose(door) as (world, _, new):
        long = await door(world, NAME)
        (url,) = await new.allocate("comm")
        paths = {"subscribe": [f"{url}/changes", f"{url}/children/name1"], "source": NAME}
        assert (await reported(long, "subscribe", SM, paths, from_=f"{NAME}/sm"))[0] == 200

        await new.post("update", url, f"{url}/changes", value=1)
        assert (await long.hear())["body"] == {"value": 1}
        await new.post("read", f"{RA}/ua", f"{INSIDE}/sm")
        assert (await long.hear())["to"] == f"{NAME}/sm"
        assert await long.allocate()
        assert (await world.states())[INSIDE] == "open"


@DOORS
async def test_neighbours_in_one_name_are_apart(door, autojump_clock):
    async with loose(door) as (world, _, new):
        zero, one = await door(world, NAME), await door(world, "runtime://a.ex/Subscriber/1")
        assert await one.allocate()  # its session is open
        code, _ = await reported(zero, "read", f"{MN}/x", {}, from_="runtime://a.ex/Subscriber/1/x")
        assert code == 401
        await new.post("read", f"{RA}/ua", "hyperty-runtime://a.ex/Subscriber/1/x")
        assert (await one.hear())["to"].endswith("Subscriber/1/x")
        assert await zero.silence()


async def test_a_long_name_resumes_and_closes_with_its_token(autojump_clock):
    async with open_world(allow_legacy=True, names=Names.LOOSE) as world:
        old = await (await session_outsider(world, NAME)).open()
        await old.link.aclose()
        again = await session_outsider(world, NAME)
        assert (await again.session("re-open", f"{NAME}/{'0' * 64}"))["body"]["code"] == 401
        assert (await again.session("re-open", old.session_url))["body"]["code"] == 200
        await again.say(id=9, type="close", from_=old.session_url, to="mn:/session")
        await new_states(world, {})


async def new_states(world, wanted):
    peer = await world.peer(RA)
    assert await peer.silence()
    assert await world.states() == {RA: "open", **wanted}


@DOORS
async def test_a_name_below_a_runtime_of_our_own_form_is_refused(door, autojump_clock):
    async with open_world(allow_legacy=True, names=Names.LOOSE) as world:
        await world.peer("hyperty-runtime://a.ex/Subscriber")
        if door is plain_peer:
            assert (await (await plain_peer(world, NAME)).hear())["body"]["code"] == 409
        else:
            peer = await session_outsider(world, NAME)
            assert (await peer.session("open"))["body"]["code"] == 409


@DOORS
async def test_a_shorter_name_of_our_own_form_that_comes_later_takes_what_is_below_it(
    door, autojump_clock
):
    async with loose(door) as (world, _, new):
        long = await door(world, NAME)
        short = await world.peer("hyperty-runtime://a.ex/Subscriber")

        assert (await reported(long, "read", f"{MN}/x", {}, from_=f"{NAME}/x"))[0] == 401
        await new.post("read", f"{RA}/ua", f"{INSIDE}/x")
        assert (await short.hear()).to == f"{INSIDE}/x"


@DOORS
async def test_of_two_names_of_upstreams_the_longer_has_what_is_below_it(door, autojump_clock):
    async with loose(door) as (world, _, new):
        short, long = await door(world, "runtime://a.ex/Subscriber"), await door(world, NAME)
        assert await short.allocate()
        assert await long.allocate()
        assert (await reported(long, "read", f"{MN}/x", {}, from_=f"{NAME}/x"))[0] == 404
        assert (await reported(short, "read", f"{MN}/x", {}, from_=f"{NAME}/x"))[0] == 401
        for name, peer in ((f"{INSIDE}/x", long), ("hyperty-runtime://a.ex/Subscriber/1", short)):
            sent = await new.post("read", f"{RA}/ua", name)
            assert (await peer.hear())["id"] == sent.id


@DOORS
async def test_two_stubs_may_allocate_from_one_component(door, autojump_clock):
    """Both of upstream's peers call themselves so in its suite of messages."""
    async with loose(door) as (world, old, _):
        other, asked = await door(world, "runtime://a.ex/2"), {"value": {"number": 1}}
        asked["scheme"] = "hyperty"
        component = f"{STUB}/registry/allocation"
        for peer in (old, other, old):
            assert (await reported(peer, "create", ALLOCATION, asked, from_=component))[0] == 200


@DOORS
@pytest.mark.parametrize("name", [f"{RA}/x", f"{OLD}/x", STUB])
async def test_nothing_of_a_runtime_with_a_session_is_shared(door, name, autojump_clock):
    async with loose(door) as (world, old, new):
        await new.ask("read", f"{RA}/x", f"{MN}/x")
        await reported(old, "read", f"{MN}/x", {}, from_=f"{OLD}/x")
        other = await door(world, "runtime://a.ex/2")
        code, _ = await reported(other, "read", f"{MN}/x", {}, from_=name)
        assert code == (404 if name == STUB else 401)


async def test_our_own_forms_keep_short_names_and_own_components(autojump_clock):
    async with open_world(allow_legacy=True, names=Names.LOOSE) as world:
        old = await plain_peer(world)
        await reported(old, "read", f"{MN}/x", {}, from_=STUB)
        long = await world.outsider(INSIDE)
        assert (await long.control("open", runtimeURL=INSIDE)).code == 400
        ra = await world.peer(RA)
        assert (await ra.ask("read", STUB, f"{MN}/x")).code == 401


async def test_without_the_option_a_name_has_no_slash(autojump_clock):
    async with open_world(allow_legacy=True) as world:
        assert (await (await plain_peer(world, NAME)).hear())["body"]["code"] == 400
