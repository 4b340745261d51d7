"""A network in chaos with three parties on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import attrs

from actors.testing.chaos.network import ChaosNetwork
from tests.support.runtime.links import Pair, leaving_together
from transports.link import Kind, Link, Listener
from transports.memory import MemoryNetwork

BETWEEN = ("ra", "node")


@attrs.frozen
class Scene:
    """A runtime, a node and an outsider on one network; the runtime has dialled the node."""

    chaos: ChaosNetwork
    listener: Listener
    link: Link
    node: Link

    async def dial(self, who: str) -> Pair:
        dialler = await self.chaos.end(who).dial(Kind.WEBSOCKET, self.listener.address + "/link")
        return Pair(dialler, await self.listener.accept())


@asynccontextmanager
async def open_scene() -> AsyncIterator[Scene]:
    chaos = ChaosNetwork(MemoryNetwork(), Random(1))  # noqa: S311 - chance, no secret
    for outsider in ("rb", "rc"):
        chaos.end(outsider)
    async with chaos.end("node").listen(Kind.WEBSOCKET, "127.0.0.1:0") as listener:
        link = await chaos.end("ra").dial(Kind.WEBSOCKET, listener.address + "/link")
        node = await listener.accept()
        async with leaving_together(link, node):
            yield Scene(chaos, listener, link, node)
