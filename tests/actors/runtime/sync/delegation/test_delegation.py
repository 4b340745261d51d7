"""The reporter of a data object hands it over to another hyperty (SYN-26, M-54, I-D1, I-D2)."""

import pytest
import trio

import actors
from tests.support.report_world import Closed, Open, world
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork


class Heir(Open):
    """Takes every object over, and goes on with it until it is ordered to stop."""

    def __init__(self):
        self.things = []
        self.asked = []
        self.over = trio.Event()
        self.come = trio.Event()

    async def on_delegated(self, delegated):
        self.asked.append(delegated)
        self.spawn(self.go_on, delegated.url)

    async def go_on(self, url):
        async with self.taken_over(url) as thing:
            self.things.append(thing)
            self.come.set()
            await self.over.wait()

    async def has(self):
        await self.come.wait()
        return self.things[-1]


async def heir_of(runtime):
    heir = Heir()
    return heir, await runtime.deploy(lambda: heir)


async def test_another_runtime_of_the_domain_goes_on_with_the_object_and_its_observers(
    autojump_clock,
):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        beside = await w.here.deploy(Closed)
        heir, deployed = await heir_of(w.there)
        async with (
            sensor.report("ctxt", {"t": 20}, name="hall") as thing,
            watcher.observe(thing.url) as far,
            beside.observe(thing.url) as near,
        ):
            assert await thing.set("t", 21) == 2
            await thing.delegate(deployed.url)
            (asked,) = heir.asked
            assert (asked.url, asked.reporter) == (thing.url, sensor.url)
            with pytest.raises(actors.ObjectError, match="another hyperty reports it now"):
                await thing.set("t", 99)
            taken = await heir.has()
            assert (taken.url, taken.version, dict(taken.value)) == (thing.url, 3, {"t": 21})
            assert await taken.set("t", 22) == 4
            for copy in (far, near):
                state = await copy.wait_for(lambda value: value["t"] == 22)
                assert state.version == 4
            assert set(taken.observers) == {watcher.url, beside.url}
            heir.over.set()
            await trio.sleep(1)
            assert far.is_gone
            assert near.is_gone


async def test_the_machines_of_a_hand_over_are_traced_by_both_ends(autojump_clock):
    network, old, new = MemoryNetwork(), MemoryTracer(), MemoryTracer()
    async with (
        actors.open_node("a.ex", network=network) as node,
        actors.open_runtime("a.ex", "ra", node=node.url, network=network, trace=old) as here,
        actors.open_runtime("a.ex", "rb", node=node.url, network=network, trace=new) as there,
    ):
        sensor = await here.deploy(Open)
        heir, deployed = await heir_of(there)
        async with sensor.report("ctxt", {"t": 20}) as thing:
            await thing.delegate(deployed.url)
            await heir.has()
            heir.over.set()
    assert [f.new for f in old.facts if f.machine == "object_delegation"][-1] == "given"
    assert [f.new for f in new.facts if f.machine == "object_take_over"][-1] == "taken"


async def test_a_hyperty_of_the_same_runtime_goes_on_in_one_step(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        heir, deployed = await heir_of(w.here)
        async with (
            sensor.report("ctxt", {"t": 20}) as thing,
            watcher.observe(thing.url) as copy,
        ):
            await thing.delegate(deployed.url)
            taken = await heir.has()
            assert await taken.set("t", 21) == 3
            assert (await copy.wait_for(lambda value: value["t"] == 21)).version == 3
            with pytest.raises(actors.ObjectError, match="another hyperty reports it now"):
                thing.data.t = 5


async def test_a_declined_hand_over_leaves_everything_unchanged(autojump_clock):
    async with world() as w:
        sensor, other = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 20}) as thing, other.observe(thing.url) as copy:
            with pytest.raises(actors.ObjectError, match="does not take over") as refused:
                await thing.delegate(other.url)
            assert refused.value.code == 403
            assert await thing.set("t", 21) == 2
            await copy.wait_for(lambda value: value["t"] == 21)


@pytest.mark.parametrize(
    ("to", "code", "why"),
    [
        ("hyperty://b.ex/h", 403, "does not leave its domain"),
        ("hyperty-runtime://a.ex/rb/sm", 403, "a part of a runtime"),
        ("hyperty://a.ex/nobody", 404, "404"),
    ],
)
async def test_only_permitted_hyperties_can_be_handed_an_object(autojump_clock, to, code, why):
    async with world() as w:
        sensor = await w.here.deploy(Open)
        async with sensor.report("ctxt", {"t": 20}) as thing:
            with pytest.raises(actors.ObjectError, match=why) as refused:
                await thing.delegate(to)
            assert refused.value.code == code
            assert await thing.set("t", 21) == 2


async def test_an_object_is_delegated_several_times_and_back(autojump_clock):
    async with world() as w:
        watcher = await w.there.deploy(Closed)
        heirs = [await heir_of(runtime) for runtime in (w.here, w.there, w.here)]
        sensor = await w.there.deploy(Open)
        async with sensor.report("ctxt", {"t": 0}) as thing, watcher.observe(thing.url) as copy:
            holder = thing
            for number, (heir, deployed) in enumerate(heirs, 1):
                await holder.delegate(deployed.url)
                holder = await heir.has()
                await holder.set("t", number)
                assert (
                    await copy.wait_for(lambda v, n=number: v["t"] == n)
                ).version == 2 * number + 1


async def test_a_later_observer_finds_the_new_reporter_which_decides_on_it(autojump_clock):
    async with world() as w:
        sensor, late = await w.here.deploy(Closed), await w.here.deploy(Closed)
        heir, deployed = await heir_of(w.there)
        async with sensor.report("ctxt", {"t": 20}, name="hall") as thing:
            await thing.delegate(deployed.url)
            taken = await heir.has()
            await taken.set("t", 21)
            async with late.observe(thing.url) as copy:
                assert dict(copy.value) == {"t": 21}
                await taken.set("t", 22)
                await copy.wait_for(lambda value: value["t"] == 22)


async def test_an_observer_that_leaves_during_a_hand_over_is_absent_at_the_new_end(autojump_clock):
    async with world() as w:
        sensor, beside = await w.here.deploy(Open), await w.here.deploy(Closed)
        heir, deployed = await heir_of(w.there)
        taker = w.wire_of_observer().dialler
        async with sensor.report("ctxt", {"t": 20}) as thing, trio.open_nursery() as nursery:
            async with beside.observe(thing.url):
                taker.pattern = lambda _number, frame: (2.0 if b"take" in bytes(frame) else 0.0,)
                nursery.start_soon(thing.delegate, deployed.url)
                await trio.sleep(1)
                assert not heir.things
            taken = await heir.has()
            await trio.sleep(10)
            assert taken.observers == ()
