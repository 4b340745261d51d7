"""The names of runtimes that belong to users, at several nodes of a domain (SEC-45)."""

import json

import pytest
import trio

from tests.support.node.group_world import open_group
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by
from tests.support.node.issuer import opened as login_with
from tests.support.node.node_peer import RA
from transports.errors import LinkError


@pytest.fixture
def issuer():
    return Issuer()


def named(issuer, count=2):
    """A group whose runtimes log in."""
    return open_group(count, login=login_by(issuer, clock=lambda: 0.0))


def user_of(world) -> str | None:
    """The user that the engine has for the name."""
    row = world.store.row(f"name/{RA}")
    return None if row is None or row.value is None else json.loads(row.value)["user"]


async def test_a_link_is_answered_when_the_engine_has_the_name(autojump_clock, issuer):
    """Also if the first attempts to write it are lost."""
    async with named(issuer) as world:
        one, _ = world.nodes
        peer, codes = await one.outsider(RA), []

        async def opened() -> None:
            codes.append((await login_with(peer, issuer.token(sub=ALICE))).code)
            assert user_of(world) == ALICE

        world.store.slow(0.2, one.engine)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened)
            await trio.sleep(0.3)  # the token is written
            world.store.swallow(2, one.engine)
        assert codes == [200]


async def test_two_users_that_want_one_name_at_once_do_not_both_get_it(autojump_clock, issuer):
    async with named(issuer) as world:
        codes = {}

        async def opened(member, user) -> None:
            try:
                answer = await login_with(await member.outsider(RA), issuer.token(sub=user))
                codes[user] = answer.code
            except LinkError:
                codes[user] = None

        async with trio.open_nursery() as nursery:
            for member, user in zip(world.nodes, (ALICE, BOB), strict=True):
                nursery.start_soon(opened, member, user)
        assert [user for user, code in codes.items() if code == 200] == [user_of(world)]
        assert sorted([len(await member.states()) for member in world.nodes]) == [0, 1]


@pytest.mark.parametrize("pause", [0.0, 1.0])
async def test_a_name_that_was_given_back_can_be_kept_again(autojump_clock, issuer, pause):
    async with named(issuer) as world:
        for member in (*world.nodes, *world.nodes):
            peer = await member.outsider(RA)
            assert (await login_with(peer, issuer.token(sub=ALICE))).code == 200
            assert user_of(world) == ALICE
            assert (await peer.control("release")).code == 202
            await peer.control("close")
            await trio.sleep(pause)
        await trio.sleep(1)
        assert user_of(world) is None


async def test_no_name_is_given_back_while_the_engine_is_away(autojump_clock, issuer):
    async with named(issuer) as world:
        one, _ = world.nodes
        peer = await one.outsider(RA)
        await login_with(peer, issuer.token(sub=ALICE))
        world.store.stop(one.engine)
        assert (await peer.control("release")).code == 503
        world.store.start(one.engine)
        assert (await peer.control("release")).code == 202
