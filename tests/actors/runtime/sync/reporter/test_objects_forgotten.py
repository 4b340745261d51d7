"""A runtime keeps nothing of the objects that it does not report any more (SYN-22)."""

from types import SimpleNamespace

import actors
from actors.kit.ids import IdSource
from actors.runtime.config import RuntimeConfig
from actors.runtime.sync.reporter.cores import Publications
from fsm.sync.reporter_io import Granted
from specs.bodies.sync import DataObject
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


async def test_an_object_that_another_runtime_reports_now_leaves_nothing(autojump_clock):
    ids, url = IdSource(), "comm://a.ex/1"
    publications = Publications(SimpleNamespace(ids=ids), None)
    thing = DataObject("hyperty://a.ex/h1", "hyperty-runtime://a.ex/ra", {}, url)
    publications.decided(url, Granted("hyperty://a.ex/h2", "rb/sm", thing))
    ids.next(url)
    assert len(ids) == len(publications) == 1
    publications.removed(url)
    assert len(ids) == len(publications) == 0
