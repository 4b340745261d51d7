"""Observers abroad, whose path is set at their own node (SYN-08, SYN-11, SYN-21, C-49)."""

import pytest
import trio

import actors
from specs.message import MessageType
from tests.support.runtime.abroad import A, B, open_two
from transports.link import Kind


def observation(side):
    """What became of the paths on changes at a node, and whose they are."""
    return [
        (key.partition("|")[2], new)
        for key, _, new in side.steps("node_subscription")
        if "/changes|" in key
    ]


async def test_the_path_is_set_at_the_own_node_which_subscribes_onward(autojump_clock):
    async with open_two() as world:
        room, guest = world.a.hyperty, world.b.hyperty
        async with room.report("comm", {"n": 0}, allow=(guest.url,)) as thing:
            async with guest.observe(thing.url) as copy:
                assert observation(world.b)[-1] == (f"hyperty-runtime://{B}/rb", "active")
                assert observation(world.a)[-1] == (f"domain://msg-node.{B}", "active")
                await thing.set("n", 1)
                await copy.wait_for(lambda value: value["n"] == 1)
                assert thing.observers == (guest.url,)
            await trio.sleep(5)
            assert observation(world.b)[-1][1] == "removed"
            assert thing.observers == ()


async def test_a_refused_one_leaves_no_path_at_its_node(autojump_clock):
    async with open_two() as world:
        room, guest = world.a.hyperty, world.b.hyperty
        async with room.report("comm", {}) as thing:
            with pytest.raises(actors.ObjectError, match="is not invited") as refused:
                async with guest.observe(thing.url):
                    pytest.fail("it was let in")
            assert refused.value.code == 403
            await trio.sleep(5)
            assert observation(world.b)[-1][1] == "removed"


async def test_an_expelled_one_hears_nothing_more_at_any_node(autojump_clock):
    async with open_two() as world:
        room, guest = world.a.hyperty, world.b.hyperty
        async with (
            room.report("comm", {"n": 0}, allow=(guest.url,)) as thing,
            guest.observe(thing.url) as copy,
        ):
            await thing.expel(guest.url)
            await trio.sleep(5)
            assert copy.is_gone
            assert observation(world.b)[-1][1] == "removed"
            assert (await guest.ask(thing.url, MessageType.READ, {})).code == 401
            await thing.set("n", 1)
            await trio.sleep(5)
            assert copy.value["n"] == 0


async def test_a_runtime_that_is_reported_nothing_of_it_is_cut_off_by_its_own_node(autojump_clock):
    async with open_two() as world:
        room, guest = world.a.hyperty, world.b.hyperty
        async with (
            room.report("comm", {"n": 0}, allow=(guest.url,)) as thing,
            guest.observe(thing.url) as copy,
        ):
            (wire,) = [
                one
                for one in world.network.open_wires(Kind.WEBSOCKET)
                if one.address == world.b.node.url
            ]
            wire.acceptor.pattern = lambda _number, frame: () if b"unsubscribe" in frame else (0,)
            await thing.expel(guest.url)
            await trio.sleep(1)
            assert observation(world.b)[-1] == (f"hyperty-runtime://{B}/rb", "held")
            await thing.set("n", 1)
            await trio.sleep(5)
            assert (copy.is_gone, copy.value["n"]) == (False, 0)


async def test_a_runtime_of_the_other_domain_cannot_observe_for_a_local_one(autojump_clock):
    async with open_two() as world:
        room, guest = world.a.hyperty, world.b.hyperty
        async with room.report("comm", {}, public=True) as thing:
            for source in (room.url, f"hyperty://{A}/nobody"):
                there = f"{thing.url}/subscription"
                answer = await guest.ask(there, MessageType.SUBSCRIBE, {"source": source})
                assert answer.code in {401, 403}
            assert thing.observers == ()
