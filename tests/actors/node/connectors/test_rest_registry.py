"""A registry behind REST that is slow, dies, lies or changes by itself (CON-02, CON-07)."""

from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from actors.kit.http_client import ServerUrl
from actors.node.connectors.back_ends import BackEnds
from fsm.registry.relay import RelayLimits
from specs.limits.node import REGISTRY_POLL
from tests.actors.node.connectors.rest_registry import (
    RestRegistryFake,
    failing,
    hanging_up,
    talking_garbage,
)
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.node_peer import RA, RB, SM, open_world
from tests.support.trace.records import BOB, create, read, record, registered, update

QUICK = RelayLimits(parallel=2, waiting=8, patience=0.2)


@asynccontextmanager
async def open_rest(limits=None):
    fake = RestRegistryFake()
    async with open_http_server(fake) as server:
        url = ServerUrl.read(server.url)
        back_ends = BackEnds(registry=url) if limits is None else BackEnds(url, limits=limits)
        async with open_world(back_ends=back_ends) as world:
            fake.server = server
            yield world, fake


def words(fake):
    """What the server was asked to change, keep-alives of connections aside."""
    return [(call.method, call.segments) for call in fake.server.calls if call.method != "GET"]


def was_tried(fake, url):
    """Whether the last change the server was asked for is one of this record's status."""
    asked = [call for call in fake.server.calls if call.method != "GET"]
    return asked[-1].segments[-1] == url and asked[-1].body == {"status": "disconnected"}


def polls(fake):
    """How often the server was asked what has changed: every `REGISTRY_POLL` seconds."""
    return sum(call.segments[-1] == "updated" for call in fake.server.calls)


@pytest.mark.parametrize(
    "mood", [hanging_up, talking_garbage, failing], ids=lambda one: one.__name__
)
async def test_a_server_that_is_broken_gets_502_and_is_used_again_when_it_is_not(mood):
    async with open_rest() as (world, fake):
        rb = await world.peer(RB)
        url = await registered(rb)
        fake.mood = mood
        for answer in [await read(rb, url), await read(rb, BOB), await update(rb, url)]:
            assert answer.code == 502
            assert answer.body["description"]
        fake.mood = None
        assert (await read(rb, url)).code == 200


async def test_a_server_that_is_not_there_gets_502():
    async with open_http_server(RestRegistryFake()) as server:
        url = ServerUrl.read(server.url)
    async with open_world(back_ends=BackEnds(registry=url)) as world:
        ra = await world.peer(RA)
        assert (await read(ra, BOB)).code == 502


async def test_a_server_that_is_slow_gets_504():
    async with open_rest(QUICK) as (world, fake):
        rb = await world.peer(RB)
        url = await registered(rb)
        fake.held_up = trio.Event()
        assert (await read(rb, url)).code == 504
        fake.held_up.set()
        fake.held_up = None
        assert (await read(rb, url)).code == 200


@pytest.mark.parametrize(("status", "code"), [(400, 400), (408, 408), (503, 503), (418, 502)])
async def test_a_status_that_the_protocol_knows_is_passed_on(status, code):
    async with open_rest() as (world, fake):
        ra = await world.peer(RA)
        fake.mood = lambda _: Said(status, {"message": "said so"})
        assert (await read(ra, BOB)).code == code


async def test_a_request_for_an_address_of_another_owner_is_not_sent():
    async with open_rest() as (world, fake):
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)
        before = words(fake)
        assert (await create(ra, record(url, RA))).code == 403
        assert (await update(ra, url)).code == 403
        assert words(fake) == before


async def test_a_data_object_and_a_hyperty_go_where_upstream_keeps_them():
    """PFY-13."""
    async with open_rest() as (world, fake):
        rb = await world.peer(RB)
        hyperty = await registered(rb)
        thing = await registered(rb, "comm", name="room")
        await update(rb, hyperty)
        await update(rb, thing, value={"status": "disconnected"})
        assert words(fake) == [
            ("PUT", ("hyperty", "user", BOB, hyperty)),
            ("PUT", ("hyperty", "dataobject", thing)),
            ("PUT", ("hyperty", "url", hyperty)),
            ("PUT", ("dataobject", "url", thing)),
        ]
        assert [call.body for call in fake.server.calls if call.segments[-1] == hyperty][-1] == {}


async def test_a_change_by_the_server_itself_is_reported_once(hasty_clock):
    async with open_rest() as (world, fake):
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)
        await ra.ask("subscribe", f"{RA}/registry", SM, resources=[f"{url}/registration"])
        fake.expire(url)
        with trio.fail_after(2 * REGISTRY_POLL):
            reported = await ra.hear()
        assert reported.body == {"attribute": "status", "value": "disconnected"}
        fake.updated[url] = fake.hyperties[url]
        await fake.server.until(lambda: not fake.updated)
        assert await ra.silence(0.1)


async def test_records_of_a_session_that_ends_are_disconnected_once_the_server_is_back():
    async with open_rest() as (world, fake):
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)
        fake.mood = hanging_up
        await rb.control("close")
        await fake.server.until(partial(was_tried, fake, url))
        assert fake.hyperties[url]["status"] == "live"
        fake.mood = None
        await fake.server.until(lambda: fake.hyperties[url]["status"] == "disconnected")
        assert (await read(ra, url)).code == 408


async def test_a_record_that_comes_back_in_time_is_not_disconnected_behind_its_back():
    async with open_rest() as (world, fake):
        rb = await world.peer(RB)
        url = await registered(rb)
        fake.mood = hanging_up
        await rb.control("close")
        await fake.server.until(partial(was_tried, fake, url))
        fake.mood = None
        again = await world.peer(RB)
        assert (await update(again, url)).code == 200
        asked = polls(fake)
        await fake.server.until(lambda: polls(fake) == asked + 2)
        assert (await read(again, url)).code == 200


async def test_a_node_that_stops_disconnects_what_was_registered_through_it():
    fake = RestRegistryFake()
    async with open_http_server(fake) as server:
        async with open_world(back_ends=BackEnds(ServerUrl.read(server.url))) as world:
            url = await registered(await world.peer(RB))
        assert fake.hyperties[url]["status"] == "disconnected"
