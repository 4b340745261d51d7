"""An entry whose catalogue hangs fails at its deadline, once for each that waits (RES-14)."""

import pytest
import trio

from actors.catalogue.client import CatalogueAccess
from actors.catalogue.source import MemorySource, Places
from actors.hyperties import Caller
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.catalogue.descriptor import Reach
from specs.limits.protocol import DEPLOY_TIMEOUT
from specs.message import MessageType
from tests.support.catalogues import B, Publishing, Wall
from tests.support.runtime.domain import counted_bytes
from transports.memory import MemoryNetwork


class HangingSource(MemorySource):
    """A catalogue that never answers."""

    async def read(self, path, limit):
        await trio.sleep_forever()


@pytest.mark.parametrize("to", [f"hyperty://{B}/1", f"domain-idp://{B}"])
async def test_each_that_waits_gets_503_at_the_deadline(autojump_clock, to):
    publishing = Publishing()
    access = CatalogueAccess(
        Places({B: lambda _: HangingSource("memory", {})}),
        publishing.trust(Reach.ANYWHERE),
        clock_offset=Wall(publishing).offset,
    )
    network, caller, codes = MemoryNetwork(), Caller(), []
    node = NodeConfig(domain="a.ex", entropy=counted_bytes(0))
    async with open_node(node, network, NULL_TRACER) as serving:
        config = RuntimeConfig(domain="a.ex", name="ra", node=serving.url, catalogues=access)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            await runtime.deploy("caller", lambda: caller)

            async def ask():
                body = {"method": "validateAssertion", "params": {}}
                codes.append((await caller.ask(to, MessageType.EXECUTE, body)).code)

            began = trio.current_time()
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(ask)
            assert codes == [503] * 3
            assert trio.current_time() - began <= DEPLOY_TIMEOUT + 1
