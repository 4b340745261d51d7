"""Data objects outlive the process of their reporter, or of who observes (SYN-25, SYN-28)."""

import contextlib
from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.kit.ids import IdSource
from actors.node.config import NodeConfig
from actors.runtime.config import RuntimeConfig
from actors.runtime.registry.registry import Registry
from actors.runtime.store.file import ObjectFile, StoreFileError
from actors.runtime.sync.reporter import Report
from actors.testing.recorder import Recorder
from fsm.sync.stored import SessionKept
from specs.limits.protocol import SESSION_IDLE
from specs.message import MessageType
from specs.trace import Op
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


class Open(actors.Hyperty):
    """Lets everybody observe."""

    async def on_subscribe(self, url, observer):
        pass


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


@pytest.mark.parametrize("away", [1.0, 120.0])
@pytest.mark.parametrize("node_too", [False, True])
async def test_observers_go_on_when_the_reporter_is_back(away, node_too, tmp_path, autojump_clock):
    """Whether the node has kept the session, or has forgotten all."""
    async with world(tmp_path) as there:
        node = await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as thing:
            url = thing.url
            async with AsyncExitStack() as stack:
                copy = await stack.enter_async_context(rb.hyperty.observe(url))
                await thing.set("n", 1)
                await copy.wait_for(lambda value: value["n"] == 1)
                await ra.stop()
                if node_too:
                    await node.stop()
                    await there.node()
                await trio.sleep(away)
                ra = await there.runtime("ra")
                await trio.sleep(60)
                async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
                    assert await again.set("n", 2) == 3
                    with trio.fail_after(1):
                        await copy.wait_for(lambda value: value["n"] == 2)
                    assert copy.version == 3


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


async def test_after_an_outage_of_all_an_observer_may_be_the_first_that_is_back(
    tmp_path, autojump_clock
):
    """The node has forgotten the object, which says nothing about whether it is gone."""
    async with world(tmp_path) as there:
        node = await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with (
            ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as thing,
            rb.hyperty.observe(thing.url, store=True),
        ):
            for life in (ra, rb, node):
                await life.stop()
        await there.node()
        rb = await there.runtime("rb")
        async with rb.hyperty.observe(thing.url, store=True) as copy:
            await trio.sleep(5)
            assert copy.is_stale
            ra = await there.runtime("ra")
            async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
                await again.set("n", 1)
                with trio.fail_after(30):
                    await copy.wait_for(lambda value: value["n"] == 1)
                assert not copy.is_stale


