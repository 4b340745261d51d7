"""Changes, as the observers of an object get them (SYN-12, SYN-13, I-D3)."""

import gc

import pytest
import trio

import actors
from actors.runtime.objects.observation import ObservedObject
from fsm.sync.value.value import apply_change
from specs.bodies.object import Change
from specs.limits.sync import CHANGES_KEPT
from specs.reply_code import Code
from tests.support.report_world import Closed, Open, world

URL = "comm://a.ex/o1"


class Shown:
    """A copy, and its core's part: shows changes and snapshots."""

    def __init__(self, **data):
        self.copy = ObservedObject(URL, None)
        self.version, self.data = 1, data
        self.copy.show(1, data)

    def change(self, path, value, *how):
        self.version += 1
        change = Change(self.version, path, value, *how)
        self.data = apply_change(self.data, change)
        self.copy.show(self.version, self.data, change)

    def read(self, version, **data):
        self.version, self.data = version, data
        self.copy.show(version, data)


def reported(change):
    return change.path, change.old, change.new, change.version


async def take(changes):
    """All that is there to be reported."""
    found = []
    with trio.move_on_after(1):
        async for change in changes:
            found.append(change)  # noqa: PERF401 - what came in time counts
    return found


async def test_an_observer_that_keeps_up_is_sent_each_change(autojump_clock):
    shown = Shown(t=1, items=[{"done": "no"}])
    changes = shown.copy.changes()
    shown.change("t", 2)
    shown.change("items.0.done", "yes")
    shown.change("items", [5], "array", "add")
    shown.change("t", None)
    assert [reported(each) for each in await take(changes)] == [
        ("t", 1, 2, 2),
        ("items.0.done", "no", "yes", 3),
        ("items", [{"done": "yes"}], [{"done": "yes"}, 5], 4),
        ("t", 2, None, 5),
    ]


@pytest.mark.parametrize("behind", [CHANGES_KEPT, CHANGES_KEPT + 1])
async def test_an_observer_further_behind_than_the_limit_is_sent_the_difference(
    behind, autojump_clock
):
    shown = Shown(t=0, kept=1)
    changes = shown.copy.changes()
    for number in range(1, behind + 1):
        shown.change("t", number)
    found = await take(changes)
    exact = [("t", number - 1, number, number + 1) for number in range(1, behind + 1)]
    difference = [("t", 0, behind, behind + 1)]
    assert [reported(each) for each in found] == (exact if behind == CHANGES_KEPT else difference)


async def test_where_the_object_was_read_the_difference_is_reported_and_then_changes_again(
    autojump_clock,
):
    shown = Shown(t=0, gone=1)
    changes = shown.copy.changes()
    shown.change("t", 1)
    shown.read(9, t=8, new=1)
    shown.change("t", 9)
    assert [reported(each) for each in await take(changes)] == [
        ("t", 0, 9, 10),
        ("gone", 1, None, 10),
        ("new", None, 1, 10),
    ]
    shown.change("t", 10)
    assert [reported(each) for each in await take(changes)] == [("t", 9, 10, 11)]


async def test_several_readers_are_sent_each_by_itself(autojump_clock):
    shown = Shown(t=0)
    early = shown.copy.changes()
    shown.change("t", 1)
    late = shown.copy.changes()
    shown.change("t", 2)
    assert [each.version for each in await take(early)] == [2, 3]
    assert [each.version for each in await take(late)] == [3]


async def test_changes_before_the_end_are_reported_before_it(autojump_clock):
    shown = Shown(t=0)
    changes = shown.copy.changes()
    shown.change("t", 1)
    shown.copy.end(actors.ObjectError(URL, Code.GONE, "deleted"))
    assert [each.new async for each in changes] == [1]


async def test_changes_without_a_reader_are_not_kept():
    shown = Shown(t=0)
    changes = shown.copy.changes()
    shown.change("t", 1)
    assert len(shown.copy._log) == 1
    del changes
    gc.collect()
    shown.change("t", 2)
    assert len(shown.copy._log) == 0


async def test_a_reader_that_began_when_nothing_was_kept_misses_nothing(autojump_clock):
    shown = Shown(t=0)
    for number in range(1, 5):
        shown.change("t", number)
    changes = shown.copy.changes()
    shown.change("t", 5)
    assert [reported(each) for each in await take(changes)] == [("t", 4, 5, 6)]


async def test_an_observer_is_sent_what_its_reporter_changes(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with (
            sensor.report("ctxt", {"t": 20, "log": []}) as thing,
            watcher.observe(thing.url) as copy,
        ):
            changes = copy.changes()
            await thing.set("place.floor", 2)
            await thing.add("log", "a")
            await thing.remove("t")
            found = await take(changes)
            assert [reported(each) for each in found] == [
                ("place", None, {"floor": 2}, 2),
                ("log", [], ["a"], 3),
                ("t", 20, None, 4),
            ]


async def test_an_observer_cannot_change_a_value_in_place(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with (
            sensor.report("ctxt", {"deep": {"list": [1]}}) as thing,
            watcher.observe(thing.url) as copy,
            sensor.observe(thing.url) as beside,
        ):
            await thing.set("t", 1)
            await trio.sleep(1)
            for seen in (copy, beside):
                for write in (
                    lambda value: value["deep"].update(a=1),
                    lambda value: value["deep"]["list"].append(2),
                ):
                    with pytest.raises(TypeError, match="copy it first"):
                        write(seen.value)
                assert seen.value == {"deep": {"list": [1]}, "t": 1}


async def test_a_too_deep_path_is_refused_and_other_changes_are_unaffected(autojump_clock):
    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {}) as thing, watcher.observe(thing.url) as copy:
            body = {"resource": thing.url, "attribute": ".".join("a" * 8000), "value": 1}
            answer = await sensor.ask(f"{w.here.url}/sm", actors.MessageType.UPDATE, body)
            assert answer.code == 400
            await thing.set("t", 1)
            assert (await copy.wait_for(lambda value: "t" in value)).version == 2
