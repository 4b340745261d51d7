"""What the answer to a renewed subscription brings, the copies have (STB-09, SYN-12, I-D4)."""

from contextlib import asynccontextmanager

import attrs
import trio

import actors
from tests.support.report_world import Closed, Open
from transports.memory import MemoryNetwork

PLACE = "127.0.0.1:4000"


@attrs.define
class Place:
    """Two runtimes, and a node that can be stopped and comes back without memory."""

    network: MemoryNetwork = attrs.field(factory=MemoryNetwork)
    nursery: trio.Nursery | None = None
    node: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def start(self):
        self.node = trio.CancelScope()
        await self.nursery.start(self._run)

    async def _run(self, task_status):
        config = actors.NodeConfig(domain="a.ex", listen=PLACE)
        with self.node:
            async with actors.open_node(config, network=self.network):
                task_status.started()
                await trio.sleep_forever()

    def open_runtime(self, name):
        return actors.open_runtime("a.ex", name, node=f"ws://{PLACE}/link", network=self.network)


@asynccontextmanager
async def place():
    made = Place()
    async with trio.open_nursery() as made.nursery:
        await made.start()
        async with made.open_runtime("ra") as here, made.open_runtime("rb") as there:
            yield made, await here.deploy(Open), await there.deploy(Closed)
        made.node.cancel()


async def test_changes_during_an_absence_of_the_node_come_with_the_path(autojump_clock):
    async with (
        place() as (made, sensor, watcher),
        sensor.report("ctxt", {"t": 0}) as thing,
        watcher.observe(thing.url) as copy,
    ):
        made.node.cancel()
        await trio.sleep(1)
        await thing.set("t", 1)
        await trio.sleep(70)
        assert copy.version == 1
        await made.start()
        with trio.fail_after(20):
            await copy.wait_for(lambda value: value["t"] == 1)
