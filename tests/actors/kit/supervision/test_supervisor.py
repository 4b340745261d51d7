"""Supervision: who is started again, with whom, how often, and who hears of it."""

import gc
import math
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.errors import (
    ActorStoppedError,
    NameTakenError,
    PartEndedError,
    RestartLimitError,
)
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Intensity,
    Restart,
    Strategy,
    open_supervisor,
)
from tests.support.runtime.scribe import Count, Crash, Note, Scribe, Wait, deeds, finish


def scribe(diary, name, restart=Restart.PERMANENT):
    return ChildSpec(name, partial(Scribe, diary), restart)


async def start_three(supervisor, diary):
    return [await supervisor.start_child(scribe(diary, name)) for name in "abc"]


async def test_a_restart_keeps_handle_and_mailbox_but_no_state(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary, "a"))
        await ref.tell(Note("before"))
        await ref.tell(Crash())
        await ref.tell(Note("after"))

        assert await ref.ask(Count) == 1
    assert deeds(diary) == ["a starts", "a before", "a stops", "a starts", "a after", "a stops"]


async def test_an_actor_that_runs_keeps_no_nursery_but_its_own(diary):
    def nurseries():
        gc.collect()
        return sum(isinstance(one, trio.Nursery) for one in gc.get_objects())

    async with open_supervisor("s") as supervisor:
        before = nurseries()
        children = await start_three(supervisor, diary)
        assert nurseries() == before + len(children)


