"""Hyperties that report and observe data objects by the words an application has (SYN-01..22)."""

import pytest
import trio

import actors
from tests.support.report_world import Closed, Open, world


class Guest(actors.Hyperty):
    """Observes whatever it is invited to."""

    def __init__(self):
        self.seen = []
        self.invited = []

    async def on_invited(self, invited):
        self.invited.append(invited)
        self.spawn(self.follow, invited.url)

    async def follow(self, url):
        async with self.observe(url) as copy:
            self.seen.append(dict(copy.value))
            async for state in copy.states():
                self.seen.append(dict(state.value))
        self.seen.append("gone")


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


async def test_outsiders_read_no_attribute(autojump_clock):
    """SYN-19."""
    async with world() as w:
        sensor, reader = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 20}) as thing:
            with pytest.raises(actors.ObjectError) as refused:
                await reader.read(thing.url, "t")
            assert refused.value.code == 401


async def test_a_reader_cannot_write_the_value(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 20}) as thing, watcher.observe(thing.url) as copy:
            for value in (copy.value, thing.value):
                with pytest.raises(TypeError):
                    value["t"] = 99


async def test_a_slow_reader_gets_the_newest_value_only(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, watcher.observe(thing.url) as copy:
            states = copy.states()
            for number in range(1, 500):
                await thing.set("t", number)
            await copy.wait_for(lambda value: value["t"] == 499)
            assert (await anext(states)).value["t"] == 499
            await thing.set("t", 500)
            assert (await anext(states)).value["t"] == 500


async def test_the_end_of_the_object_ends_the_loop(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with trio.open_nursery() as nursery:
            seen = []
            async with sensor.report("ctxt", {"t": 0}) as thing:
                await nursery.start(follow, watcher, thing.url, seen)
                await thing.set("t", 1)
                await trio.sleep(1)
        assert seen == [1, "over", "ctxt gone"]


async def follow(watcher, url, seen, *, task_status):
    async with watcher.observe(url) as copy:
        task_status.started()
        async for state in copy.states():
            seen.append(state.value["t"])
        seen.append("over")
        with pytest.raises(actors.ObjectError, match="deleted by its reporter") as gone:
            await copy.wait_for(lambda value: value["t"] == 2)
        assert gone.value.code == 410
        assert copy.is_gone
        seen.append("ctxt gone")


# --- who may observe ------------------------------------------------------------------------


async def test_an_uninvited_hyperty_is_refused_unless_the_reporter_admits_it(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Closed), await w.there.deploy(Closed)
        async with sensor.report("comm", {}) as thing:
            with pytest.raises(actors.ObjectError, match="ask its reporter") as refused:
                async with watcher.observe(thing.url):
                    pytest.fail("it was let in")
            assert (refused.value.code, refused.value.about) == (403, thing.url)


async def test_an_invited_hyperty_may_observe_and_knows_the_object(autojump_clock):
    async with world() as w:
        guests = [guest := Guest()]
        there = await w.there.deploy(lambda: guests[0])
        room = await w.here.deploy(Closed)
        async with room.report("comm", {"n": 0}, name="room", observers=(there.url,)) as thing:
            await trio.sleep(1)
            await thing.set("n", 1)
            await trio.sleep(1)
        await trio.sleep(1)
        assert guest.seen == [{"n": 0}, {"n": 1}, "gone"]
        (invited,) = guest.invited
        assert (invited.url, invited.reporter) == (thing.url, room.url)
        assert invited.schema.endswith("/dataschema/Communication")
        assert invited.shown["name"] == "room"


async def test_an_invitation_that_is_declined_is_reported(autojump_clock):
    async with world() as w:
        room, there = await w.here.deploy(Closed), await w.there.deploy(Closed)
        guest = await w.there.deploy(Guest)
        async with room.report("comm", {}) as thing:
            await thing.invite(guest.url)
            for nobody, code in ((there.url, 400), ("hyperty://a.ex/nobody", 404)):
                with pytest.raises(actors.ObjectError) as refused:
                    await thing.invite(nobody)
                assert refused.value.code == code


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
