"""Upstream's suite `registration`, and beyond: records of hyperties and objects at the node."""

import pytest

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_forms import needs
from tests.support.wire.wire_sync import values

REGISTRY = f"domain://registry.{DOMAIN}"


def record(peer, url, **more):
    return {
        "url": url, "runtime": peer.runtime, "status": "live", "expires": 1200,
        "descriptor": "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty/Chat",
        "resources": ["chat"], "dataSchemes": ["comm"], **more,
    }  # fmt: skip


async def reported(peer, type_, **body):
    """Ask the registry; return code and value of its answer."""
    answer = await peer.ask(type_, peer.part("registry"), REGISTRY, **body)
    assert answer["from"] == REGISTRY
    return answer["body"]["code"], answer["body"].get("value")


async def registered(peer, scheme="hyperty", **more):
    (url,) = await peer.allocate(scheme)
    code, _ = await reported(peer, "create", value=record(peer, url, **more))
    assert code == 200
    return url


async def test_a_registered_record_is_found_by_its_address(join):
    """CON-02, PFY-05, I-G3, M-21, M-25."""
    alice, bob = await join(), await join()
    url = await registered(alice)

    code, value = await reported(bob, "read", resource=url)

    assert code == 200
    assert (value["url"], value["status"]) == (url, "live")
    assert value["resources"] == ["chat"]


async def test_an_unregistered_record_is_not_found(join):
    """CON-02, I-G3: 404."""
    peer = await join()
    assert (await reported(peer, "read", resource=f"hyperty://{DOMAIN}/never"))[0] == 404


@pytest.mark.parametrize(
    "criteria", [{}, {"resources": ["chat"]}, {"dataSchemes": ["comm"], "resources": ["chat"]}]
)
async def test_records_are_found_by_user(join, criteria):
    """CON-02, M-26: by user, narrowed by resources and data schemes."""
    alice, bob = await join(), await join()
    user = f"user://{DOMAIN}/{alice.name}"
    url = await registered(alice, user=user)

    code, value = await reported(bob, "read", resource=f"/hyperty/user/{user}", criteria=criteria)

    assert code == 200
    assert [one["url"] for one in value] == [url]


async def test_criteria_that_nothing_meets_find_nothing(join):
    """CON-02, M-26: 404."""
    alice, bob = await join(), await join()
    user = f"user://{DOMAIN}/{alice.name}"
    await registered(alice, user=user)

    wanted = {"resources": ["video"]}
    assert (await reported(bob, "read", resource=f"/hyperty/user/{user}", criteria=wanted))[
        0
    ] == 404


async def test_records_are_found_by_guid(join):
    """CON-02, M-27."""
    alice, bob = await join(), await join()
    guid = f"user-guid://{alice.name}"
    url = await registered(alice, guid=guid)

    code, value = await reported(bob, "read", resource=guid)

    assert code == 200
    assert [one["url"] for one in value] == [url]


async def test_objects_are_registered_too(join):
    """CON-02, M-21: with name, schema and reporter."""
    alice, bob = await join(), await join()
    url = await registered(alice, "comm", name="room", schema="x", reporter=alice.runtime)

    code, value = await reported(bob, "read", resource=url)

    assert (code, value["name"]) == (200, "room")


async def test_only_the_owner_registers_an_address(join):
    """CON-02, I-G2: 403, and nothing is found."""
    alice, bob = await join(), await join()
    (url,) = await alice.allocate()

    assert (await reported(bob, "create", value=record(bob, url)))[0] == 403
    assert (await reported(bob, "create", value=record(alice, url)))[0] == 403
    assert (await reported(alice, "read", resource=url))[0] == 404


async def test_only_the_owner_changes_a_record(join):
    """CON-02, I-G2."""
    alice, bob = await join(), await join()
    url = await registered(alice)

    body = {"resource": url, "attribute": "status", "value": "disconnected"}
    assert (await reported(bob, "update", **body))[0] == 403
    assert (await reported(bob, "update", resource=url))[0] == 403

    assert (await reported(bob, "read", resource=url))[1]["status"] == "live"


