"""The domain registry as others see it (M-21..M-30, CON-02, CON-08, I-G1..I-G6)."""

import trio

from specs.limits.protocol import REGISTRATION_GRAVE
from tests.support.node.node_peer import DR, RA, RB, open_world

BOB = "user://idp.ex/bob"


def record(url, runtime=RB, **more):
    return {
        "url": url, "runtime": runtime, "status": "live", "user": BOB,
        "resources": ["chat"], "dataSchemes": ["comm"], **more,
    }  # fmt: skip


async def registered(peer, **more):
    """Allocate an address and register it."""
    (url,) = await peer.allocate()
    answer = await peer.ask("create", f"{peer.runtime}/registry", DR, value=record(url, **more))
    assert answer.code == 200, answer.body
    return url


async def read(peer, resource, **more):
    return await peer.ask("read", f"{peer.runtime}/registry", DR, resource=resource, **more)


async def update(peer, url, **more):
    return await peer.ask("update", f"{peer.runtime}/registry", DR, resource=url, **more)


async def test_one_attribute_of_a_record_is_read(autojump_clock):
    """MSG-11: as one record and a page of a search are."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)

        assert (await read(ra, url)).body["value"] == record(url)
        assert (await read(ra, url, attribute="user")).body["value"] == BOB
        assert (await read(ra, BOB, limit=1)).body["value"] == [record(url)]


async def test_a_keep_alive_brings_an_expired_record_back(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        url = await registered(rb, expires=60)
        await rb.silence(100)

        await update(rb, url)

        assert (await read(rb, url)).code == 200
        assert [new for _, _, new in world.steps("registration")] == [
            "live", "disconnected", "live",
        ]  # fmt: skip


async def test_an_unclaimed_record_ends(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        url = await registered(rb)
        await update(rb, url, attribute="status", value="disconnected")
        await rb.control("close")

        await trio.sleep(REGISTRATION_GRAVE + 1)

        again = await world.peer(RB)
        assert (await read(again, url)).code == 404
        assert world.steps("registration")[-1] == (url, "disconnected", "dead")
