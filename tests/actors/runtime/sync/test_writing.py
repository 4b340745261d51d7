"""Writing into a live value: published in order, bounded; failures reported (SYN-13..SYN-16)."""

import pytest
import trio

import actors
from specs.limits.protocol import MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.limits.sync import ABOUT_BYTES, WRITES_WAITING
from tests.actors.runtime.sync.apart_todo import Writer
from tests.support.report_world import Closed, Open, world

TODO = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"properties": {"done": {"type": "boolean"}}}},
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


async def test_a_write_that_the_schema_refuses_changes_nothing_and_is_not_published(autojump_clock):
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"items": [{"what": "tea"}]}, definition=TODO) as todo:
            with pytest.raises(actors.SchemaError) as refused:
                todo.data.items[0].done = "yes"
            assert (refused.value.path, refused.value.why) == (
                "items.0.done",
                'it is not of type "boolean"',
            )
            with pytest.raises(actors.SchemaError, match=r"^items\.0\.done: "):
                await todo.set("items.0.done", 1)
            with pytest.raises(actors.SchemaError, match=r"^items\.7: no such attribute"):
                await todo.set("items.7", {})
            assert dict(todo.value) == {"items": [{"what": "tea"}]}
            assert await todo.flush() == 1


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b"])
async def test_a_path_with_an_empty_part_is_refused_by_each_call(autojump_clock, path):
    """It would make, or remove, what has an empty name."""
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"a": {"": [1]}}) as thing:
            for call in (
                lambda: thing.set(path, 1),
                lambda: thing.set(path, None),
                lambda: thing.remove(path),
                lambda: thing.add(path, 1),
                lambda: thing.discard(path, 1),
            ):
                with pytest.raises(actors.SchemaError, match="a path has no empty parts"):
                    await call()
            assert (dict(thing.value), thing.version) == ({"a": {"": [1]}}, 1)


async def test_what_no_message_can_hold_is_refused_at_once_and_the_object_stays_readable(
    autojump_clock,
):
    """RELIABILITY L4: it would be written here, and never reach an observer."""
    text, many = "x" * (MAX_JSON_TEXT + 1), dict.fromkeys(map(str, range(MAX_JSON_KEYS + 1)), 1)
    async with world() as w:
        writer, watcher = await w.here.deploy(Open), await w.there.deploy(Open)
        for value in ({"a": text}, many):
            with pytest.raises(actors.SchemaError, match="at most"):
                async with writer.report("comm", value):
                    pytest.fail("it was reported")
        for large in ({"name": text}, {"resources": (text,)}):
            with pytest.raises(actors.ObjectError) as refused:
                async with writer.report("comm", {}, **large):
                    pytest.fail("it was reported")
            assert (refused.value.code, str(ABOUT_BYTES) in refused.value.why) == (413, True)
        async with writer.report("comm", {"n": 0}) as todo, watcher.observe(todo.url) as copy:
            for value in (text, [many]):
                with pytest.raises(actors.SchemaError, match=r"^a(\.0)?: .* at most"):
                    await todo.set("a", value)
                with pytest.raises(actors.SchemaError, match=r"^a(\.0)?: .* at most"):
                    todo.data.a = value
            for value in (text, [many]):
                for creator in (todo, copy):
                    with pytest.raises(actors.ObjectError) as refused:
                        await creator.children.create(value)
                    assert refused.value.code == 413
            await todo.set("n", 1)
            await copy.wait_for(lambda value: value["n"] == 1)
            late = await w.there.deploy(Open)
            async with late.observe(todo.url) as another:
                assert dict(another.value) == {"n": 1}


async def test_an_object_that_does_not_obey_from_the_beginning_never_is(autojump_clock):
    async with world() as w:
        writer = await w.here.deploy(Open)
        with pytest.raises(actors.SchemaError, match=r"^items: it is not of type"):
            async with writer.report("comm", {"items": 5}, definition=TODO):
                pytest.fail("it was reported")
        assert not w.objects()


async def test_calls_and_writes_share_one_order(autojump_clock):
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": [], "a": {}}) as todo:
            part = todo.data.a
            todo.data.n.append(1)
            assert await todo.add("n", 2) == 3
            assert await todo.set("a.b", 1) == 4
            part.c = 2
            assert todo.value["a"] == {"b": 1, "c": 2}
            assert await todo.set("a", {}) == 6
            with pytest.raises(actors.ObjectError, match="replaced or removed"):
                part.c = 3
            assert dict(todo.value) == {"n": [1, 2], "a": {}}


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


