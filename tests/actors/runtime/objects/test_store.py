"""Data objects outlive the process of their reporter, or of who observes (SYN-25, SYN-28)."""

import contextlib
from contextlib import asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.kit.ids import IdSource
from actors.node.config import NodeConfig
from actors.runtime.config import RuntimeConfig
from actors.runtime.store.file import ObjectFile
from fsm.sync.stored import SessionKept
from specs.message import MessageType
from specs.trace import Op
from tests.support.report_world import Open
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

NODE = "ws://127.0.0.1:4000/link"


@pytest.fixture(autouse=True)
def written_at_once():
    """A clock that jumps when all tasks wait does not wait for the thread that writes."""

    async def commit(self, changes):
        if changes:
            self._write(tuple(changes))
            self.rest.follow(changes)
        await trio.lowlevel.checkpoint()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ObjectFile, "commit", commit)
        yield


class Life:
    """A runtime, or a node, for one life."""

    def __init__(self, scope, ended, thing):
        self.scope, self.ended, self.thing = scope, ended, thing

    async def stop(self):
        self.scope.cancel()
        await self.ended.wait()


@attrs.define
class World:
    """A node, and runtimes with stores, each of which can be stopped and started."""

    nursery: trio.Nursery
    folder: object
    network: MemoryNetwork = attrs.field(factory=MemoryNetwork)

    async def _live(self, context):
        scope, ended = trio.CancelScope(), trio.Event()

        async def run(task_status):
            with scope:
                async with context as thing:
                    task_status.started(thing)
                    await trio.sleep_forever()
            ended.set()

        return Life(scope, ended, await self.nursery.start(run))

    async def node(self):
        ids = IdSource(int(trio.current_time() * 1000))
        config = NodeConfig(domain="a.ex", listen="127.0.0.1:4000", ids=ids)
        return await self._live(actors.open_node(config, network=self.network))

    async def runtime(self, name, *, store=True, trace=None):
        ids = IdSource(int(trio.current_time() * 1000))
        place = self.folder / f"{name}.sqlite" if store else None
        config = RuntimeConfig(domain="a.ex", name=name, node=NODE, ids=ids, store=place)
        life = await self._live(actors.open_runtime(config, network=self.network, trace=trace))
        life.hyperty = await life.thing.deploy(Open, "todo")
        return life


@asynccontextmanager
async def world(folder):
    async with trio.open_nursery() as nursery:
        yield World(nursery, folder)
        nursery.cancel_scope.cancel()


async def test_a_reporter_resumes_its_stored_object_and_versions_continue(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as first:
            assert not first.resumed
            url, address = first.url, ra.hyperty.url
            assert await first.set("n", 1) == 2
        await ra.stop()

        ra = await there.runtime("ra")
        assert ra.hyperty.url == address
        async with ra.hyperty.report("comm", {"n": 9}, name="todo", store=True) as again:
            assert (again.resumed, again.url, again.version) == (True, url, 2)
            assert dict(again.value) == {"n": 1}
            assert await again.set("n", 2) == 3


async def test_within_one_life_a_context_that_was_left_is_taken_up(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as first:
            with pytest.raises(actors.ObjectError) as refused:
                async with ra.hyperty.report("comm", {}, name="todo", store=True):
                    pass
            assert refused.value.code == 409
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
            assert (again.resumed, again.url) == (True, first.url)
        async with ra.hyperty.report("comm", {}, name="other", store=True) as other:
            assert not other.resumed
            await other.delete()
        async with ra.hyperty.report("comm", {}, name="other", store=True) as other:
            assert not other.resumed


async def test_without_a_store_nothing_can_be_stored(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra = await there.runtime("ra", store=False)
        for wanted in (
            ra.hyperty.report("comm", {}, store=True),
            ra.hyperty.observe("comm://a.ex/o", store=True),
        ):
            with pytest.raises(actors.ObjectError, match="stores nothing") as refused:
                async with wanted:
                    pass
            assert refused.value.code == 400


async def test_an_object_of_an_absent_reporter_is_served_to_permitted_observers(
    tmp_path, autojump_clock
):
    """SYN-28: snapshot, read and subscription of who is allowed; no changes, and no outsiders."""
    async with world(tmp_path) as there:
        await there.node()
        ra, rb, rc = [await there.runtime(name) for name in ("ra", "rb", "rc")]
        async with ra.hyperty.report(
            "comm", {"n": 7}, name="todo", store=True, allow=(rb.hyperty.url,)
        ) as thing:
            url = thing.url
        async with rb.hyperty.observe(url) as copy:
            assert copy.value["n"] == 7
            assert (await rb.hyperty.ask(url, MessageType.READ, {})).code == 200
        with pytest.raises(actors.ObjectError, match="away") as refused:
            async with rc.hyperty.observe(url):
                pass
        assert refused.value.code == 503
        await ra.stop()
        ra = await there.runtime("ra")
        await trio.sleep(1)
        async with rb.hyperty.observe(url) as copy:
            assert (copy.value["n"], copy.version) == (7, 1)
            async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
                await again.set("n", 8)
                await copy.wait_for(lambda value: value["n"] == 8)
        who = (rc.hyperty.url,)
        async with ra.hyperty.report("comm", {}, name="todo", store=True, allow=who):
            pass
        async with rc.hyperty.observe(url) as copy:
            assert copy.value["n"] == 8


async def test_an_observer_has_what_was_stored_until_the_reporter_is_back(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as thing:
            url = thing.url
            async with rb.hyperty.observe(url, store=True) as copy:
                assert not copy.is_stale
                await thing.set("n", 1)
                await copy.wait_for(lambda value: value["n"] == 1)
            await rb.stop()
            await thing.set("n", 2)
        await ra.stop()
        rb = await there.runtime("rb")
        async with rb.hyperty.observe(url, store=True) as copy:
            assert (copy.version, copy.value["n"], copy.is_stale) == (2, 1, True)
            await trio.sleep(30)
            assert copy.is_stale
            ra = await there.runtime("ra")
            async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
                with trio.fail_after(60):
                    await copy.wait_for(lambda value: value["n"] == 2)
                assert not copy.is_stale
                await again.set("n", 3)
                with trio.fail_after(1):
                    await copy.wait_for(lambda value: value["n"] == 3)


async def test_a_stored_object_that_is_deleted_calls_no_observer_back(tmp_path, autojump_clock):
    """SYN-25, I-T7, I-T12: its address is nobody's any more, and nothing is sent from there."""
    tracer = MemoryTracer()
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb", store=False)
        async with (
            ra.hyperty.report("comm", {}, name="todo", store=True) as thing,
            rb.hyperty.observe(thing.url),
        ):
            await ra.stop()
            await rb.stop()
        ra = await there.runtime("ra", trace=tracer)
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
            assert again.resumed
            await again.delete()
        await trio.sleep(60)
    sender = f"{thing.url}/subscription"
    calls = [fact.op for fact in tracer.facts if fact.from_ == sender and fact.ref is None]
    assert Op.SUBMIT in calls
    assert Op.DENY not in calls


async def test_an_object_that_is_deleted_leaves_the_store(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as thing:
            await thing.delete()
        await ra.hyperty.undeploy()
        await ra.stop()
    with contextlib.closing(ObjectFile(tmp_path / "ra.sqlite")) as file:
        assert not [row for row in file.load() if not isinstance(row, SessionKept)]
