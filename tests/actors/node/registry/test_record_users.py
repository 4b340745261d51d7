"""A record names the user of its session's login, and nobody else (S6)."""

import pytest

from actors.node.login.provider import Admission
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by, opened
from tests.support.node.node_peer import RA, open_world
from tests.support.trace.records import create, read, record, update

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


@pytest.mark.parametrize("change", [{"user": BOB}, {"guid": GUID}])
@pytest.mark.parametrize("is_attribute", [True, False])
async def test_a_change_makes_it_nobody_elses(change, is_attribute, autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        peer = await logged_in(world, issuer)
        (url,) = await peer.allocate()
        await create(peer, named(url, user=ALICE))
        ((name, value),) = change.items()
        body = {"attribute": name, "value": value} if is_attribute else {"value": change}
        assert (await update(peer, url, **body)).code == 403
        assert (await read(peer, USER + BOB)).code == 404


async def test_where_others_log_in_a_session_without_a_login_names_no_user(autojump_clock):
    issuer = Issuer()
    login = login_by(issuer, admission=Admission.ANYBODY)
    async with open_world(login=login) as world:
        peer = await world.peer()
        (url,) = await peer.allocate()
        assert (await create(peer, named(url, user=BOB))).code == 403
        assert (await create(peer, named(url, user=None))).code == 200


async def test_without_logins_a_record_names_whom_it_likes(autojump_clock):
    async with open_world() as world:
        peer = await world.peer()
        (url,) = await peer.allocate()
        assert (await create(peer, named(url, user=BOB, guid=GUID))).code == 200
