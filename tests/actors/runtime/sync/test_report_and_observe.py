"""Hyperties that report and observe data objects by the words an application has (SYN-01..22)."""

import pytest

import actors
from tests.support.report_world import Closed, Open, world


async def test_an_observer_has_the_value_and_follows_each_change(autojump_clock):
    """SYN-02: paths and listeners of the object are there."""
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with (
            sensor.report("ctxt", {"t": 20, "off": 1}, name="hall") as thing,
            watcher.observe(thing.url) as copy,
        ):
            assert thing.url.startswith("ctxt://a.ex/")
            assert (copy.version, dict(copy.value)) == (1, {"t": 20, "off": 1})
            assert await thing.set("t", 21) == thing.version == 2
            assert await thing.remove("off") == 3
            assert await thing.set("place.floor", 2) == 4
            assert await thing.add("log", "a", "b", "a") == 5
            assert await thing.discard("log", "a") == 6
            state = await copy.wait_for(lambda value: value.get("log") == ["b"])
            expected = {"t": 21, "place": {"floor": 2}, "log": ["b"]}
            assert (state.version, dict(state.value)) == (6, expected)
            assert dict(thing.value) == expected


async def test_a_value_or_one_attribute_is_read_without_observing(autojump_clock):
    """MSG-11, M-41."""
    async with world() as w:
        sensor, reader = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 20, "log": [{"n": None}]}, public=True) as thing:
            assert await reader.read(thing.url) == {"t": 20, "log": [{"n": None}]}
            assert await reader.read(thing.url, "log.0") == {"n": None}
            assert await reader.read(thing.url, "log.0.n") is None
            with pytest.raises(actors.ObjectError, match="the object has no log") as refused:
                await reader.read(thing.url, "log.1")
            assert refused.value.code == 404
            with pytest.raises(ValueError, match="empty"):
                await reader.read(thing.url, "")
            with pytest.raises(TypeError):
                (await reader.read(thing.url))["t"] = 1
            record = await reader.read_record(thing.url)
            assert record["reporter"] == sensor.url
            assert await w.there.read_record(sensor.url, "status") == "live"
            with pytest.raises(actors.SearchError) as unknown:
                await reader.read_record(thing.url, "no")
            assert unknown.value.code == 404
            assert thing.observers == ()


# --- who may observe ------------------------------------------------------------------------


class Doorman(actors.Hyperty):
    def __init__(self):
        self.asked = []

    async def on_subscribe(self, url, observer):
        self.asked.append((url, observer))
        if len(self.asked) == 1:
            raise actors.Refused(actors.Code.FORBIDDEN, "not yet")


async def test_the_reporter_decides_each_time_and_sees_the_observer(autojump_clock):
    """SYN-11."""
    async with world() as w:
        doorman = Doorman()
        room, there = await w.here.deploy(lambda: doorman), await w.there.deploy(Closed)
        async with room.report("comm", {}) as thing:
            with pytest.raises(actors.ObjectError):
                async with there.observe(thing.url):
                    pytest.fail("it was let in")
            async with there.observe(thing.url):
                assert doorman.asked == [(thing.url, there.url)] * 2


async def test_a_hyperty_may_observe_what_it_reports(autojump_clock):
    async with world() as w:
        room = await w.here.deploy(Closed)
        async with room.report("comm", {}) as thing, room.observe(thing.url) as copy:
            await thing.set("t", 1)
            assert (await copy.wait_for(lambda value: "t" in value)).version == 2
