"""Records of a domain registry, and how peers register, read and change them."""

from tests.support.node.node_peer import DR, RB

BOB = "user://idp.ex/bob"
GUID = "user-guid://g1"


def record(url, runtime=RB, **more):
    """Return a record with every field that upstream's registry wants."""
    return {
        "url": url, "runtime": runtime, "status": "live", "user": BOB, "expires": 3600,
        "descriptor": "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty/Chat",
        "resources": ["chat"], "dataSchemes": ["comm"], **more,
    }  # fmt: skip


async def create(peer, value):
    return await peer.ask("create", f"{peer.runtime}/registry", DR, value=value)


async def read(peer, resource, **more):
    return await peer.ask("read", f"{peer.runtime}/registry", DR, resource=resource, **more)


async def update(peer, url, **more):
    return await peer.ask("update", f"{peer.runtime}/registry", DR, resource=url, **more)


async def registered(peer, scheme="hyperty", **more):
    """Allocate an address and register it."""
    (url,) = await peer.allocate(scheme)
    answer = await create(peer, record(url, peer.runtime, **more))
    assert answer.code == 200, answer.body
    return url
