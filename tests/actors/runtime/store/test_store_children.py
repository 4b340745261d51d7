"""Children of a stored object outlive the process of its reporter (SYN-24, SYN-25, M-51)."""

import trio

from tests.actors.runtime.objects.test_children import seen
from tests.actors.runtime.objects.test_store import world, written_at_once  # noqa: F401  a fixture


async def test_a_reporter_that_is_back_has_all_children_and_changes_its_own(
    tmp_path, autojump_clock
):
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb", store=False)
        async with ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as thing:
            url = thing.url
            mine = await thing.children.create("mine")
            async with rb.hyperty.observe(url) as copy:
                theirs = await copy.children.create("theirs")
                await seen(thing.children, ["mine", "theirs"])
        await ra.stop()
        # Ids go on from the time of day.
        await trio.sleep(1)

        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
            assert {name: one.value for name, one in again.children.items()} == {
                mine.id: "mine",
                theirs.id: "theirs",
            }
            async with rb.hyperty.observe(url) as copy:
                await seen(copy.children, ["mine", "theirs"])
                await again.children[mine.id].update("changed")
                await seen(copy.children, ["changed", "theirs"])
                await again.children[mine.id].delete()
                await seen(copy.children, ["theirs"])
            await trio.sleep(1)
            assert [*again.children] == [theirs.id]
