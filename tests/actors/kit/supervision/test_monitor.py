"""What no table declares is traced, counted and logged, once; the supervisor decides."""

from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.counters import Counters
from actors.kit.errors import RestartLimitError
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Intensity,
    Monitor,
    Restart,
    Strategy,
    open_supervisor,
)
from fsm.engine import Entity
from fsm.judge.trace_line import Claim, Verdict, read_record
from fsm.judge.verdict import judge
from fsm.table import UndeclaredTransitionError
from specs.trace import Fact, Kind, Op
from tests.support.runtime.scribe import Count, Crash, Do, Note, Scribe, deeds
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.tables import DOOR, Push
from tests.support.trace.trace_files import records, whole

REFUSED = Fact(k=Kind.STATE, op=Op.REFUSED, machine="door", key="front", old="open", cause="open")


class Watch:
    """A monitor and all it writes to."""

    def __init__(self) -> None:
        self.tracer = MemoryTracer()
        self.counters = Counters()
        self.monitor = Monitor(self.tracer, self.counters)


@pytest.fixture
def watch():
    return Watch()


def misstep():
    """Open a door that is open."""
    entity = Entity(DOOR, "front")
    entity.step(Push.BUILD)
    entity.step(Push.OPEN)


def error():
    with pytest.raises(UndeclaredTransitionError) as caught:
        misstep()
    return caught.value


async def misstep_later():
    await trio.lowlevel.checkpoint()
    misstep()


async def misstep_when_cancelled():
    try:
        await trio.sleep_forever()
    finally:
        misstep()


class Clumsy(Scribe):
    """Missteps at one place of its first life."""

    def __init__(self, diary, place):
        super().__init__(diary)
        self.place = place if "a stops" not in diary else None

    def trip(self, place):
        if place == self.place:
            misstep()

    async def start(self):
        await super().start()
        if self.place == "work beside the mailbox":
            self.spawn(misstep_later)
        if self.place == "two tasks at once":
            self.spawn(misstep_when_cancelled)
            self.spawn(misstep_later)
        if self.place == "timer":
            self.due = trio.current_time() + 1

    async def handle(self, message):
        self.trip("message")
        await super().handle(message)

    async def drained(self):
        self.trip("end of a batch")

    async def timed_out(self):
        self.trip("timer")

    async def stop(self):
        await super().stop()
        self.trip("end")


# fmt: off
PLACES = [
    ("message",                 1),
    ("end of a batch",          1),
    ("timer",                   1),
    ("work beside the mailbox", 1),
    ("two tasks at once",       2),
]
# fmt: on


@pytest.mark.parametrize(("place", "count"), PLACES, ids=[place for place, _ in PLACES])
async def test_wherever_an_actor_missteps_it_is_seen_and_the_actor_restarted(
    place, count, watch, diary, autojump_clock
):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Clumsy, diary, place)))
        await ref.tell(Note("one"))
        await trio.sleep(2)

        assert watch.tracer.records == [("a", REFUSED)] * count
        assert watch.counters.monitor_violations == count
        assert watch.counters.violations == {"door": count}
        assert diary.count("a starts") == 2
        await ref.ask(Count)


async def test_a_misstep_at_the_end_is_seen_too(watch, diary):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        await supervisor.start_child(ChildSpec("a", partial(Clumsy, diary, "end")))
    assert watch.tracer.records == [("a", REFUSED)]


async def test_a_misstep_is_seen_though_the_actor_then_fails_to_stop(watch, diary):
    class Stuck(Scribe):
        async def stop(self):
            raise OSError("jammed")

    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        spec = ChildSpec("a", partial(Stuck, diary), Restart.TEMPORARY)
        ref = await supervisor.start_child(spec)
        await ref.tell(Do(lambda _: misstep()))
        await ref.wait_stopped()
    assert watch.tracer.records == [("a", REFUSED)]


async def test_a_misstep_in_the_first_start_is_seen_and_comes_out_at_the_starter(watch, diary):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        with pytest.raises(UndeclaredTransitionError):
            await supervisor.start_child(
                ChildSpec("a", partial(Scribe, diary, fails_to_start=error()))
            )
    assert watch.tracer.records == [("a", REFUSED)]


async def test_a_misstep_in_a_restart_is_seen(watch, diary):
    errors = iter([None, error(), None])
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        ref = await supervisor.start_child(
            ChildSpec("a", lambda: Scribe(diary, fails_to_start=next(errors)))
        )
        await ref.tell(Crash())
        assert await ref.ask(Count) == 0
    assert watch.tracer.records == [("a", REFUSED)]