@pytest.mark.parametrize(
    ("strategy", "deeds_of"),
    [
        (Strategy.ONE_FOR_ONE, ["b stops", "b starts"]),
        (Strategy.REST_FOR_ONE, ["b stops", "c stops", "b starts", "c starts"]),
        (
            Strategy.ONE_FOR_ALL,
            ["b stops", "c stops", "a stops", "a starts", "b starts", "c starts"],
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_a_crash_ends_the_actors_that_the_strategy_names(diary, strategy, deeds_of):
    async with open_supervisor("s", strategy) as supervisor:
        _, b, _ = await start_three(supervisor, diary)
        diary.clear()
        await b.tell(Crash())
        await wait_all_tasks_blocked()

        assert deeds(diary) == deeds_of


@pytest.mark.parametrize(
    ("restart", "end", "comes_back"),
    [
        (Restart.PERMANENT, Crash(), True),
        (Restart.PERMANENT, finish(), True),
        (Restart.TRANSIENT, Crash(), True),
        (Restart.TRANSIENT, finish(), False),
        (Restart.TEMPORARY, Crash(), False),
        (Restart.TEMPORARY, finish(), False),
    ],
    ids=lambda value: getattr(value, "name", type(value).__name__),
)
async def test_a_child_comes_back_as_its_kind_says(diary, restart, end, comes_back):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary, "a", restart))
        await ref.tell(end)
        await wait_all_tasks_blocked()

        assert diary.count("a starts") == (2 if comes_back else 1)
        assert supervisor.children == (("a",) if comes_back else ())


async def test_a_temporary_crash_ends_no_other_actor(diary):
    async with open_supervisor("s", Strategy.ONE_FOR_ALL) as supervisor:
        await supervisor.start_child(scribe(diary, "a"))
        b = await supervisor.start_child(scribe(diary, "b", Restart.TEMPORARY))
        await b.tell(Crash())
        await b.wait_stopped()

        assert deeds(diary) == ["a starts", "b starts", "b stops"]


async def test_a_temporary_child_goes_down_with_the_others_and_stays_down(diary):
    async with open_supervisor("s", Strategy.ONE_FOR_ALL) as supervisor:
        a = await supervisor.start_child(scribe(diary, "a"))
        b = await supervisor.start_child(scribe(diary, "b", Restart.TEMPORARY))
        await a.tell(Crash())
        await b.wait_stopped()
        await wait_all_tasks_blocked()

        assert deeds(diary)[2:] == ["a stops", "b stops", "a starts"]


async def test_too_many_crashes_escalate_with_their_cause(diary):
    crash = ValueError("again")
    with pytest.RaisesGroup(RestartLimitError) as caught:
        async with open_supervisor("s", intensity=Intensity(3, 60)) as supervisor:
            ref = await supervisor.start_child(scribe(diary, "a"))
            for _ in range(4):
                await ref.tell(Crash(crash))
            await trio.sleep_forever()

    error = caught.value.exceptions[0]
    assert (error.supervisor, error.child, error.__cause__) == ("s", "a", crash)
    assert diary.count("a starts") == 4


async def test_crashes_that_are_rare_enough_never_escalate(diary, autojump_clock):
    async with open_supervisor("s", intensity=Intensity(1, 10)) as supervisor:
        ref = await supervisor.start_child(scribe(diary, "a"))
        for _ in range(5):
            await ref.tell(Crash())
            await trio.sleep(11)

    assert diary.count("a starts") == 6


async def test_escalation_stops_the_siblings_in_reverse_order(diary):
    with pytest.RaisesGroup(RestartLimitError):
        async with open_supervisor("s", intensity=Intensity(0)) as supervisor:
            a, _, _ = await start_three(supervisor, diary)
            await a.tell(Crash())
            await trio.sleep_forever()

    assert deeds(diary)[3:] == ["a stops", "c stops", "b stops"]


async def test_the_first_start_error_comes_out_at_the_starter(diary):
    async with open_supervisor("s") as supervisor:
        with pytest.raises(KeyError):
            await supervisor.start_child(
                ChildSpec("a", partial(Scribe, diary, fails_to_start=KeyError("no")))
            )

        assert supervisor.children == ()
        await supervisor.start_child(scribe(diary, "a"))


async def test_an_error_of_the_maker_comes_out_at_the_starter():
    def refuse():
        raise KeyError("no actor")

    async with open_supervisor("s") as supervisor:
        with pytest.raises(KeyError):
            await supervisor.start_child(ChildSpec("a", refuse))


async def test_a_start_error_at_a_restart_counts_as_a_crash(diary, log_lines):
    failures = OSError("1"), OSError("2")
    errors = iter([None, *failures, None])

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(
            ChildSpec("a", lambda: Scribe(diary, fails_to_start=next(errors)))
        )
        await ref.tell(Crash())
        assert await ref.ask(Count) == 0

    assert deeds(diary) == ["a starts", "a stops", "a starts", "a stops"]
    logged = [line["exc_info"] for line in log_lines if line["event"] == "actor crashed"]
    assert logged[1:] == [*failures]


async def test_start_errors_at_restarts_escalate_at_last(diary):
    errors = iter([None, *[OSError(str(number)) for number in range(9)]])

    with pytest.RaisesGroup(RestartLimitError):
        async with open_supervisor("s") as supervisor:
            ref = await supervisor.start_child(
                ChildSpec("a", lambda: Scribe(diary, fails_to_start=next(errors)))
            )
            await ref.tell(Crash())
            await trio.sleep_forever()


async def test_a_name_is_given_once(diary):
    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(scribe(diary, "a"))
        with pytest.raises(NameTakenError):
            await supervisor.start_child(scribe(diary, "a"))

        await supervisor.stop_child("a")
        await supervisor.start_child(scribe(diary, "a"))


async def test_a_cancelled_start_leaves_no_child(autojump_clock):
    class Slow(Scribe):
        async def start(self):
            await trio.sleep_forever()

    async with open_supervisor("s") as supervisor:
        with trio.move_on_after(1):
            await supervisor.start_child(ChildSpec("slow", partial(Slow, [])))

        assert supervisor.children == ()


async def test_a_start_cancelled_as_it_returns_leaves_no_child(diary, autojump_clock):
    scope = trio.CancelScope()

    class Late(Scribe):
        async def start(self):
            scope.cancel()

        def deadline(self):
            return 60

        async def timed_out(self):
            self.finish()

    async with open_supervisor("s") as supervisor:
        with scope:
            await supervisor.start_child(ChildSpec("late", partial(Late, diary), Restart.TEMPORARY))

        assert (supervisor.children, trio.current_time()) == ((), 0)
        assert deeds(diary) == ["late stops"]


async def test_a_child_stopped_while_it_starts_is_an_error_at_the_starter(autojump_clock):
    class Slow(Scribe):
        async def start(self):
            await trio.sleep_forever()

    async with open_supervisor("s") as supervisor, trio.open_nursery() as nursery:
        nursery.start_soon(supervisor.stop_child, "slow")
        with pytest.raises(ActorStoppedError):
            await supervisor.start_child(ChildSpec("slow", partial(Slow, [])))


async def test_a_crash_beside_it_leaves_a_first_start_alone(diary, nursery):
    gate = trio.Event()

    class Slow(Scribe):
        async def start(self):
            await gate.wait()
            self.write("starts")

    async with open_supervisor("s", Strategy.ONE_FOR_ALL) as supervisor:
        a = await supervisor.start_child(scribe(diary, "a"))
        nursery.start_soon(supervisor.start_child, ChildSpec("slow", partial(Slow, diary)))
        await wait_all_tasks_blocked()
        await a.tell(Crash())
        await wait_all_tasks_blocked()
        gate.set()
        await wait_all_tasks_blocked()

        assert deeds(diary) == ["a starts", "a stops", "a starts", "slow starts"]


async def test_a_child_that_crashes_as_soon_as_it_has_started_is_restarted(diary):
    async def burst():
        raise OSError

    class Hasty(Scribe):
        async def start(self):
            self.write("starts")
            if diary.count("a starts") < 3:
                self.spawn(burst)

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Hasty, diary)))
        await wait_all_tasks_blocked()

        assert await ref.ask(Count) == 0
        assert diary.count("a starts") == 3


