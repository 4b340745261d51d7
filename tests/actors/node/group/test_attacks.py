"""What a peer of one node, or a stranger in the engine, cannot do to the nodes of a domain."""

import math

import attrs
import pytest
import trio
import trio.testing

from actors.node.group.names import EngineNames
from actors.node.group.records import EngineRecords
from fsm.machines.registration import State
from fsm.registry.records import Forget, Keep, Row
from fsm.registry.registration import Mirror
from fsm.session.runtime_names import NameForgotten, NameKept, Owner
from specs.limits.group import GROUP_ADDRESS
from tests.support.node.group_world import open_group
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by
from tests.support.node.issuer import opened as login_with
from tests.support.node.node_peer import DOMAIN, DR, RA, RB, SM
from transports.engine.memory import open_memory_store

LONG_RUNTIME = f"hyperty-runtime://{DOMAIN}/{'r' * GROUP_ADDRESS}"
LONG = "x" * 2 * GROUP_ADDRESS


async def test_a_name_too_long_for_the_engine_has_no_session_at_any_node(autojump_clock):
    async with open_group() as world:
        for member in world.nodes:
            peer = await member.outsider(LONG_RUNTIME)
            assert (await peer.control("open", runtimeURL=LONG_RUNTIME)).code == 413


async def test_a_login_by_a_name_that_is_too_long_ends_no_sessions(autojump_clock):
    issuer = Issuer()
    async with open_group(1, login=login_by(issuer, clock=lambda: 0.0)) as world:
        (one,) = world.nodes
        victim = await one.outsider(RA)
        await login_with(victim, issuer.token(sub=ALICE))
        other = await one.outsider(LONG_RUNTIME)
        assert (await login_with(other, issuer.token(sub=BOB))).code == 413
        assert (await victim.control("ping")).code == 200


async def test_a_long_address_has_one_owner_in_all_nodes(autojump_clock):
    address = f"comm://{DOMAIN}/{LONG}"
    async with open_group() as world:
        one, two = world.nodes
        owner, other = await one.peer(RA), await two.peer(RB)
        subscribed = await owner.ask("subscribe", f"{RA}/sm", SM, resources=[address])
        assert subscribed.code == 200

        await other.post("update", f"{RB}/sm", address, value=1)
        with trio.fail_after(30):
            assert (await owner.hear()).to == address


async def test_a_record_of_a_long_address_keeps_nobody_from_registering(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer, other = await one.peer(RA), await two.peer(RB)
        long = f"{RA}/{LONG}"
        for url in (long, f"{RA}/short"):
            value = {"url": url, "user": "user://x/a", "runtime": RA, "status": "live"}
            assert (await peer.ask("create", f"{RA}/registry", DR, value=value)).code == 200

        async def is_found() -> bool:
            return (await other.ask("read", f"{RB}/registry", DR, resource=long)).code == 200

        await world.until(is_found)


class News:
    """What a node hears of the records of others."""

    def __init__(self) -> None:
        self.heard: list[Mirror] = []

    async def take(self, mirrors, is_current) -> None:
        self.heard += mirrors


@pytest.mark.parametrize("url", [f"{RA}/short", f"{RA}/{LONG}"])
async def test_a_removed_record_is_named_to_other_nodes(autojump_clock, url):
    row = Row(url, RA, State.LIVE, 1.0, {}, 1)
    async with open_memory_store() as store, store.open() as engine, store.open() as other:
        mine, theirs, news = (
            EngineRecords(engine, lambda key: True), EngineRecords(other, lambda key: True), News()
        )  # fmt: skip
        async with trio.open_nursery() as nursery:
            nursery.start_soon(theirs.follow, news.take)
            for change in (Keep(row), Forget(url)):
                await mine.commit([change])
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert news.heard == [Mirror(url, row), Mirror(url, None)]
        assert theirs.load() == []


async def test_a_removal_that_another_node_was_before_is_mended_by_the_watch(autojump_clock):
    """Else the record that is there would be unknown to the node that wanted it to go."""
    row = Row(f"{RA}/short", RA, State.LIVE, 1.0, {}, 1)
    async with open_memory_store() as store, store.open() as engine, store.open() as other:
        mine, theirs, news = (
            EngineRecords(engine, lambda key: True), EngineRecords(other, lambda key: True), News()
        )  # fmt: skip
        await mine.commit([Keep(row)])
        newer = attrs.evolve(row, number=2)
        await theirs.commit([Keep(newer)])
        await mine.commit([Forget(row.url)])
        with trio.move_on_after(1):
            await mine.follow(news.take)
        assert news.heard == [Mirror(row.url, newer)]


NAME = NameKept(RA, Owner("i", "u"), math.inf)


@pytest.mark.parametrize("is_seen", [False, True])
async def test_a_name_that_was_given_back_can_be_kept_again(autojump_clock, is_seen):
    async with open_memory_store() as store, store.open() as engine:
        names = EngineNames(engine)
        async with engine.watch(names.prefix) as seen:
            for change in (NAME, NameForgotten(RA), NAME):
                await names.write([change])
                if is_seen:
                    with trio.move_on_after(1):
                        async for batch in seen:
                            list(names.news(batch))
        assert (await engine.get(f"{names.prefix}{RA}")) is not None
