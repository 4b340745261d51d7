"""Observers in the runtime that reports, and reporters that observe (SYN-06, SYN-24, I-D9)."""

from tests.actors.runtime.objects.test_children import seen
from tests.support.report_world import Open, world


async def test_a_reporter_observes_its_own_object_and_has_its_children_once(autojump_clock):
    """SYN-06."""
    async with world() as w:
        alice, bob = await w.here.deploy(Open), await w.there.deploy(Open)
        async with alice.report("comm", {"n": 0}) as thing, bob.observe(thing.url) as copy:
            async with alice.observe(thing.url) as own:
                assert own.children is thing.children
                await copy.children.create("a")
                await own.children.create("b")
                await thing.children.create("c")
                for children in (thing.children, copy.children):
                    await seen(children, "abc")
                await thing.set("n", 1)
                await own.wait_for(lambda value: value["n"] == 1)
            await copy.children.create("d")
            for children in (thing.children, copy.children):
                await seen(children, "abcd")
