"""The domain registry as others see it (M-21..M-30, CON-02, CON-08, I-G1..I-G6)."""

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


async def test_one_attribute_of_a_record_is_read(autojump_clock):
    """MSG-11: as one record and a page of a search are."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)

        assert (await read(ra, url)).body["value"] == record(url)
        assert (await read(ra, url, attribute="user")).body["value"] == BOB
        assert (await read(ra, BOB, limit=1)).body["value"] == [record(url)]
