"""Children of a stored object, and the disk (SYN-24, SYN-25)."""

import pytest
import trio

import actors
from actors.runtime.store.file import ObjectFile
from tests.actors.runtime.objects.test_children import seen
from tests.actors.runtime.objects.test_store import world


@pytest.fixture
def disk(monkeypatch):
    """A disk that writes at once; or, while the list is not empty, when its event is set."""
    waits = []

    async def commit(self, changes):
        for each in waits:
            await each.wait()
        self._write(tuple(changes))
        self.rest.follow(changes)
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(ObjectFile, "commit", commit)
    return waits


AWAY = 60.0
"""Seconds after which a runtime refuses at once what is for its node."""


@pytest.mark.parametrize("pause", [0.5, 3.0, 14.0])
async def test_a_child_that_waits_for_the_disk_is_created_once_while_the_node_is_away(
    tmp_path, autojump_clock, disk, pause
):
    """SYN-24: the sync manager has decided; that nobody else hears of it yet is no refusal."""
    async with world(tmp_path) as there:
        node = await there.node()
        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as thing:
            await node.stop()
            await trio.sleep(AWAY)
            written = trio.Event()
            disk.append(written)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(thing.children.create, "hello")
                await trio.sleep(pause)
                written.set()
            assert [child.value for child in thing.children.values()] == ["hello"]
            whole = await ra.hyperty.ask(thing.url, "read", {})
            (kept,) = whole.body["value"]["childrenObjects"]["resources"].values()
            assert kept["value"] == "hello"


async def test_a_reporter_whose_disk_comes_back_after_the_answer_shows_its_child(
    tmp_path, autojump_clock, disk
):
    """SYN-24: the caller is told that the outcome is unknown, and the copy finds it out."""
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with (
            ra.hyperty.report("comm", {}, name="todo", store=True, public=True) as thing,
            rb.hyperty.observe(thing.url) as copy,
        ):
            written = trio.Event()
            disk.append(written)
            for children in (thing.children, copy.children):
                with pytest.raises(actors.ObjectError) as unknown:
                    await children.create("hello")
                assert unknown.value.code == 408
            written.set()
            await trio.sleep(100)
            shown = [
                {each.id: each.value for each in one.children.values()} for one in (thing, copy)
            ]
            assert shown[0] == shown[1]
            assert [*shown[0].values()] == ["hello", "hello"]


@pytest.mark.parametrize("pause", [20.0, 100.0])
async def test_a_write_that_waits_for_the_disk_is_not_taken_back(
    tmp_path, autojump_clock, disk, pause
):
    """SYN-25: the reporter shows what its observers have, however long the disk takes."""
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with (
            ra.hyperty.report("comm", {}, name="todo", store=True, public=True) as thing,
            rb.hyperty.observe(thing.url) as copy,
        ):
            written, versions = trio.Event(), []
            disk.append(written)

            async def set_slowly():
                versions.append(await thing.set("n", 1))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(set_slowly)
                await trio.sleep(pause)
                assert versions == []
                written.set()
            await thing.set("m", 2)
            await trio.sleep(10)
            assert versions == [2]
            assert dict(copy.value) == dict(thing.value) == {"n": 1, "m": 2}


async def test_an_object_whose_creation_waits_for_the_disk_is_created_once(
    tmp_path, autojump_clock, disk
):
    """SYN-25: its reporter waits for it; who gave up would report another one."""
    async with world(tmp_path) as there:
        await there.node()
        ra, written = await there.runtime("ra"), trio.Event()
        disk.append(written)
        there.nursery.start_soon(_set_after, 40, written)
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as thing:
            assert written.is_set()
            found = await ra.hyperty.discover(scheme="comm", name="todo")
            assert [record.url for record in found] == [thing.url]


async def _set_after(seconds, event):
    await trio.sleep(seconds)
    event.set()


async def test_the_window_of_a_stored_object_and_its_ages_outlive_the_process(
    tmp_path, autojump_clock, disk
):
    window = actors.ChildWindow(last=3, seconds=1000)
    async with world(tmp_path) as domain:
        await domain.node()
        ra, rb = await domain.runtime("ra"), await domain.runtime("rb")
        async with ra.hyperty.report("comm", {}, name="c", store=True, children=window) as room:
            for number in range(5):
                await room.children.create(number)
            await ra.stop()
        await trio.sleep(600)
        ra = await domain.runtime("ra")
        async with (
            ra.hyperty.report("comm", {}, name="c", store=True, public=True) as room,
            rb.hyperty.observe(room.url) as copy,
        ):
            assert room.resumed
            await room.children.create(5)
            for children in (room.children, copy.children):
                await seen(children, [3, 4, 5])
            await trio.sleep(500)
            for children in (room.children, copy.children):
                await seen(children, [5])
