"""An upstream peer and one of ours at one node, by either of upstream's doors."""

from contextlib import asynccontextmanager

import pytest

from tests.support.node.legacy_peer import OLD, plain_peer, session_peer
from tests.support.node.node_peer import RA, open_world

DOORS = pytest.mark.parametrize("door", [plain_peer, session_peer])


@asynccontextmanager
async def met(door, **config):
    """An upstream peer and one of ours at one node."""
    async with open_world(allow_legacy=True, **config) as world:
        yield world, await door(world), await world.peer(RA)


async def reported(old, type_, to, body=None, **more):
    """Return code and body of the answer to a message of an upstream peer."""
    message = {"id": 5, "type": type_, "from_": f"{OLD}/ua", "to": to, **more}
    answer = await old.ask(**message, **({} if body is None else {"body": body}))
    assert (answer["id"], answer["from"], answer["to"]) == (5, to, message["from_"])
    return answer["body"].pop("code"), answer["body"]