async def test_a_write_that_a_policy_refuses_is_reported_and_undone(autojump_clock):
    async with world(policy=Careful()) as w:
        writer, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with writer.report("comm", {"n": 0}) as todo, watcher.observe(todo.url) as copy:
            todo.data.n = 1
            todo.data.n = "secret"
            todo.data.m = 2
            with pytest.raises(actors.ObjectError, match="no secrets") as refused:
                await todo.flush()
            assert refused.value.code == 403
            # What came behind it is void, too: it was written to a value nobody else has.
            assert dict(todo.value) == {"n": 1}
            with pytest.raises(actors.ObjectError, match="no secrets"):
                todo.data.n = 3
            todo.data.n = 4
            assert await todo.flush() == 3
            await copy.wait_for(lambda value: value["n"] == 4)
            assert dict(copy.value) == dict(todo.value) == {"n": 4}


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


async def test_each_task_that_waits_for_all_to_be_published_is_sent_what_was_not(
    autojump_clock,
):
    reported = []

    async def flush(todo):
        try:
            reported.append(await todo.flush())
        except actors.ObjectError as error:
            reported.append(error.code)

    async with world(policy=Careful()) as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": 0}) as todo:
            todo.data.n = "secret"
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(flush, todo)
            assert reported == [403, 403, 403]
            # They were notified; a later one is not.
            assert await todo.flush() == 1


async def test_a_writer_that_waits_for_its_own_write_is_notified_of_it(autojump_clock):
    async with world(policy=Careful()) as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": 0}) as todo:
            with pytest.raises(actors.ObjectError, match="no secrets"):
                await todo.set("n", "secret")
            todo.data.n = 1
            assert await todo.flush() == 2


async def test_a_deleted_object_is_written_no_more(autojump_clock):
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": 0}) as todo:
            await todo.delete()
            todo.data.n = 1
            with pytest.raises(actors.ObjectError) as gone:
                await todo.flush()
            assert gone.value.code == 404
            for _ in range(2):
                with pytest.raises(actors.ObjectError):
                    todo.data.n = 2
            assert dict(todo.value) == {"n": 0}


async def test_an_undeployed_hyperty_writes_no_more(autojump_clock):
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": 0}) as todo:
            await writer.undeploy()
            todo.data.n = 1
            with pytest.raises(actors.ObjectError):
                await todo.flush()
            with pytest.raises(actors.ObjectError):
                todo.data.n = 2
            assert dict(todo.value) == {"n": 0}


async def test_leaving_publishes_what_still_waits(autojump_clock):
    """Seen by the versions that the object had when it was deleted."""
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": 0}) as todo:
            for number in range(1, 20):
                todo.data.n = number
        versions = [line.version for line in w.recorder.lines if line.op == "write"]
        assert max(versions) == 20


async def test_several_tasks_write_one_value(autojump_clock):
    async with world() as w:
        writer, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with writer.report("comm", {"log": []}) as todo, watcher.observe(todo.url) as copy:

            async def write(name):
                for number in range(10):
                    todo.data.log.append(f"{name}{number}")
                    await trio.sleep(0.001)
                    if number % 3 == 0:
                        await todo.set(name, number)

            async with trio.open_nursery() as nursery:
                for name in "abc":
                    nursery.start_soon(write, name)
            last = await todo.flush()
            await copy.wait_for(lambda _: copy.version == last)
            assert dict(copy.value) == dict(todo.value)
            for name in "abc":
                own = [one for one in todo.value["log"] if one.startswith(name)]
                assert own == [f"{name}{number}" for number in range(10)]


async def test_a_cancelled_wait_leaves_the_write(autojump_clock):
    async with world() as w:
        writer = await w.here.deploy(Open)
        async with writer.report("comm", {"n": 0}) as todo:
            with trio.CancelScope() as scope:
                scope.cancel()
                await todo.set("n", 1)
            assert await todo.flush() == 2
            assert todo.value["n"] == 1


@pytest.mark.timeout(240)
async def test_a_hyperty_in_a_process_of_its_own_writes_as_others_do():
    async with (
        actors.open_node("a.ex") as node,
        actors.open_runtime("a.ex", "ra", node=node.url) as runtime,
        await runtime.deploy_apart(Writer) as writer,
        await runtime.deploy(Closed) as reader,
    ):
        wrong = (await reader.request(writer.url, {"what": "tea"})).body["value"]
        assert wrong == 'items.0: "title" is a required property'
        url, version, value = (await reader.request(writer.url, {"title": "tea"})).body["value"]
        assert (version, value) == (3, {"items": [{"title": "tea", "done": False}]})
        async with reader.observe(url) as copy:
            assert dict(copy.value) == value
