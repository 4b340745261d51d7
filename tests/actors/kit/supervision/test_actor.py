"""What an actor may rely on: the order of its hooks, batches, timers, its own tasks."""

import math
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import BATCH, ChildSpec, Restart, open_supervisor
from tests.support.runtime.scribe import Count, Crash, Do, Note, Scribe, Wait, finish


def scribe(diary, name="a", restart=Restart.TEMPORARY, mailbox=1024):
    return ChildSpec(name, partial(Scribe, diary), restart, mailbox)


async def test_the_hooks_run_in_order(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Note("notes"))

    assert diary == ["a starts", "a notes", "a drained", "a takes leave", "a stops"]


async def test_a_child_knows_its_name_and_its_own_handle(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: diary.append(actor.me is ref)))

    assert True in diary
    assert ref.name == "a"


async def test_messages_of_one_sender_are_handled_in_order(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary, mailbox=2))
        for number in range(20):
            await ref.tell(Note(str(number)))

    noted = [entry[2:] for entry in diary if entry[2:].isdigit()]
    assert noted == [str(number) for number in range(20)]


async def test_a_batch_is_drained_once_and_bounded(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        for _ in range(BATCH + 1):
            await ref.tell(Note("notes"))
        await wait_all_tasks_blocked()

        assert diary.count("a drained") == 2
        assert diary.index("a drained") == 1 + BATCH


async def test_send_waits_and_try_send_refuses_while_a_mailbox_is_full(diary, autojump_clock):
    gate = trio.Event()
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary, mailbox=1))
        await ref.tell(Wait(gate))
        await wait_all_tasks_blocked()
        await ref.tell(Note("first"))

        assert not ref.try_tell(Note("refused"))
        with trio.move_on_after(5) as waiting:
            await ref.tell(Note("cancelled"))
        gate.set()
    assert waiting.cancelled_caught
    assert [entry for entry in diary if "first" in entry] == ["a first"]
    assert not any("cancelled" in entry or "refused" in entry for entry in diary)


async def test_a_timer_runs_when_it_is_due_and_not_before(diary, autojump_clock):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: setattr(actor, "due", trio.current_time() + 3)))
        await trio.sleep(2.9)
        assert "a timed out" not in diary
        await trio.sleep(0.2)

        assert "a timed out" in diary


async def test_a_timer_is_not_starved_by_a_busy_mailbox(diary, autojump_clock):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: setattr(actor, "due", trio.current_time())))
        for _ in range(3 * BATCH):
            await ref.tell(Note("notes"))
        await ref.ask(Count)

    first_batch = diary[: diary.index("a timed out")]
    assert len(first_batch) <= BATCH + 2


async def test_a_timer_that_is_due_at_once_does_not_starve_others(autojump_clock):
    class Restless(Actor[None]):
        async def handle(self, message):
            pass

        def deadline(self):
            return -math.inf

    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(ChildSpec("restless", Restless))
        with trio.move_on_after(1) as others:
            await trio.lowlevel.checkpoint()

    assert not others.cancelled_caught


async def test_spawned_work_that_moves_the_timer_wakes_the_actor(diary, autojump_clock):
    async def hurry(actor):
        actor.due = trio.current_time() + 1
        actor.wake()

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: actor.spawn(hurry, actor)))
        await trio.sleep(2)

        assert "a timed out" in diary


async def test_spawned_work_does_not_hold_up_the_mailbox(diary, autojump_clock):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: actor.spawn(trio.sleep_forever)))
        await ref.tell(Note("goes on"))
        assert await ref.ask(Count) == 1


async def test_a_crash_of_spawned_work_is_a_crash_of_the_actor(diary, log_lines):
    async def burst():
        raise OSError("spawned")

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: actor.spawn(burst)))
        await ref.wait_stopped()

    assert diary[-1] == "a stops"
    assert isinstance(log_lines[0]["exc_info"], OSError)


async def test_spawned_work_is_over_before_stop(diary):
    async def work(actor):
        try:
            await trio.sleep_forever()
        finally:
            actor.write("spawned work ends")

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: actor.spawn(work, actor)))
        await ref.ask(Count)

    assert diary[-3:] == ["a takes leave", "a spawned work ends", "a stops"]


async def test_nothing_can_be_spawned_before_start_and_after_stop(diary):
    actor = Scribe(diary)
    actor.name = "a"
    with pytest.raises(ActorStoppedError):
        actor.spawn(trio.sleep_forever)

    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(ChildSpec("a", lambda: actor))
    with pytest.raises(ActorStoppedError):
        actor.spawn(trio.sleep_forever)


async def test_an_actor_that_finishes_handles_nothing_more(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(finish())
        await ref.tell(Note("too late"))
        await ref.wait_stopped()

        assert "a too late" not in diary
        with pytest.raises(ActorStoppedError):
            await ref.tell(Note("gone"))
        assert not ref.try_tell(Note("gone"))
        assert supervisor.children == ()


async def test_spawned_work_can_finish_an_idle_actor(diary, autojump_clock):
    async def finish_later(actor):
        await trio.sleep(1)
        actor.finish()

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Do(lambda actor: actor.spawn(finish_later, actor)))
        with trio.fail_after(2):
            await ref.wait_stopped()

    assert diary[-1] == "a stops"


async def test_a_crash_in_stop_is_reported_and_affects_no_other_actor(diary, log_lines):
    class Clumsy(Scribe):
        async def stop(self):
            raise OSError("clumsy")

    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(scribe(diary))
        await supervisor.start_child(ChildSpec("clumsy", partial(Clumsy, diary)))

    assert diary[-1] == "a stops"
    assert log_lines[0]["actor"] == "clumsy"


async def test_stop_runs_after_a_crash_too(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Crash())
        await ref.wait_stopped()

        assert diary == ["a starts", "a stops"]


@pytest.mark.parametrize("error", [trio.WouldBlock(), trio.EndOfChannel()], ids=repr)
async def test_an_error_that_channels_use_too_is_a_crash_like_any_other(diary, log_lines, error):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Crash(error))
        await ref.wait_stopped()

    assert log_lines[0]["exc_info"] is error
