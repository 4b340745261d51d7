"""A runtime keeps nothing of the objects that it does not report any more (SYN-22)."""

import actors
from actors.kit.ids import IdSource
from actors.runtime.config import RuntimeConfig
from tests.support.report_world import Closed, Open
from transports.memory import MemoryNetwork

OBJECTS = 100


async def test_objects_that_are_deleted_leave_nothing_where_ids_come_from(autojump_clock):
    network, ids = MemoryNetwork(), IdSource()
    async with actors.open_node("a.ex", network=network) as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, ids=ids)
        async with (
            actors.open_runtime(config, network=network) as runtime,
            await runtime.deploy(Open) as writer,
            await runtime.deploy(Closed) as reader,
        ):
            senders = set()
            for number in range(OBJECTS):
                async with writer.report("comm", {"n": 0}) as thing, reader.observe(thing.url):
                    await thing.set("n", number)
                senders.add(len(ids))
            assert len(senders) == 1