async def test_two_crashes_at_once_under_one_for_all_restart_all_children_once(diary):
    gate = trio.Event()
    async with open_supervisor("s", Strategy.ONE_FOR_ALL) as supervisor:
        a, b, _ = await start_three(supervisor, diary)
        for ref in (a, b):
            await ref.tell(Wait(gate))
            await ref.tell(Crash())
        gate.set()
        await wait_all_tasks_blocked()

        assert sorted(deeds(diary)).count("c starts") == 2


@pytest.mark.parametrize("strategy", [Strategy.ONE_FOR_ONE, Strategy.PEERS])
async def test_a_restart_that_hangs_does_not_keep_others_from_theirs(diary, strategy):
    gate = trio.Event()

    class Stuck(Scribe):
        async def start(self):
            self.write("begins")
            if "a starts" in diary:
                await gate.wait()
            self.write("starts")

    async with open_supervisor("s", strategy) as supervisor:
        a = await supervisor.start_child(ChildSpec("a", partial(Stuck, diary)))
        b = await supervisor.start_child(scribe(diary, "b"))
        for ref in (a, b):
            await ref.tell(Crash())
        await wait_all_tasks_blocked()
        assert (diary.count("a begins"), diary.count("b starts")) == (2, 2)
        gate.set()
        assert await a.ask(Count) == 0


async def test_a_crash_is_reported_to_the_log_with_its_traceback(diary, log_lines):
    crash = ValueError("why")
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary, "a"))
        await ref.tell(Crash(crash))
        await wait_all_tasks_blocked()

    assert log_lines[0] == {
        "event": "actor crashed",
        "actor": "a",
        "exc_info": crash,
        "log_level": "error",
    }


async def test_an_expected_end_is_one_line_of_the_log(diary, log_lines):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary, "a"))
        await ref.tell(Crash(PartEndedError("the process has ended")))
        await wait_all_tasks_blocked()

    (line,) = log_lines
    assert line["event"] == "part started again"
    assert (line["part"], line["why"]) == ("a", "the process has ended")
    assert "exc_info" not in line


async def test_a_child_that_is_given_up_is_not_logged_as_started_again(diary, log_lines):
    with pytest.RaisesGroup(RestartLimitError):
        async with open_supervisor("s", intensity=Intensity(0)) as supervisor:
            ref = await supervisor.start_child(scribe(diary, "a"))
            await ref.tell(Crash())
            await trio.sleep_forever()

    assert [line["event"] for line in log_lines] == ["actor crashed"]


async def test_a_blocked_sender_survives_the_restart_of_the_receiver(diary, nursery):
    gate = trio.Event()
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary), mailbox=1))
        await ref.tell(Wait(gate))
        await wait_all_tasks_blocked()
        await ref.tell(Crash())
        nursery.start_soon(ref.tell, Note("waited"))
        await wait_all_tasks_blocked()
        gate.set()
        await wait_all_tasks_blocked()

        assert "a waited" in diary


async def test_what_came_before_a_timer_is_handled_before_the_end_of_its_turn(diary):
    class Timed(Scribe):
        is_due = False

        def deadline(self):
            return -math.inf if self.is_due else math.inf

        async def handle(self, message):
            await super().handle(message)
            self.is_due = message.text == "first"

        async def timed_out(self):
            diary.append("timer")
            self.me.try_tell(Note("second"))

        async def drained(self):
            diary.append("end of a turn")

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Timed, diary)))
        await ref.tell(Note("first"))
        with trio.fail_after(60):
            while diary.count("end of a turn") < 2:
                await trio.lowlevel.checkpoint()
    turn = ["a second", "end of a turn"]
    at = diary.index("timer")
    assert diary[at : at + 3] == ["timer", *turn]