async def test_a_step_error_is_logged_with_all_its_names(watch, diary, log_lines):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary)))
        await ref.tell(Crash(error()))
        await wait_all_tasks_blocked()

    assert log_lines[0] == {
        "event": "monitor violation",
        "actor": "a",
        "machine": "door",
        "key": "front",
        "state": "open",
        "trigger": "open",
        "log_level": "error",
    }
    assert log_lines[1]["event"] == "actor crashed"


async def test_a_step_of_what_does_not_exist_is_reported_as_such(watch):
    with pytest.raises(UndeclaredTransitionError) as caught:
        Entity(DOOR, "front").step(Push.OPEN)
    watch.monitor.record_crash("a", caught.value)
    assert watch.tracer.facts[0].old == "[*]"


async def test_without_a_monitor_of_its_own_a_supervisor_still_reports_the_log(diary, log_lines):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary)))
        await ref.tell(Crash(error()))
        await wait_all_tasks_blocked()
    assert log_lines[0]["event"] == "monitor violation"


async def test_a_misstep_that_another_error_was_raised_from_is_seen(watch):
    refused = error()
    with pytest.raises(OSError) as caught:  # noqa: PT011 - ours
        raise OSError("jammed") from refused
    watch.monitor.record_crash("a", caught.value)
    assert watch.tracer.records == [("a", REFUSED)]


async def test_any_other_crash_is_no_violation(watch, diary):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary)))
        await ref.tell(Crash(ExceptionGroup("two", [ValueError(), KeyError()])))
        await wait_all_tasks_blocked()
    assert (watch.tracer.facts, watch.counters.monitor_violations) == ([], 0)


@pytest.mark.parametrize(
    ("strategy", "affected"),
    [
        (Strategy.ONE_FOR_ONE, ["b stops", "b starts"]),
        (Strategy.REST_FOR_ONE, ["b stops", "c stops", "b starts", "c starts"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_the_strategy_says_which_children_end_together(strategy, affected, watch, diary):
    async with open_supervisor("s", strategy, monitor=watch.monitor) as supervisor:
        _, b, _ = [
            await supervisor.start_child(ChildSpec(name, partial(Scribe, diary))) for name in "abc"
        ]
        diary.clear()
        await b.tell(Do(lambda _: misstep()))
        await wait_all_tasks_blocked()

        assert deeds(diary) == affected
    assert watch.counters.monitor_violations == 1


async def test_too_many_missteps_end_the_supervisor_and_each_is_counted(watch, diary):
    with pytest.RaisesGroup(RestartLimitError) as caught:
        async with open_supervisor(
            "s", intensity=Intensity(2, 60), monitor=watch.monitor
        ) as supervisor:
            ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary)))
            for _ in range(3):
                await ref.tell(Crash(error()))
            await trio.sleep_forever()

    assert isinstance(caught.value.exceptions[0].__cause__, UndeclaredTransitionError)
    assert watch.counters.monitor_violations == 3


async def test_an_error_passed_on_to_the_requester_is_reported_by_the_first_actor(watch, diary):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:

        async def start_b(scribe):
            await supervisor.start_child(ChildSpec("b", partial(Scribe, [], error())))

        ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary)))
        await ref.tell(Do(lambda scribe: scribe.spawn(start_b, scribe)))
        await wait_all_tasks_blocked()

    assert watch.tracer.records == [("b", REFUSED)]
    assert diary.count("a starts") == 2


async def test_a_temporary_child_is_seen_and_stays_down(watch, diary):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        spec = ChildSpec("a", partial(Scribe, diary), Restart.TEMPORARY)
        ref = await supervisor.start_child(spec)
        await ref.tell(Crash(error()))
        await ref.wait_stopped()
        assert supervisor.children == ()
    assert watch.counters.monitor_violations == 1


async def test_the_judge_finds_it_in_the_trace(watch, diary):
    async with open_supervisor("s", monitor=watch.monitor) as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary)))
        await ref.tell(Crash(error()))
        await wait_all_tasks_blocked()

    lines = map(read_record, records(whole(watch.tracer.facts)))
    judged = judge(lines, machines={"door": DOOR})
    assert (judged.verdict, judged.by_claim) == (Verdict.VIOLATIONS, {Claim.REFUSED_STEP: 1})
