"""The example policies do what they say, in a whole node."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from actors.policy.store import PolicyConfig
from tests.support.node.issuer import Issuer, opened
from tests.support.node.legacy_peer import plain_peer
from tests.support.node.node_peer import open_world
from tests.support.node.policing import logged_in, optional_login

FOLDER = Path(__file__).parents[4] / "examples" / "policies"
DOMAIN = "a.example"
RA, RB = f"hyperty-runtime://{DOMAIN}/ra", f"hyperty-runtime://{DOMAIN}/rb"
OURS, THEIRS = "https://idp.example", "https://idp.else"
ALICE, EVE = "user://idp.example/alice", "user://idp.else/eve"


def by(name: str, **more: object) -> dict:
    return {"domain": DOMAIN, "policies": PolicyConfig(files=(FOLDER / name,), **more)}


@pytest.fixture
def issuer():
    return Issuer(domain=DOMAIN)


async def test_nothing_comes_from_or_goes_to_the_blacklist(autojump_clock):
    async with open_world(allow_legacy=True, **by("blacklist.toml")) as world:
        elsewhere = await plain_peer(world, "hyperty-runtime://good.example/r")
        ra = await world.peer(RA)

        answer = await opened(await world.outsider("hyperty-runtime://spam.example/r"), None)
        assert answer.code == 403
        assert answer.body["description"] == "this node takes nothing from your domain"
        assert (await ra.ask("create", f"{RA}/ua", "hyperty://scam.example/x")).code == 403
        assert (await ra.ask("create", f"{RA}/ua", "hyperty://good.example/x")).code == 404
        answer = await elsewhere.ask(
            id=2, type="create", from_="hyperty://good.example/x", to=f"{RB}/ua", body={}
        )
        assert answer["body"]["code"] == 404
        assert world.node._policing.tasks.counts == {"blacklisted": 1}


# 2026-11-20 is a Friday.
HOURS = [
    ("2026-11-20T07:59:59", 403),
    ("2026-11-20T08:00:00", 200),
    ("2026-11-20T12:45:00", 403),
    ("2026-11-20T18:00:01", 403),
    ("2026-11-21T11:00:00", 200),
    ("2026-11-21T14:00:00", 403),
    ("2026-11-22T11:00:00", 403),
]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
@pytest.mark.parametrize(("at", "code"), HOURS)
async def test_objects_are_created_in_office_hours(at, code, zone, autojump_clock):
    place = UTC if zone == "UTC" else ZoneInfo(zone)
    now = datetime.fromisoformat(at).replace(tzinfo=place).timestamp()
    reported = by("office-hours.toml", zone=place)
    async with open_world(clock_offset=now - autojump_clock.current_time(), **reported) as world:
        ra = await world.peer(RA)
        answer = await ra.ask("create", f"{RA}/x", f"domain://msg-node.{DOMAIN}/address-allocation",
                              scheme="comm", value={"number": 1})  # fmt: skip
        assert answer.code == code
        assert await ra.allocate("hyperty")


@pytest.mark.parametrize(
    ("claims", "runtime", "why"),
    [
        ({"iss": OURS, "sub": ALICE}, RA, ""),
        ({"iss": THEIRS, "sub": EVE}, RA, "only users of idp.example"),
        (
            {"iss": "https://idp.b.example", "sub": EVE},
            "hyperty-runtime://b.example/r",
            "only users of",
        ),
        (None, RA, "log in first"),
    ],
)
async def test_only_our_users_open_sessions(claims, runtime, why, issuer, autojump_clock):
    async with open_world(**by("own-idp.toml"), **optional_login(issuer)) as world:
        peer = await world.outsider(runtime)
        token = None if claims is None else issuer.token(**claims)
        answer = await opened(peer, token)

        assert answer.code == (403 if why else 200)
        assert answer.body.get("description", "").startswith(why)
        assert await world.states() == ({} if why else {RA: "open"})


async def test_addresses_of_odd_schemes_are_not_given_out(issuer, autojump_clock):
    reported = {
        **by("own-idp.toml"),
        **optional_login(issuer),
        "object_schemes": frozenset({"comm", "odd"}),
    }
    async with open_world(**reported) as world:
        peer = await logged_in(world, issuer, RA, iss=OURS, sub=ALICE)
        ask = ("create", f"{RA}/x", f"domain://msg-node.{DOMAIN}/address-allocation")

        assert (await peer.ask(*ask, scheme="comm", value={"number": 1})).code == 200
        assert (await peer.ask(*ask, scheme="odd", value={"number": 1})).code == 403


async def listen(peer, *resources: str) -> int:
    sm = f"domain://msg-node.{DOMAIN}/sm"
    answer = await peer.ask("subscribe", f"{peer.runtime}/sm", sm, resources=list(resources))
    return answer.code


async def test_a_path_of_another_session_cannot_be_subscribed_to(issuer, autojump_clock):
    async with open_world(**by("subscriptions.toml"), **optional_login(issuer)) as world:
        ra = await world.peer(RA)
        rb = await logged_in(world, issuer, RB, iss=THEIRS, sub=EVE)
        (comm,) = await ra.allocate("comm")

        assert await listen(ra, comm, f"{RA}/x") == 200
        assert await listen(rb, f"{comm}/changes") == 403
        assert await listen(rb, f"{RB}/x", f"{comm}/changes") == 403
        assert await listen(rb, f"{RB}/x") == 200
        views = {view.runtime: view.paths for view in await world.node.sessions()}
        assert views[RB] == (f"{RB}/x",)


async def test_auditors_observe_and_local_users_see_who_is_present(issuer, autojump_clock):
    async with open_world(**by("subscriptions.toml"), **optional_login(issuer)) as world:
        ra = await world.peer(RA)
        (comm,), (hyperty,) = await ra.allocate("comm"), await ra.allocate("hyperty")
        auditor = await logged_in(world, issuer, RB, iss=THEIRS, sub=EVE, roles=["auditor"])

        assert await listen(auditor, f"{comm}/changes") == 200
        assert await listen(auditor, f"{hyperty}/registration") == 403
        user = await logged_in(world, issuer, f"hyperty-runtime://{DOMAIN}/rc", iss=OURS, sub=ALICE)
        assert await listen(user, f"{hyperty}/registration") == 200
        assert await listen(user, f"{comm}/changes") == 403
