"""Children of a stored object, and the disk (SYN-24, SYN-25)."""

import pytest
import trio

from actors.runtime.store.file import ObjectFile
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


async def test_no_child_is_acknowledged_before_it_is_on_disk(tmp_path, autojump_clock, disk):
    """It is the reporter that answers; it hears of the child when that is written."""
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with (
            ra.hyperty.report("comm", {}, name="todo", store=True, public=True) as thing,
            rb.hyperty.observe(thing.url) as copy,
        ):
            written, done = trio.Event(), []
            disk.append(written)

            async def create():
                done.append(await copy.children.create({"text": "hello"}))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(create)
                await trio.sleep(5)
                assert (done, dict(thing.children)) == ([], {})
                written.set()
            assert [*thing.children] == [done[0].id]
