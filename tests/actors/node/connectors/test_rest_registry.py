"""A registry behind REST that is slow, dies, lies or changes by itself (CON-02, CON-07)."""

from contextlib import asynccontextmanager

import pytest
import trio

from actors.kit.http_client import ServerUrl
from actors.node.connectors.back_ends import BackEnds
from specs.limits.node import REGISTRY_POLL
from tests.actors.node.connectors.rest_registry import RestRegistryFake
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.node_peer import RA, RB, SM, open_world
from tests.support.trace.records import BOB, read, registered


@asynccontextmanager
async def open_rest(limits=None):
    fake = RestRegistryFake()
    async with open_http_server(fake) as server:
        url = ServerUrl.read(server.url)
        back_ends = BackEnds(registry=url) if limits is None else BackEnds(url, limits=limits)
        async with open_world(back_ends=back_ends) as world:
            fake.server = server
            yield world, fake


@pytest.mark.parametrize(("status", "code"), [(400, 400), (408, 408), (503, 503), (418, 502)])
async def test_a_status_that_the_protocol_knows_is_passed_on(status, code):
    async with open_rest() as (world, fake):
        ra = await world.peer(RA)
        fake.mood = lambda _: Said(status, {"message": "said so"})
        assert (await read(ra, BOB)).code == code


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
