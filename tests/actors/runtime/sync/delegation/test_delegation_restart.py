"""An object is handed over after a restart, too: its offers have rising numbers (SYN-26)."""

from contextlib import AsyncExitStack

import pytest
import trio

import actors
from actors.runtime.sync.delegation import HandOvers
from fsm.sync.delegation import Answered
from specs.reply_code import Code
from tests.actors.runtime.objects.test_store import Open, world, written_at_once
from tests.actors.runtime.sync.delegation.test_delegation import Heir, heir_of

__all__ = ["written_at_once"]


async def test_an_offer_that_is_over_does_not_stop_those_of_the_next_life(
    tmp_path, autojump_clock, monkeypatch
):
    async def hand(self, core, handed):
        return Answered(Code.UNAVAILABLE, "not now")

    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        heir, deployed = await heir_of(rb.thing)
        async with ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as thing:
            with monkeypatch.context() as patched:
                patched.setattr(HandOvers, "hand", hand)
                with pytest.raises(actors.ObjectError, match="not now"):
                    await thing.delegate(deployed.url)
        await ra.stop()
        await trio.sleep(10)

        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
            await again.delegate(deployed.url)
            assert (await heir.has()).url == again.url == thing.url
            heir.over.set()


class Storing(Heir):
    """Takes every object over for good, and lets everybody in."""

    async def go_on(self, url):
        async with self.taken_over(url, store=True) as thing:
            self.things.append(thing)
            self.come.set()
            await self.over.wait()


async def test_a_new_reporter_may_store_an_object_for_any_choice_of_the_old_one(
    tmp_path, autojump_clock
):
    """SYN-25: value, version, children, observers and allowances are those of all lives."""
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        rc = await there.runtime("rc")
        heir = Storing()
        deployed = await rb.thing.deploy(lambda: heir, "heir")
        async with AsyncExitStack() as stack:
            report = ra.hyperty.report("comm", {"n": 0}, name="todo", allow=(rc.hyperty.url,))
            thing = await stack.enter_async_context(report)
            copy = await stack.enter_async_context(rc.hyperty.observe(thing.url))
            await copy.children.create("hi")
            await thing.delegate(deployed.url)
            await (await heir.has()).set("n", 1)
        await rb.stop()
        rb = await there.runtime("rb")
        deployed = await rb.thing.deploy(Open, "heir")
        async with deployed.report("comm", {}, name="todo", store=True) as again:
            assert (again.url, again.resumed, again.version) == (thing.url, True, 3)
            assert [child.value for child in again.children.values()] == ["hi"]
            async with rc.hyperty.observe(thing.url) as copy:
                await again.set("n", 2)
                with trio.fail_after(5):
                    await copy.wait_for(lambda value: value["n"] == 2)


async def test_where_nothing_is_stored_it_can_be_taken_without(tmp_path, autojump_clock):
    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb", store=False)
        heir, deployed = await heir_of(rb.thing)
        refused = []

        async def go_on(url):
            try:
                async with heir.taken_over(url, store=True):
                    pass
            except actors.ObjectError as error:
                refused.append(error.code)
            await Heir.go_on(heir, url)

        heir.go_on = go_on
        async with ra.hyperty.report("comm", {"n": 0}) as thing:
            await thing.delegate(deployed.url)
            taken = await heir.has()
            assert await taken.set("n", 1) == 3
            assert refused == [400]
            heir.over.set()
