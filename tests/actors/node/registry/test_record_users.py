"""A record names the user of its session's login, and nobody else (S6)."""

import pytest

from tests.support.node.issuer import ALICE, BOB, Issuer, login_by, opened
from tests.support.node.node_peer import RA, open_world
from tests.support.trace.records import create, record

USER, GUID = "/hyperty/user/", "user-guid://g1"


async def logged_in(world, issuer, runtime=RA, user=ALICE):
    peer = await world.outsider(runtime)
    assert (await opened(peer, issuer.token(sub=user))).code == 200
    return peer


def named(url, runtime=RA, **more):
    return {name: one for name, one in record(url, runtime, **more).items() if one is not None}


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"user": ALICE}, 200),
        ({"user": None}, 200),
        ({"user": BOB}, 403),
        ({"user": f"{ALICE}/x"}, 403),
        ({"user": ALICE, "guid": GUID}, 403),
    ],
)
async def test_a_record_names_the_user_of_the_login(more, code, autojump_clock):
    """SEC-06."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        peer = await logged_in(world, issuer)
        (url,) = await peer.allocate()
        assert (await create(peer, named(url, **more))).code == code