async def test_an_object_that_was_deleted_meanwhile_ends_the_copy(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with ra.hyperty.report("comm", {"n": 0}, store=True) as thing:
            async with rb.hyperty.observe(thing.url, store=True):
                pass
            await rb.stop()
            await thing.delete()
        rb = await there.runtime("rb")
        async with rb.hyperty.observe(thing.url, store=True) as copy:
            assert copy.version == 1
            await trio.sleep(20)
            assert copy.is_gone
        await trio.sleep(1)
        with pytest.raises(actors.ObjectError) as refused:
            async with rb.hyperty.observe(thing.url, store=True):
                pass
        assert refused.value.code == 404


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


async def test_a_stored_object_that_is_deleted_while_it_is_registered_is_not_shown(
    tmp_path, autojump_clock, monkeypatch
):
    register, show, shown = Report.register, Registry.show_local, []

    async def register_slowly(report, created):
        refusal = await register(report, created)
        await trio.sleep(5)
        return refusal

    async def note(registry, url):
        shown.append(url)
        await show(registry, url)

    async with world(tmp_path) as there:
        await there.node()
        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as thing:
            await ra.stop()
        monkeypatch.setattr(Report, "register", register_slowly)
        monkeypatch.setattr(Registry, "show_local", note)
        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
            await again.delete()
            await trio.sleep(10)
    assert thing.url not in shown


async def test_nothing_is_said_before_it_is_on_disk(tmp_path, autojump_clock, monkeypatch):
    """SYN-25: neither to who observes nor to who asked."""
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with (
            ra.hyperty.report("comm", {"n": 0}, name="todo", store=True, public=True) as thing,
            rb.hyperty.observe(thing.url) as copy,
        ):
            plain, allowed = ObjectFile.commit, trio.Event()

            async def commit(self, changes):
                await allowed.wait()
                await plain(self, changes)

            monkeypatch.setattr(ObjectFile, "commit", commit)
            async with trio.open_nursery() as nursery:
                for n in range(1, 11):
                    nursery.start_soon(thing.set, "n", n)
                await trio.sleep(5)
                assert (copy.version, thing.version) == (1, 1)
                allowed.set()
            # Tasks begin in any order: it is the number of changes that is known.
            await copy.later_than(10)
            assert (copy.version, thing.version) == (11, 11)
            assert copy.value == thing.value


async def test_a_store_that_cannot_be_written_refuses_changes_and_nothing_else(
    tmp_path, autojump_clock, monkeypatch
):
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with (
            ra.hyperty.report("comm", {"n": 0}, name="a", store=True, public=True) as stored,
            ra.hyperty.report("comm", {"n": 0}, name="b", public=True) as plain,
            rb.hyperty.observe(stored.url) as copy,
            rb.hyperty.observe(plain.url) as other,
        ):
            works = ObjectFile.commit

            async def commit(self, changes):
                await trio.lowlevel.checkpoint()
                raise StoreFileError(self.path, "the disk is full")

            monkeypatch.setattr(ObjectFile, "commit", commit)
            async with trio.open_nursery() as nursery:
                # What was taken before it was known waits for the disk.
                nursery.start_soon(stored.set, "n", 1)
                await trio.sleep(2)
                refused = await ra.hyperty.ask(
                    f"{ra.thing.url}/sm",
                    MessageType.UPDATE,
                    {"resource": stored.url, "attribute": "n", "value": 2},
                )
                assert refused.code == 503
                assert await plain.set("n", 5) == 2
                await other.wait_for(lambda value: value["n"] == 5)
                assert copy.version == 1
                monkeypatch.setattr(ObjectFile, "commit", works)
            await copy.wait_for(lambda value: value["n"] == 1)
            assert await stored.set("n", 3) == 3


async def test_children_and_allowances_come_back_too(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra, rb, rc = [await there.runtime(name) for name in ("ra", "rb", "rc")]
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as thing:
            await thing.allow(rb.hyperty.url)
            async with rb.hyperty.observe(thing.url) as copy:
                child = await copy.children.create({"text": "hello"})
        await ra.stop()
        ra = await there.runtime("ra")
        await trio.sleep(1)
        async with rb.hyperty.observe(thing.url) as copy:
            assert {name: one.value for name, one in copy.children.items()} == {
                child.id: {"text": "hello"}
            }
        del rc


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


async def test_each_life_is_conformant(tmp_path, autojump_clock):
    """I-D1..I-D9, I-A1..I-A7: by what each process has traced, the node over both lives."""
    network, recorder, place = MemoryNetwork(), Recorder(), tmp_path / "s.sqlite"

    def life(name, url, trace, store):
        ids = IdSource(int(trio.current_time() * 1000))
        config = RuntimeConfig(domain="a.ex", name=name, node=url, ids=ids, store=store)
        return actors.open_runtime(config, network=network, trace=trace)

    with recorder.process("node") as first, recorder.process("rb") as third:
        async with (
            actors.open_node("a.ex", network=network, trace=first) as node,
            life("rb", node.url, third, None) as there,
            await there.deploy(Open, "watch") as watch,
        ):
            with recorder.process("ra 1") as trace:
                async with life("ra", node.url, trace, place) as here:
                    todo = await here.deploy(Open, "todo")
                    async with todo.report("comm", {"n": 0}, store=True) as thing:
                        async with watch.observe(thing.url) as copy:
                            assert copy.version == 1
                        await thing.set("n", 1)
            await trio.sleep(SESSION_IDLE + 5)
            with recorder.process("ra 2") as trace:
                async with life("ra", node.url, trace, place) as here:
                    todo = await here.deploy(Open, "todo")
                    async with todo.report("comm", {}, store=True) as again:
                        async with watch.observe(again.url) as copy:
                            assert await again.set("n", 2) == 3
                            await copy.wait_for(lambda value: value["n"] == 2)
                        await again.delete()
    recorder.assert_conformant()
