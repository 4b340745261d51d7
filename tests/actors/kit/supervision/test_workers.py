"""Work of one actor side by side: what a task for each piece promises, with fewer tasks."""

from contextvars import ContextVar, copy_context
from functools import partial
from types import coroutine

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import BATCH, ChildSpec, Restart, Workers, open_supervisor
from specs.limits.protocol import IDLE_WORKERS


class Foreman(Actor[object]):
    """Has each message, an async function, run beside its mailbox."""

    def __init__(self):
        self.workers = Workers(self, lambda piece: piece())

    async def handle(self, message):
        self.workers.give(message, copy_context())


class OneTaskEach(Actor[object]):
    """The same in the plain way."""

    async def handle(self, message):
        self.spawn(message)


class Foreign:
    """The loop of another library: Trio refuses it."""

    @coroutine
    def __await__(self):
        yield self


async def foreman(supervisor, make=Foreman):
    return await supervisor.start_child(ChildSpec("a", make, Restart.TEMPORARY))


async def test_pieces_begin_in_order_and_a_waiting_one_holds_nobody_up():
    began, ended, gate = [], [], trio.Event()

    async def piece(number):
        began.append(number)
        if number in {0, 2}:
            await gate.wait()
        ended.append(number)

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor)
        for number in range(5):
            await ref.tell(partial(piece, number))
        await wait_all_tasks_blocked()
        assert began == list(range(5))
        assert ended == [1, 3, 4]
        gate.set()
        await wait_all_tasks_blocked()
        assert sorted(ended[3:]) == [0, 2]


async def test_pieces_that_do_not_wait_share_a_task():
    tasks = []

    async def piece():
        tasks.append(trio.lowlevel.current_task())

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor)
        for _ in range(3):
            for _ in range(10):
                await ref.tell(piece)
            await wait_all_tasks_blocked()
    assert len(tasks) == 30
    assert len(set(tasks)) == 1


async def test_as_few_tasks_are_kept_as_were_said():
    gate, tasks = trio.Event(), set()

    async def piece():
        tasks.add(trio.lowlevel.current_task())
        await gate.wait()

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor)
        for _ in range(IDLE_WORKERS + 10):
            await ref.tell(piece)
        await wait_all_tasks_blocked()
        nursery = next(iter(tasks)).parent_nursery
        assert len(nursery.child_tasks) >= len(tasks) == IDLE_WORKERS + 10
        gate.set()
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == IDLE_WORKERS


async def test_others_run_between_many_pieces():
    ran, others = [], []

    async def piece():
        ran.append(None)
        if len(ran) == 1:
            trio.lowlevel.spawn_system_task(other)

    async def other():
        others.append(len(ran))

    class Many(Foreman):
        async def handle(self, message):
            for _ in range(3 * BATCH):
                await super().handle(message)

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor, Many)
        await ref.tell(piece)
        await wait_all_tasks_blocked()
    assert len(ran) == 3 * BATCH
    # It runs beside the second batch at the latest.
    assert others[0] <= 2 * BATCH


async def test_a_piece_runs_in_the_context_that_it_was_given():
    colour = ContextVar("colour", default="none")
    seen = []

    async def piece(own, *, waits):
        seen.append(colour.get())
        colour.set(own)
        if waits:
            await trio.lowlevel.checkpoint()
        seen.append(colour.get())

    class Coloured(Foreman):
        async def start(self):
            colour.set("actor")

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor, Coloured)
        for waits in (False, True, False):
            await ref.tell(partial(piece, f"red {waits}", waits=waits))
            await wait_all_tasks_blocked()
    inside = ["red False", "red True", "red False"]
    assert seen == [one for each in inside for one in ("actor", each)]


async def test_an_exception_is_a_crash_and_loses_no_piece():
    ran = []

    async def fails():
        raise LookupError("lost")

    async def follows():
        ran.append(None)

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor)
        for piece in (fails, follows, follows):
            await ref.tell(piece)
        error = await ref.wait_stopped()
    assert isinstance(error, LookupError)
    assert len(ran) == 2


async def test_an_open_cancel_scope_is_a_crash():
    async def leaves_it_open():
        trio.CancelScope().__enter__()

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor)
        await ref.tell(leaves_it_open)
        error = await ref.wait_stopped()
    assert isinstance(error, RuntimeError)
    assert "still within its child" in str(error)


async def test_an_await_that_trio_does_not_know_is_an_error_of_its_piece():
    refused = []

    async def piece():
        try:
            await Foreign()
        except TypeError:
            refused.append(None)

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor)
        await ref.tell(piece)
        await wait_all_tasks_blocked()
    assert refused == [None]


async def test_all_pieces_are_cancelled_at_the_end_of_the_actor(autojump_clock):
    ends = []

    async def piece():
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            ends.append("cancelled")
            raise

    class Last(Foreman):
        async def closing(self):
            # These have not begun when the tasks are cancelled.
            for _ in range(3):
                await self.handle(piece)

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor, Last)
        await ref.tell(piece)
        await wait_all_tasks_blocked()
        await ref.tell(piece)
    assert ends == ["cancelled"] * 5


async def test_a_piece_that_is_given_at_the_end_runs_although_idle_tasks_have_gone(autojump_clock):
    ran = []

    class Following(Foreman):
        async def handle(self, message):
            if message == "long":
                self.workers.give(self.long, copy_context())
            self.workers.give(self.short, copy_context())

        async def long(self):
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    # The idle task goes meanwhile.
                    await trio.sleep(0.1)
                self.workers.give(self.short, copy_context())

        async def short(self):
            ran.append(None)

    async with open_supervisor("s") as supervisor:
        ref = await foreman(supervisor, Following)
        await ref.tell("long")
        await wait_all_tasks_blocked()
        assert len(ran) == 1
    assert len(ran) == 2


async def in_a_scope():
    with trio.move_on_after(1):
        await trio.sleep_forever()


async def in_a_nursery():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 3)


STEPS = {
    "nothing": trio.lowlevel.checkpoint_if_cancelled,
    "checkpoint": trio.lowlevel.checkpoint,
    "sleep": partial(trio.sleep, 2),
    "scope": in_a_scope,
    "nursery": in_a_nursery,
}


def lives(make, plans):
    """Run pieces, each after a pause; return when each began and ended."""
    seen = {}

    async def piece(number, steps):
        began = trio.current_time()
        for step in steps:
            await STEPS[step]()
        seen[number] = (began, trio.current_time())

    async def main():
        async with open_supervisor("s") as supervisor:
            ref = await foreman(supervisor, make)
            for number, (steps, pause) in enumerate(plans):
                await ref.tell(partial(piece, number, steps))
                await trio.sleep(pause)
            await trio.sleep(20)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return seen


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(sorted(STEPS)), max_size=3), st.sampled_from([0, 0, 1])),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=40, deadline=None)
def test_the_lives_of_pieces_are_those_of_tasks_of_their_own(plans):
    assert lives(Foreman, plans) == lives(OneTaskEach, plans)
