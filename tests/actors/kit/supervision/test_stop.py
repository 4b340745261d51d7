"""Stopping: in reverse order, within bounds, and nothing is lost without a word."""

from contextlib import suppress
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.supervisor import ChildSpec, Restart, Strategy, open_supervisor
from specs.limits.protocol import DRAIN_TIMEOUT, GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from tests.support.runtime.scribe import Count, Crash, Do, Note, Scribe, Wait, deeds, finish

UPDATE = Message(1, MessageType.UPDATE, "hyperty://a.ex/1", "hyperty://a.ex/2")


class Box:
    """Keeps dead letters."""

    def __init__(self):
        self.letters = []

    def __call__(self, actor, message):
        self.letters.append((actor, message))


def scribe(diary, name="a", make=Scribe):
    return ChildSpec(name, partial(make, diary), Restart.TEMPORARY)


async def test_children_stop_in_reverse_order_of_their_start(diary):
    async with open_supervisor("s") as supervisor:
        for name in "abc":
            await supervisor.start_child(scribe(diary, name))
        diary.clear()

    assert deeds(diary) == ["c stops", "b stops", "a stops"]


async def test_messages_in_the_mailbox_are_handled_before_the_stop(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        for number in range(200):
            await ref.tell(Note(str(number)))

    assert diary.index("a 199") < diary.index("a takes leave") < diary.index("a stops")


async def test_an_actor_that_stops_itself_ends_when_its_time_is_over(diary, autojump_clock):
    class StopsItself(Scribe):
        async def handle(self, message):
            await supervisor.stop_child(self.name)

    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary, make=StopsItself))
        await ref.tell(Note("stop"))
        await ref.wait_stopped()
        assert trio.current_time() == GOODBYE_TIMEOUT + DRAIN_TIMEOUT


async def test_work_that_comes_when_an_actor_ends_is_refused_at_any_moment(diary):
    """No moment between its last task and its end lets a caller fail otherwise."""
    for steps in range(12):
        made = []

        def make(kept=made):
            kept.append(Scribe(diary))
            return kept[0]

        async with open_supervisor("s") as supervisor:
            await supervisor.start_child(ChildSpec("a", make, Restart.TEMPORARY))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(supervisor.stop_child, "a")
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                with suppress(ActorStoppedError):
                    made[0].spawn(trio.sleep, 0)


async def test_a_child_can_send_to_earlier_children_until_its_end(diary):
    class Messenger(Scribe):
        async def stop(self):
            await first.tell(Note("farewell heard"))

    async with open_supervisor("s") as supervisor:
        first = await supervisor.start_child(scribe(diary, "first"))
        await supervisor.start_child(scribe(diary, "second", Messenger))

    assert "first farewell heard" in diary


async def test_an_error_inside_stops_all_in_reverse_order(diary):
    with pytest.RaisesGroup(KeyError):
        async with open_supervisor("s") as supervisor:
            for name in "abc":
                await supervisor.start_child(scribe(diary, name))
            raise KeyError

    assert deeds(diary)[3:] == ["c stops", "b stops", "a stops"]


async def test_a_cancellation_inside_stops_all_in_reverse_order(diary):
    with trio.CancelScope() as scope:
        async with open_supervisor("s") as supervisor:
            for name in "abc":
                await supervisor.start_child(scribe(diary, name))
            scope.cancel()
            await trio.sleep_forever()

    assert deeds(diary)[3:] == ["c stops", "b stops", "a stops"]


async def test_a_child_that_hangs_is_stopped_by_force_in_time(diary, autojump_clock, log_lines):
    began = trio.current_time()
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Wait(trio.Event()))

    assert trio.current_time() - began == pytest.approx(GOODBYE_TIMEOUT)
    assert diary[-1] == "a stops"
    assert "stopped by force" in [line["event"] for line in log_lines]


class Stuck(Scribe):
    async def stop(self):
        await trio.sleep_forever()


async def test_a_stop_that_hangs_is_cut_off_in_time(diary, autojump_clock):
    began = trio.current_time()
    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(scribe(diary, "a", Stuck))

    assert trio.current_time() - began == pytest.approx(GOODBYE_TIMEOUT)


