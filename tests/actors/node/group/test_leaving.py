"""A node that goes down in order: nothing that it has accepted is lost."""

from contextlib import suppress

import pytest
import trio
import trio.testing

from specs.limits.group import GROUP_HANDOVER, GROUP_LINGER
from specs.limits.protocol import DRAIN_TIMEOUT
from tests.support.node.group_world import open_group, resumed
from tests.support.node.node_peer import RA, RB
from transports.errors import LinkError


async def left(peer) -> None:
    """Wait until the link of a runtime is closed by its node."""
    with trio.fail_after(30), pytest.raises(LinkError):
        await peer.read_on()


async def test_what_comes_for_a_runtime_while_it_moves_follows_it(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (address,) = await bob.allocate()
        request = await alice.post("read", f"{RA}/sm", address)
        with trio.fail_after(10):
            heard = await bob.hear()
        one.is_over.set()
        await left(alice)

        await bob.post_answer(heard, 200, value=7)
        other = await bob.post("read", address, f"{RA}/sm")
        await trio.sleep(GROUP_HANDOVER / 2)
        again = await resumed(two, RA, alice.token)
        with trio.fail_after(10):
            answer, asked = await again.hear(), await again.hear()
        assert (answer.id, answer.body["value"]) == (request.id, 7)
        assert asked.id == other.id


async def test_a_request_that_was_under_way_when_its_node_said_goodbye_is_answered(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (address,) = await bob.allocate()
        one.is_over.set()
        await left(alice)
        request = await alice.post("read", f"{RA}/sm", address)
        await alice.link.aclose()
        with trio.fail_after(10):
            await bob.post_answer(await bob.hear(), 200, value=7)
        again = await resumed(two, RA, alice.token)
        with trio.fail_after(10):
            answer = await again.hear()
        assert (answer.id, answer.body["value"]) == (request.id, 7)


async def test_what_a_runtime_sent_before_it_moved_is_heard_after_its_node_knows_where_it_is(
    autojump_clock,
):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (address,) = await bob.allocate()
        one.is_over.set()
        await left(alice)
        came = []

        async def come_back():
            came.append(await resumed(two, RA, alice.token))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(come_back)
            for _ in range(100):  # the old node hears of it, and its patience is not over yet
                await trio.lowlevel.checkpoint()
            request = await alice.post("read", f"{RA}/sm", address)
            await alice.link.aclose()
            with trio.fail_after(10):
                await bob.post_answer(await bob.hear(), 200, value=7)
        with trio.fail_after(10):
            answer = await came[0].hear()
        assert (answer.id, answer.body["value"]) == (request.id, 7)


async def given(world, one, peer, from_: str, to: str) -> int:
    """Have a node give a durable message to the engine, which takes a time; return its id."""
    world.store.slow(DRAIN_TIMEOUT / 3, one.engine)
    asked = await peer.post("create", from_, to, value=7, durable=True)
    await trio.sleep(0.1)
    world.store.slow(0.0, one.engine)
    return asked.id


async def test_a_durable_message_that_is_given_to_the_engine_is_waited_for(autojump_clock):
    async with open_group(1) as world:
        (one,) = world.nodes
        alice, bob = await one.peer(RA), await one.peer(RB)
        (from_,), (to,) = await alice.allocate(), await bob.allocate()
        await given(world, one, alice, from_, to)
        one.is_over.set()
        await one.is_closed.wait()
        assert len(world.store.entries()) == 1


async def test_the_sender_of_a_durable_message_hears_at_its_other_node_that_it_is_kept(
    autojump_clock,
):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (from_,), (to,) = await alice.allocate(), await bob.allocate()
        await trio.sleep(1)
        asked = await given(world, one, alice, from_, to)
        one.is_over.set()
        await left(alice)
        again = await resumed(two, RA, alice.token)
        with trio.fail_after(10):
            answer = await again.hear()
        assert (answer.id, answer.code) == (asked, 202)


async def test_a_drain_waits_for_an_engine_only_as_long_as_it_may(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (from_,), (to,) = await alice.allocate(), await bob.allocate()
        await trio.sleep(1)
        world.store.slow(DRAIN_TIMEOUT, one.engine)
        await alice.post("create", from_, to, value=7, durable=True)
        begun = trio.current_time()
        one.is_over.set()
        await one.is_closed.wait()
        assert trio.current_time() - begun <= DRAIN_TIMEOUT / 2


async def test_events_to_a_runtime_that_moves_have_no_gap(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        sent, came = [], []

        async def send():
            for number in range(100):
                sent.append((await bob.post("update", f"{RB}/sm", f"{RA}/sm", n=number)).id)
                await trio.sleep(0.01)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while len(came) < 10:
                came.append((await alice.hear()).id)
            one.is_over.set()
            with suppress(LinkError):
                while True:
                    came.append((await alice.hear()).id)
            await trio.sleep(GROUP_HANDOVER / 3)
            alice = await resumed(two, RA, alice.token)
            with trio.fail_after(10):
                while len(came) < 100:
                    came.append((await alice.hear()).id)
        assert came == sent


async def test_a_node_does_not_wait_for_runtimes_that_do_not_come_back(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        begun = trio.current_time()
        one.is_over.set()
        await left(alice)
        request = await bob.post("read", f"{RB}/sm", f"{RA}/sm")
        with trio.fail_after(10):
            answer = await bob.hear()
        assert (answer.id, answer.code) == (request.id, 404)
        assert trio.current_time() - begun < GROUP_HANDOVER + 2 * GROUP_LINGER
        assert (await resumed(two, RA, alice.token)).token


async def test_the_last_node_does_not_wait_at_all(autojump_clock):
    async with open_group(1) as world:
        (one,) = world.nodes
        alice = await one.peer(RA)
        begun = trio.current_time()

        async def gone():
            return not world.store.rows("node/")

        one.is_over.set()
        await left(alice)
        await world.until(gone, 10)
        assert trio.current_time() - begun < GROUP_HANDOVER / 2
