"""The front door on real sockets."""

import pytest

from tests.support.node.node_peer import open_world
from transports.errors import DialError
from transports.link import Kind
from transports.system import open_system_network


async def test_other_paths_are_refused():
    async with open_system_network() as network, open_world(network) as world:
        base = world.node.url.removesuffix("/link")
        for path in ("/ws", "/stub/connect?runtimeURL=x", "/"):
            with pytest.raises(DialError):
                await network.dial(Kind.WEBSOCKET, base + path, None)
