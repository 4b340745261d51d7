"""Observers in the runtime that reports, and reporters that observe (SYN-06, SYN-24, I-D9)."""

import trio

import actors
from tests.actors.runtime.objects.test_children import seen
from tests.support.report_world import Open, world


async def test_a_neighbour_that_leaves_takes_nothing_from_the_reporter(autojump_clock):
    """Both listen where children are reported, and have one path at the node."""
    async with world() as w:
        alice, dave = await w.here.deploy(Open), await w.here.deploy(Open)
        bob = await w.there.deploy(Open)
        async with alice.report("comm", {"n": 0}) as thing, bob.observe(thing.url) as copy:
            async with dave.observe(thing.url):
                pass
            await copy.children.create("hi")
            await seen(thing.children, ["hi"])
            await thing.set("n", 1)
            with trio.fail_after(1):
                await copy.wait_for(lambda value: value["n"] == 1)


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


class Slow(actors.Hyperty):
    """Lets one observer in at once, and others when it is ordered to."""

    def __init__(self):
        self.first = None
        self.decide = trio.Event()

    async def on_subscribe(self, url, observer):
        if self.first is not None and observer != self.first:
            await self.decide.wait()


async def test_an_unadmitted_observer_receives_nothing_beside_an_admitted_one(autojump_clock):
    """The node lets changes through for a runtime, not for one observer (I-D9)."""
    room = Slow()
    async with world() as w:
        alice = await w.here.deploy(lambda: room)
        bob, carol = await w.there.deploy(Open), await w.there.deploy(Open)
        room.first = carol.url
        async with (
            trio.open_nursery() as nursery,
            alice.report("comm", {"n": 0}) as thing,
        ):
            versions = []

            async def observe():
                async with bob.observe(thing.url) as copy:
                    versions.append(copy.version)
                    await copy.wait_for(lambda value: value["n"] == 3)
                    versions.append(copy.version)

            nursery.start_soon(observe)
            await trio.sleep(1)
            async with carol.observe(thing.url) as copy:
                await thing.set("n", 1)
                await copy.wait_for(lambda value: value["n"] == 1)
                await trio.sleep(1)
                assert not [line for line in w.recorder.lines if reported_to(line, bob.url)]
                room.decide.set()
                await trio.sleep(1)
                await thing.set("n", 3)
                await trio.sleep(1)
            assert versions == [2, 3]
            assert [line for line in w.recorder.lines if reported_to(line, bob.url)]


def reported_to(line, url):
    """Whether a line tells that a change was given to a hyperty."""
    is_given = line.k == "msg" and line.op == "deliver" and line.listener == url
    return is_given and line.to.endswith("/changes")
