"""How reporting and observing end: refusals, faults, waits that are cancelled (SYN-01..22)."""

import pytest
import trio

import actors
from tests.support.report_world import Closed, Open, world

# --- refusals and ends ----------------------------------------------------------------------


async def test_an_unreported_object_is_not_found(autojump_clock):
    async with world() as w:
        there = await w.there.deploy(Closed)
        with pytest.raises(actors.ObjectError) as refused:
            async with there.observe("comm://a.ex/nothing"):
                pytest.fail("there is nothing")
        assert refused.value.code == 404


async def test_a_hyperty_observes_an_object_once_at_a_time(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {}) as thing:
            async with there.observe(thing.url) as copy:
                with pytest.raises(actors.ObjectError, match="share it") as refused:
                    async with there.observe(thing.url):
                        pytest.fail("twice")
                assert refused.value.code == 409
                await thing.set("t", 1)
                await copy.wait_for(lambda value: value.get("t") == 1)
            async with there.observe(thing.url) as copy:
                assert copy.value["t"] == 1


async def test_the_end_of_the_block_unsubscribes(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {}) as thing:
            async with there.observe(thing.url):
                assert [new for _, new in w.steps("object_subscription", "ra")][-1] == "active"
            assert ("unsubscribe", "removed") in w.steps("object_subscription", "ra")


async def test_a_schema_without_addresses_is_refused(autojump_clock):
    async with world() as w:
        sensor = await w.here.deploy(Open)
        with pytest.raises(actors.ObjectError, match="the weather object: 400") as refused:
            async with sensor.report("weather", {}):
                pytest.fail("there are no such objects")
        assert refused.value.code == 400


async def test_the_end_of_the_block_deletes_the_object(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {}) as thing:
            pass
        with pytest.raises(actors.ObjectError) as refused:
            await thing.set("t", 1)
        assert refused.value.code == 404
        with pytest.raises(actors.ObjectError) as refused:
            async with there.observe(thing.url):
                pytest.fail("it is deleted")
        assert refused.value.code == 404


async def test_an_undeployed_hyperty_reports_and_observes_nothing(autojump_clock):
    async with world() as w:
        sensor, other = await w.here.deploy(Open), await w.there.deploy(Open)
        async with (
            sensor.report("ctxt", {}) as thing,
            other.report("ctxt", {}) as another,
            sensor.observe(another.url) as copy,
            other.observe(thing.url) as gone,
        ):
            await sensor.undeploy()
            with pytest.raises(actors.ObjectError) as refused:
                await thing.set("t", 1)
            assert refused.value.code == 410
            with pytest.raises(actors.ObjectError, match="deleted"):
                await gone.wait_for(lambda value: "t" in value)
            await another.set("t", 1)
            await trio.sleep(1)
            assert copy.version == 1


async def test_an_error_in_the_block_comes_out_as_itself(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        with pytest.raises(ZeroDivisionError):
            async with sensor.report("ctxt", {}) as thing, there.observe(thing.url):
                _ = 1 / 0


# --- faults ---------------------------------------------------------------------------------


async def test_changes_that_are_lost_are_made_up_for_by_a_read(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            w.lose_at_observer(lambda frame: '"attribute":"t","value":1' in frame)
            for number in (1, 2):
                await thing.set("t", number)
            await thing.set("u", 3)
            state = await copy.wait_for(lambda value: value.get("u") == 3)
            assert dict(state.value) == {"t": 2, "u": 3}
        assert "stale" in [new for _, new in w.steps("observer_copy", "rb")]


async def test_a_copy_survives_a_crash_of_its_reader(autojump_clock):
    async with world() as w:
        there = await w.there.deploy(Fragile)
        sensor = await w.here.deploy(Open)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            assert (await there.request(there.url, "crash")).code == 503
            await thing.set("t", 1)
            await copy.wait_for(lambda value: value["t"] == 1)


class Fragile(actors.Hyperty):
    async def on_request(self, message):
        self.spawn(self.fall)
        await trio.sleep_forever()

    async def fall(self):
        raise RuntimeError


class Busy(actors.Hyperty):
    """Reports by itself, in each of its lives."""

    def __init__(self, urls):
        self.urls = urls

    async def started(self):
        self.spawn(self.work)

    async def work(self):
        async with self.report("ctxt", {}) as thing:
            self.urls.append(thing.url)
            await trio.sleep_forever()

    async def on_request(self, message):
        self.spawn(self.fall)
        await trio.sleep_forever()

    async def fall(self):
        raise RuntimeError


async def test_objects_that_a_hyperty_itself_reports_end_with_it(autojump_clock):
    async with world() as w:
        urls = []
        busy, there = await w.here.deploy(lambda: Busy(urls)), await w.there.deploy(Closed)
        await trio.sleep(1)
        assert (await there.request(busy.url)).code == 503
        await trio.sleep(2)
        first, second = urls
        assert first != second
        with pytest.raises(actors.ObjectError) as refused:
            async with there.observe(first):
                pytest.fail("it is deleted")
        assert refused.value.code == 404


async def test_cancelled_waits_leave_the_copy_as_it_was(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            with trio.move_on_after(1) as scope:
                await copy.wait_for(lambda value: value["t"] == 9)
            assert scope.cancelled_caught
            with trio.move_on_after(1) as scope:
                await anext(copy.changes())
            assert scope.cancelled_caught
            await thing.set("t", 1)
            assert (await copy.wait_for(lambda value: value["t"] == 1)).version == 2


async def test_a_cancelled_report_leaves_no_object(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        w.slow_down(0.2)
        with trio.move_on_after(0.1) as scope:
            async with sensor.report("ctxt", {}):
                pytest.fail("it was cancelled before")
        assert scope.cancelled_caught
        (url,) = w.objects()
        with pytest.raises(actors.ObjectError) as refused:
            async with there.observe(url):
                pytest.fail("it is deleted")
        assert refused.value.code == 404


async def test_a_report_that_is_cancelled_and_then_refused_raises_nothing(autojump_clock):
    async with world() as w:
        sensor = await w.here.deploy(Open)
        w.slow_down(0.2)
        with trio.move_on_after(0.1) as scope:
            async with sensor.report("weather", {}):
                pytest.fail("there are no such objects")
        assert scope.cancelled_caught


class Ponderous(actors.Hyperty):
    async def on_subscribe(self, url, observer):
        await trio.sleep(5)


async def test_a_cancelled_observation_leaves_no_subscription(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Ponderous), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {}) as thing:
            with trio.move_on_after(1) as scope:
                async with there.observe(thing.url):
                    pytest.fail("it was cancelled before")
            assert scope.cancelled_caught
            await trio.sleep(10)
            ends = [new for _, new in w.steps("object_subscription", "ra")]
            assert ends[-1] in {"refused", "removed"}
            async with there.observe(thing.url) as copy:
                assert copy.version == 1


async def test_several_writers_at_once_leave_one_value_everywhere(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {}) as thing, there.observe(thing.url) as copy:
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(thing.add, "all", number)
            state = await copy.wait_for(lambda value: len(value.get("all", [])) == 50)
            assert state.value["all"] == thing.value["all"]
            assert sorted(state.value["all"]) == list(range(50))
            assert state.version == thing.version == 51
