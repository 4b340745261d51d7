"""Tasks of called objects: they outlive the calls, and end with the runtime."""

import pytest
import trio
import trio.testing

from actors.kit.errors import ActorStoppedError, RestartLimitError
from actors.kit.supervision.actor import BackgroundTasks
from actors.kit.supervision.supervisor import ChildSpec, Intensity, open_supervisor


async def start(supervisor):
    tasks = BackgroundTasks()
    await supervisor.start_child(ChildSpec("background", lambda: tasks))
    return tasks


async def answer(reply, value):
    await trio.sleep(1)
    reply.send(value)


async def refuse(reply):
    await trio.sleep(1)
    reply.fail(KeyError("no"))


async def wait_forever(_):
    await trio.sleep_forever()


async def crash(_):
    await trio.sleep(1)
    raise ZeroDivisionError


async def test_a_call_returns_or_raises_what_its_task_replies(autojump_clock):
    async with open_supervisor("test") as supervisor:
        tasks = await start(supervisor)
        assert await tasks.ask(answer, 7) == 7
        with pytest.raises(KeyError):
            await tasks.ask(refuse)


async def test_a_cancelled_call_leaves_its_task_running(autojump_clock):
    seen = []

    async def look(reply):
        await trio.sleep(1)
        seen.append(reply.is_open)

    async with open_supervisor("test") as supervisor:
        tasks = await start(supervisor)
        with trio.move_on_after(0.5):
            await tasks.ask(look)
        assert not seen
        await trio.sleep(1)
    assert seen == [False]


async def test_a_call_that_waits_at_the_end_raises_and_so_does_one_after_it(autojump_clock):
    ends = []

    async def wait(tasks):
        try:
            await tasks.ask(answer, 7)
        except ActorStoppedError as error:
            ends.append(str(error))

    with trio.fail_after(5):
        async with trio.open_nursery() as outside, open_supervisor("test") as supervisor:
            tasks = await start(supervisor)
            outside.start_soon(wait, tasks)
            await trio.testing.wait_all_tasks_blocked()
        await wait(tasks)
    assert ends == ["actor 'background' has stopped"] * 2


async def test_an_error_in_a_task_is_a_crash_and_ends_the_calls(autojump_clock):
    ends = []

    async def wait(tasks, *work):
        try:
            await tasks.ask(*work)
        except ActorStoppedError:
            ends.append(work)

    async with trio.open_nursery() as outside:
        with pytest.RaisesGroup(RestartLimitError, flatten_subgroups=True):
            async with open_supervisor("test", intensity=Intensity(0)) as supervisor:
                tasks = await start(supervisor)
                outside.start_soon(wait, tasks, crash)
                outside.start_soon(wait, tasks, wait_forever)
                await trio.sleep_forever()
    assert len(ends) == 2
