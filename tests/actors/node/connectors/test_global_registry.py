"""Signed records of users: read, published, and what a server may say to that (CON-03)."""

from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager
from functools import partial

import pytest

from actors.kit.http_client import ServerUrl
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import HttpGlobalRecords
from specs.addresses.address import GLOBAL_REGISTRY
from specs.limits.protocol import MAX_JSON_TEXT
from tests.actors.node.connectors.quality_server import GlobalServer
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.node_peer import RA, open_world

GUID = "user-guid://g1"


def token(size=10):
    parts = [b'{"alg":"ES256"}', b'{"data":"' + b"x" * size + b'"}', b"signature"]
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@asynccontextmanager
async def open_global():
    fake = GlobalServer()
    async with open_http_server(fake) as server:
        make = partial(HttpGlobalRecords, ServerUrl.read(server.url))
        async with open_world(back_ends=BackEnds(global_registry=make)) as world:
            yield await world.peer(RA), fake


async def read(peer, guid=GUID):
    return await peer.ask("read", f"{RA}/graph-connector", GLOBAL_REGISTRY, resource=guid)


async def publish(peer, value, guid=GUID):
    from_ = f"{RA}/graph-connector"
    return await peer.ask("create", from_, GLOBAL_REGISTRY, resource=guid, value=value)


async def test_a_published_record_is_read():
    async with open_global() as (ra, fake):
        assert (await read(ra)).code == 404
        assert (await publish(ra, token())).code == 200
        assert fake.records == {GUID: token()}
        answer = await read(ra)
        assert (answer.code, answer.body["value"]) == (200, token())
        assert answer.from_ == GLOBAL_REGISTRY


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (Said(200, {}), 502),
        (Said(200, []), 502),
        (Said(200, raw="ü".encode()), 502),
        (Said(200, "x" * (MAX_JSON_TEXT + 1)), 502),
        (Said(500), 502),
        (Said(503), 503),
        (Said(408), 408),
    ],
)
async def test_an_answer_of_a_server_is_passed_on_or_the_server_is_broken(said, code):
    async with open_global() as (ra, fake):
        fake.records[GUID], fake.form = token(), lambda _: said
        assert (await read(ra)).code == code


@pytest.mark.parametrize(
    ("value", "guid"),
    [("eyJ.jwt", GUID), (f"{token()}.more", GUID), (token(), "user://idp.ex/bob"), ("", GUID)],
)
async def test_an_invalid_record_is_not_sent(value, guid):
    async with open_global() as (ra, fake):
        assert (await publish(ra, value, guid)).code == 400
        assert fake.records == {}