async def test_a_record_that_is_set_disconnected_is_away(join):
    """CON-02, I-M11, M-23, M-25: 408 with the record, which passes unchanged."""
    alice, bob = await join(), await join()
    url = await registered(alice)

    body = {"resource": url, "attribute": "status", "value": "disconnected"}
    assert (await reported(alice, "update", **body))[0] == 200
    code, value = await reported(bob, "read", resource=url)

    assert code == 408
    assert [one["status"] for one in value] == ["disconnected"]


async def test_a_record_is_set_live_again(join):
    """CON-02, M-22."""
    alice, bob = await join(), await join()
    url = await registered(alice)
    await reported(alice, "update", resource=url, attribute="status", value="disconnected")

    assert (await reported(alice, "update", resource=url, value={"status": "live"}))[0] == 200

    assert (await reported(bob, "read", resource=url))[0] == 200


async def test_a_keep_alive_is_answered(join):
    """CON-02, I-G4, M-24, C-53: 404 tells to register anew."""
    alice = await join()
    url = await registered(alice)

    assert (await reported(alice, "update", resource=url))[0] == 200
    assert (await reported(alice, "update", resource=f"{url}x"))[0] == 404


async def test_followers_of_a_record_are_sent_its_changes(join):
    """CON-08, I-G5, M-29, M-30, C-55: real changes only, in order."""
    alice, bob = await join(), await join()
    url = await registered(alice)
    assert (await bob.paths("subscribe", f"{url}/registration"))["body"]["code"] == 200

    for value in ("disconnected", "disconnected", "live"):
        await reported(alice, "update", resource=url, attribute="status", value=value)
    heard = [await bob.hear(), await bob.hear()]

    assert {(one["from"], one["to"], one["type"]) for one in heard} == {
        (REGISTRY, f"{url}/registration", "update")
    }
    assert [one["body"]["attribute"] for one in heard] == ["status", "status"]
    assert values(heard) == ["disconnected", "live"]


@needs("records that end with the session")
async def test_a_session_that_ends_takes_its_records_along(join):
    """CON-02, CON-08, MN-07: disconnected, and who watches is notified."""
    alice, bob = await join(), await join()
    url = await registered(alice)
    await bob.paths("subscribe", f"{url}/registration")

    await alice.close()
    heard = await bob.hear()

    assert (heard["to"], heard["body"]["value"]) == (f"{url}/registration", "disconnected")
    assert (await reported(bob, "read", resource=url))[0] == 408


@pytest.mark.parametrize(
    "value", [None, {}, {"url": "x"}, [], "text", {"url": f"hyperty://{DOMAIN}/x"}]
)
async def test_an_invalid_record_gets_400(join, value):
    """CON-02, CON-07, MN-25."""
    assert (await reported(await join(), "create", value=value))[0] == 400


@pytest.mark.parametrize("type_", ["execute", "subscribe", "unsubscribe", "forward"])
async def test_a_request_unknown_to_the_registry_gets_400(join, type_):
    """CON-07: a connector always answers."""
    peer = await join()
    body = {"message": {"id": 1, "type": "read", "from": peer.part("a"), "to": peer.part("b")}}
    assert (await reported(peer, type_, resource="x", **body))[0] == 400


async def test_upstreams_status_words_are_understood(join):
    """CON-02, C-57, N13: any case, `connected` for `live`."""
    alice, bob = await join(), await join()
    url = await registered(alice, status="LIVE")
    await reported(alice, "update", resource=url, attribute="status", value="DISCONNECTED")

    assert (await reported(bob, "read", resource=url))[0] == 408


async def test_a_record_names_its_own_runtime_and_handler(join):
    """CON-02, I-G6: 403 for another's."""
    alice, bob = await join(), await join()
    (url,) = await alice.allocate()
    for wrong in ({"runtime": bob.runtime}, {"p2pHandler": bob.part("p2phandler/1")}):
        assert (await reported(alice, "create", value=record(alice, url) | wrong))[0] == 403
