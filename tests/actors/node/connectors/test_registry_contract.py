"""One contract for every back end of the domain registry: the same answers to the same requests.

What the REST form cannot say the same is listed in `OTHERWISE`, with the reason.
"""

from contextlib import asynccontextmanager

import pytest

from actors.kit.http_client import ServerUrl
from actors.node.connectors.back_ends import BackEnds
from tests.actors.node.connectors.rest_registry import RestRegistryFake
from tests.support.node.http_server import open_http_server
from tests.support.node.node_peer import DR, RA, RB, open_world
from tests.support.trace.records import BOB, GUID, create, read, record, registered, update

KINDS = ["memory", "sqlite", "http"]

OTHERWISE = {
    "keys nobody knows": "upstream's server keeps the fields it knows and no others",
    "a hyperty without a user": "the REST path of a hyperty begins with its user: 400",
    "data objects of a user": "the REST form lists hyperties of users only",
}


@asynccontextmanager
async def open_registry(kind, tmp_path):
    if kind == "http":
        async with open_http_server(RestRegistryFake()) as server:
            back_ends = BackEnds(registry=ServerUrl.read(server.url))
            async with open_world(back_ends=back_ends) as world:
                yield world
    else:
        file = tmp_path / "registry.sqlite" if kind == "sqlite" else None
        async with open_world(registry=file) as world:
            yield world


@pytest.fixture(params=KINDS)
async def world(request, tmp_path):
    async with open_registry(request.param, tmp_path) as world:
        world.kind = request.param
        yield world


def urls(answer):
    value = answer.body.get("value", [])
    return sorted(one["url"] for one in (value if isinstance(value, list) else [value]))


async def test_a_registered_record_is_read_unchanged(world):
    """PFY-13."""
    ra, rb = await world.peer(RA), await world.peer(RB)
    url = await registered(rb, guid=GUID, p2pHandler=f"{RB}/p2phandler/1")

    answer = await read(ra, url)

    expected = record(url, guid=GUID, p2pHandler=f"{RB}/p2phandler/1")
    assert answer.code == 200
    assert {name: answer.body["value"][name] for name in expected} == expected
    assert (answer.from_, answer.to) == (DR, f"{RA}/registry")


async def test_a_record_by_its_url_in_a_path(world):
    rb = await world.peer(RB)
    url = await registered(rb)
    assert urls(await read(rb, f"/hyperty/url/{url}")) == [url]


async def test_a_search_shows_the_live_ones_only_if_there_are_any(world):
    rb = await world.peer(RB)
    first, second = await registered(rb), await registered(rb)
    await update(rb, first, value={"status": "disconnected"})
    answer = await read(rb, BOB)
    assert (answer.code, urls(answer)) == (200, [second])


async def test_an_update_sets_fields_and_brings_a_record_back(world):
    rb = await world.peer(RB)
    url = await registered(rb)
    await update(rb, url, value={"status": "disconnected"})

    answer = await update(rb, url, value={"resources": ["chat", "video"]})

    assert answer.code == 200
    shown = await read(rb, url)
    assert (shown.code, shown.body["value"]["resources"]) == (200, ["chat", "video"])


@pytest.mark.parametrize("value", [{"p2pHandler": f"{RA}/p2phandler/1"}, {"runtime": RA}])
async def test_a_record_names_its_own_runtime_and_handler(world, value):
    rb = await world.peer(RB)
    url = await registered(rb)
    (fresh,) = await rb.allocate()

    assert (await create(rb, record(fresh, **value))).code == 403
    assert (await update(rb, url, value=value)).code in {400, 403}
    shown = await read(rb, url)
    assert shown.body["value"]["runtime"] == RB
    assert "p2pHandler" not in shown.body["value"]


async def test_an_unknown_or_invalid_change_is_refused(world):
    rb = await world.peer(RB)
    url = await registered(rb)

    assert (await update(rb, "hyperty://a.ex/nobody")).code == 404
    assert (await update(rb, url, value={"status": "dead"})).code == 400
    assert (await update(rb, url, value=7)).code == 400
    assert (await update(rb, url, value={"url": "hyperty://a.ex/x"})).code == 400
    assert (await read(rb, "/hyperty/odd/x")).code == 400
    assert (await read(rb, f"/hyperty/runtimes/{RB}")).code == 400
    assert (await create(rb, [1])).code == 400
    assert (await rb.ask("delete", f"{RB}/registry", DR, resource=url)).code == 400


async def test_the_limits_of_the_rest_form_are_known(world):
    rb = await world.peer(RB)
    is_rest = world.kind == "http"
    (url,) = await rb.allocate()
    without_user = {name: one for name, one in record(url).items() if name != "user"}
    assert (await create(rb, without_user)).code == (400 if is_rest else 200)

    known = await registered(rb, unheard_of=1)
    assert ("unheard_of" in (await read(rb, known)).body["value"]) is not is_rest

    await registered(rb, "comm", name="room")
    assert (await read(rb, f"/comm/user/{BOB}")).code == (404 if is_rest else 200)
    assert (await read(rb, "/hyperty/resources/chat")).code == (400 if is_rest else 200)
    assert len(OTHERWISE) == 3
