"""A group: goes down alone, stops in order with its parent."""

from functools import partial

import pytest
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.group import GroupSpec, start_group
from actors.kit.supervision.supervisor import ChildSpec, Intensity, open_supervisor
from tests.support.runtime.scribe import Count, Crash, Note, Scribe, Wait, deeds


def scribe(diary, name):
    return ChildSpec(name, partial(Scribe, diary))


async def test_a_group_that_gives_up_takes_nobody_with_it(diary, log_lines):
    async with open_supervisor("s") as parent:
        neighbour = await parent.start_child(scribe(diary, "neighbour"))
        group = await start_group(parent, GroupSpec("group", intensity=Intensity(0)))
        member = await group.start_child(scribe(diary, "member"))
        await member.tell(Crash())
        await member.wait_stopped()

        assert await neighbour.ask(Count) == 0
        with pytest.raises(ActorStoppedError):
            await group.start_child(scribe(diary, "late"))
    assert log_lines[-1]["actor"] == "group"


async def test_a_group_stops_with_its_parent_in_order_and_drained(diary):
    async with open_supervisor("s") as parent:
        await parent.start_child(scribe(diary, "before"))
        group = await start_group(parent, GroupSpec("group"))
        one = await group.start_child(scribe(diary, "one"))
        await group.start_child(scribe(diary, "two"))
        await one.tell(Note("handled"))
        await parent.start_child(scribe(diary, "after"))

    assert "one handled" in diary
    assert [deed for deed in deeds(diary) if "stops" in deed] == [
        "after stops",
        "two stops",
        "one stops",
        "before stops",
    ]


async def test_a_group_is_stopped_by_its_name(diary):
    async with open_supervisor("s") as parent:
        group = await start_group(parent, GroupSpec("group"))
        member = await group.start_child(scribe(diary, "member"))
        await parent.stop_child("group")

        with pytest.raises(ActorStoppedError):
            await member.tell(Note("too late"))
        assert diary[-1] == "member stops"


async def test_a_group_with_a_member_that_hangs_is_stopped_in_time(diary, autojump_clock):
    async with open_supervisor("s") as parent:
        group = await start_group(parent, GroupSpec("group"))
        member = await group.start_child(scribe(diary, "member"))
        await member.tell(Wait(trio.Event()))
        with trio.fail_after(3):
            await parent.stop_child("group")

    assert diary[-1] == "member stops"
