"""Network resources: granted, shown, given back, and never left behind (CON-04, M-58)."""

import hmac
from base64 import b64encode
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from actors.kit.back_ends.ice import IcePlan, ListedServer
from actors.kit.http_client import ServerUrl
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.quality import ConfiguredServers, HttpQualityBroker
from fsm.registry.relay import RelayLimits
from specs.bodies.session import QualityRequest, TurnServer
from specs.limits.node import MAX_RESERVATIONS
from tests.actors.node.connectors.back_ends import RelaysFake
from tests.actors.node.connectors.quality_server import QualityServer
from tests.actors.node.connectors.rest_registry import hanging_up
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.node_peer import RA, RB, open_world

QOS = "domain://qos.a.ex"
TURN = {"turn": "turn:198.51.100.7:3478", "credential": "secret"}


@asynccontextmanager
async def open_quality(free=2, limits=None):
    broker = QualityServer(free)
    async with open_http_server(broker) as server:
        make = partial(HttpQualityBroker, ServerUrl.read(server.url))
        back_ends = BackEnds(quality=make)
        if limits is not None:
            back_ends = BackEnds(quality=make, limits=limits)
        broker.server = server
        async with open_world(back_ends=back_ends) as world:
            yield world, broker


def wanted(client="c1", media="video"):
    return {"cspId": "csp1", "mediaType": media, "clientName": client}


async def reserve(peer, client="c1", media="video"):
    return await peer.ask("create", f"{peer.runtime}/ua", QOS, value=wanted(client, media))


async def ask(peer, type_, client="c1"):
    return await peer.ask(type_, f"{peer.runtime}/ua", QOS, resource=client)


def hmac_of(secret, name):
    return b64encode(hmac.digest(secret.encode(), name.encode(), "sha1")).decode()


async def test_a_reservation_is_shown_and_released():
    async with open_quality() as (world, broker):
        ra = await world.peer(RA)
        granted = await reserve(ra)
        assert (granted.code, granted.from_) == (200, QOS)
        assert {name: granted.body["value"][name] for name in TURN} == TURN
        (held,) = broker.held.values()
        assert held["wanted"] == wanted()
        shown = await ask(ra, "read")
        assert shown.body["value"]["username"] == granted.body["value"]["username"]
        assert (await ask(ra, "delete")).code == 200
        await broker.server.until(lambda: not broker.held)
        assert (await ask(ra, "read")).code == 404
        assert (await ask(ra, "delete")).code == 200


async def test_an_inquiry_is_answered_by_the_broker_and_reserves_nothing():
    """CON-04: inquire, and 503 without resources."""
    async with open_quality(free=1) as (world, broker):
        ra, rb = await world.peer(RA), await world.peer(RB)
        found = await ra.ask("read", f"{RA}/ua", QOS)
        assert (found.code, found.body["value"]) == (200, {"servers": broker.servers})
        assert (broker.held, broker.free) == ({}, 1)
        assert (await reserve(rb)).code == 200
        refused = await ra.ask("read", f"{RA}/ua", QOS)
        assert (refused.code, refused.body["description"]) == (503, "no resources are left")


SHARED = "shared"
LISTED = IcePlan(
    (
        ListedServer(("stun:stun.a.ex",)),
        ListedServer(("turn:turn.a.ex:3478?transport=udp",), secret=SHARED),
        ListedServer(("turns:turn.b.ex",), username="al", credential="pw"),
    ),
    ttl=600,
)


async def test_listed_servers_are_named_with_a_credential_for_each_runtime_that_ends():
    """CON-04: what `use-auth-secret` of coturn takes, without another service."""
    back_ends = BackEnds(quality=partial(ConfiguredServers, LISTED, lambda: 1_000_000.7))
    async with open_world(back_ends=back_ends) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        answers = [await peer.ask("read", f"{peer.runtime}/ua", QOS) for peer in (ra, rb)]
        again = (await ra.ask("read", f"{RA}/registry", QOS)).body["value"]
        granted = await reserve(ra)
    found = [answer.body["value"] for answer in answers]
    assert again == found[0]
    stun, turn, kept = found[0]["servers"]
    assert found[0]["ttl"] == 600
    assert stun == {"urls": ["stun:stun.a.ex"]}
    assert kept == {"urls": ["turns:turn.b.ex"], "username": "al", "credential": "pw"}
    end, _, user = turn["username"].partition(":")
    assert end == "1000600"
    assert user
    assert RA not in turn["username"]
    assert turn["credential"] == hmac_of("shared", turn["username"])
    assert turn["username"] != found[1]["servers"][1]["username"]
    relay = granted.body["value"]
    assert relay["turn"] == "turn:turn.a.ex:3478?transport=udp"
    assert relay["credential"] == hmac_of("shared", relay["username"])
    assert "shared" not in str(found)