async def test_many_that_hang_are_all_stopped_within_the_drain_time(diary, autojump_clock):
    began = trio.current_time()
    async with open_supervisor("s") as supervisor:
        for number in range(20):
            ref = await supervisor.start_child(scribe(diary, str(number), Stuck))
            await ref.tell(Wait(trio.Event()))

    assert trio.current_time() - began <= DRAIN_TIMEOUT


async def test_peers_that_hang_keep_each_other_from_nothing(diary, autojump_clock):
    """Each has the time to stop that one alone would have had."""
    began = trio.current_time()
    async with open_supervisor("s", Strategy.PEERS) as supervisor:
        for number in range(300):
            ref = await supervisor.start_child(scribe(diary, str(number), Stuck))
            await ref.tell(Wait(trio.Event()))

    assert trio.current_time() - began == pytest.approx(2 * GOODBYE_TIMEOUT)


async def test_peers_are_killed_at_once(diary, autojump_clock):
    with trio.CancelScope() as scope:
        async with open_supervisor("s", Strategy.PEERS) as supervisor:
            for number in range(300):
                await supervisor.start_child(scribe(diary, str(number), Stuck))
            began = trio.current_time()
            scope.cancel()

    assert trio.current_time() - began == pytest.approx(GOODBYE_TIMEOUT)


async def test_stop_child_stops_one_and_comes_back_when_it_is_gone(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Note("handled"))
        await supervisor.stop_child("a")

        assert deeds(diary) == ["a starts", "a handled", "a stops"]
        assert supervisor.children == ()
        with pytest.raises(ActorStoppedError):
            await ref.tell(Note("too late"))
        await supervisor.stop_child("a")


async def test_a_cancelled_stop_child_stops_by_force(diary, autojump_clock):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(Wait(trio.Event()))
        with trio.move_on_after(0.1):
            await supervisor.stop_child("a")

        assert supervisor.children == ()
    assert diary[-1] == "a stops"


async def test_a_crash_during_the_stop_causes_no_restart(diary):
    async with open_supervisor("s") as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", partial(Scribe, diary)))
        await ref.tell(Crash())

    assert diary.count("a starts") == 1


async def test_no_child_is_started_while_the_supervisor_stops(diary):
    class Late(Scribe):
        async def stop(self):
            with pytest.raises(ActorStoppedError):
                await supervisor.start_child(scribe(diary, "late"))
            self.write("was refused")

    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(scribe(diary, "a", Late))

    assert diary[-1] == "a was refused"


async def test_an_unhandled_message_is_a_dead_letter(diary):
    box = Box()
    async with open_supervisor("s", dead_letters=box) as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(finish())
        await ref.tell(Note("lost"))
        await ref.wait_stopped()

    assert box.letters == [("a", Note("lost"))]


async def test_an_ask_is_no_dead_letter_its_asker_knows(diary, nursery):
    box = Box()
    async with open_supervisor("s", dead_letters=box) as supervisor:
        ref = await supervisor.start_child(scribe(diary))
        await ref.tell(finish())
        with pytest.raises(ActorStoppedError):
            await ref.ask(Count)

    assert box.letters == []


async def test_an_interrupt_is_not_counted_as_a_crash(diary):
    async def interrupt():
        await trio.lowlevel.checkpoint()
        raise KeyboardInterrupt

    with pytest.RaisesGroup(KeyboardInterrupt, flatten_subgroups=True):
        async with open_supervisor("s") as supervisor:
            ref = await supervisor.start_child(scribe(diary))
            await ref.tell(Do(lambda actor: actor.spawn(interrupt)))
            await trio.sleep_forever()

    assert diary[-1] == "a stops"


async def test_blocked_senders_hear_that_the_actor_stopped(diary, nursery):
    outcomes = []

    async def tell():
        with pytest.raises(ActorStoppedError):
            await ref.tell(Note("never"))
        outcomes.append("reported")

    gate = trio.Event()
    async with open_supervisor("s") as supervisor:
        spec = ChildSpec("a", partial(Scribe, diary), Restart.TEMPORARY, 1)
        ref = await supervisor.start_child(spec)
        await ref.tell(Wait(gate))
        await wait_all_tasks_blocked()
        await ref.tell(Note("first"))
        nursery.start_soon(tell)
        await wait_all_tasks_blocked()
        nursery.start_soon(supervisor.stop_child, "a")
        await wait_all_tasks_blocked()
        gate.set()

    assert outcomes == ["reported"]
