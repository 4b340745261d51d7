"""Writing into a live value: published in order, bounded; failures reported (SYN-13..SYN-16)."""

import pytest

import actors
from specs.limits.sync import WRITES_WAITING
from tests.support.report_world import Closed, Open, world

TODO = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"properties": {"done": {"type": "boolean"}}}}
    },
}


class Careful(actors.Policy):
    """Lets nobody write a secret."""

    def refusal(self, message, by):
        is_secret = message.type is actors.MessageType.UPDATE and "secret" in str(message.body)
        return "no secrets" if is_secret else None


async def test_writes_are_in_the_value_at_once_and_reach_observers_in_order(autojump_clock):
    async with world() as w:
        writer, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with (
            writer.report("comm", {"items": []}, definition=TODO) as todo,
            watcher.observe(todo.url) as copy,
        ):
            todo.data.title = "shopping"
            todo.data.items.append({"what": "milk"})
            todo.data.items.extend([{"what": "bread"}, {"what": "tea"}])
            todo.data.items[1].done = True
            del todo.data.items[0]
            assert todo.value == todo.data
            assert todo.version == 1
            assert await todo.flush() == todo.version == 6
            await copy.wait_for(lambda value: len(value["items"]) == 2)
            assert (copy.version, dict(copy.value)) == (6, dict(todo.value))
            assert [item.what for item in todo.data.items] == ["bread", "tea"]


async def test_more_writes_than_may_wait_are_refused_and_change_nothing(autojump_clock):
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": 0}) as todo:
            for number in range(1, WRITES_WAITING + 1):
                todo.data.n = number
            with pytest.raises(actors.ObjectError) as refused:
                todo.data.n = -1
            assert refused.value.code == 503
            assert todo.value["n"] == WRITES_WAITING
            # Who waits for its writes waits for room, too.
            assert await todo.set("n", -1) == WRITES_WAITING + 2
            assert todo.value["n"] == -1


async def test_a_part_that_a_failed_write_has_moved_is_no_part_any_more(autojump_clock):
    async with world(policy=Careful()) as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"l": [{"k": 1}, {"k": 2}]}) as todo:
            part = todo.data.l[0]
            todo.data.n = "secret"
            todo.data.l.insert(0, {"k": 0})
            with pytest.raises(actors.ObjectError, match="no secrets"):
                await todo.flush()
            with pytest.raises(actors.ObjectError, match="replaced or removed"):
                part.k = 3