@pytest.mark.parametrize(
    "said", [{"relays": 2}, {"servers": [{"urls": []}]}, {"servers": [], "ttl": 0}]
)
async def test_servers_in_another_form_are_a_502(said):
    async with open_quality() as (world, broker):
        broker.mood = lambda call: Said(200, said) if call.segments == ("resources",) else None
        ra = await world.peer(RA)
        assert (await ra.ask("read", f"{RA}/ua", QOS)).code == 502


async def test_an_inquiry_that_the_broker_does_not_know_is_a_502():
    """CON-07: the back end is broken, or another one."""
    async with open_quality() as (world, broker):
        broker.mood = lambda call: Said(404, {}) if call.segments == ("resources",) else None
        ra = await world.peer(RA)
        assert (await ra.ask("read", f"{RA}/ua", QOS)).code == 502
        assert (await reserve(ra)).code == 200


async def test_a_session_holds_only_so_many():
    async with open_quality(free=100) as (world, _):
        ra = await world.peer(RA)
        codes = [(await reserve(ra, f"c{n}")).code for n in range(MAX_RESERVATIONS + 1)]
        assert codes == [200] * MAX_RESERVATIONS + [413]


async def test_a_release_that_fails_is_tried_again():
    async with open_quality() as (world, broker):
        ra = await world.peer(RA)
        await reserve(ra)
        broker.mood = hanging_up
        await ra.control("close")
        await broker.server.until(lambda: broker.server.calls[-1].method == "DELETE")
        assert len(broker.held) == 1
        broker.mood = None
        await broker.server.until(lambda: not broker.held)


async def test_a_reservation_granted_too_late_is_released():
    async with open_quality(limits=RelayLimits(2, 8, 0.2)) as (world, broker):
        ra = await world.peer(RA)
        broker.held_up = trio.Event()
        assert (await reserve(ra)).code == 504
        broker.held_up.set()
        await broker.server.until(lambda: not broker.held)


@pytest.mark.parametrize("said", [Said(200, {"turn": "x"}), Said(200, []), Said(500), Said(404)])
async def test_an_answer_that_opens_nothing_is_502_and_given_back(said):
    async with open_quality() as (world, broker):
        ra = await world.peer(RA)
        asked = []
        broker.mood = lambda call: said if call.method == "PUT" else asked.append(call.method)
        assert (await reserve(ra)).code == 502
        await broker.server.until(lambda: asked == ["DELETE"])


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ("create", {}),
        ("create", {"value": {"cspId": "x"}}),
        ("read", {"resource": ""}),
        ("update", {}),
    ],
)
async def test_an_invalid_reservation_is_refused(type_, body):
    async with open_quality() as (world, _):
        ra = await world.peer(RA)
        assert (await ra.ask(type_, f"{RA}/ua", QOS, **body)).code == 400


# ---- one contract for every broker


@asynccontextmanager
async def over_http():
    async with open_http_server(QualityServer(1)) as server:
        broker = HttpQualityBroker(ServerUrl.read(server.url))
        yield broker
        await broker.aclose()


@asynccontextmanager
async def in_memory():
    yield RelaysFake([TurnServer("turn:198.51.100.7:3478", "u", "c")])


@asynccontextmanager
async def listed():
    yield ConfiguredServers(LISTED)


@pytest.mark.parametrize("make", [over_http, in_memory, listed])
async def test_every_broker_keeps_the_same_contract(make):
    asked = QualityRequest("csp1", "video", "c1")
    async with make() as broker:
        granted = await broker.reserve("n1", asked)
        assert granted.turn.startswith("turn:")
        assert await broker.reserve("n1", asked) == granted
        if make is not listed:
            assert await broker.reserve("n2", asked) is None
        assert await broker.status("n1") is not None
        assert await broker.status("n2") is None
        await broker.release("n2")
        await broker.release("n1")
        await broker.release("n1")
        assert await broker.status("n1") is None
        assert await broker.reserve("n2", asked) is not None
