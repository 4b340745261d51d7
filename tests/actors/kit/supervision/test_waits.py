"""Whoever would close a circle of waits is notified at once; nobody else is."""

from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.errors import DeadlockError
from actors.kit.supervision.actor import Actor, Reply
from actors.kit.supervision.supervisor import ChildSpec, Restart, open_supervisor


@attrs.frozen
class Run:
    """Asks an actor to await something in its own task, and say what came of it."""

    work: Callable[[], Awaitable[object]]
    reply: Reply[object]


@attrs.frozen
class Later:
    """The same, but in a spawned task."""

    work: Callable[[], Awaitable[object]]
    reply: Reply[object]


@attrs.frozen
class Idle:
    pass


class Runner(Actor[Run | Later | Idle]):
    async def handle(self, message):
        match message:
            case Run(work, reply):
                await self._run(work, reply)
            case Later(work, reply):
                self.spawn(self._run, work, reply)

    async def _run(self, work, reply):
        try:
            reply.send(await work())
        except DeadlockError as error:
            reply.fail(error)


def run(ref, work):
    """Ask `ref` to do `work` in its own task."""
    return partial(ref.ask, partial(Run, work))


def later(ref, work):
    return partial(ref.ask, partial(Later, work))


async def nothing():
    return "done"


@pytest.fixture
async def supervisor():
    async with open_supervisor("s") as opened:
        yield opened


@pytest.fixture
async def trio_of(supervisor):
    async def start(mailbox=8):
        return [
            await supervisor.start_child(ChildSpec(name, Runner, Restart.TEMPORARY, mailbox))
            for name in "abc"
        ]

    return start


async def test_an_actor_that_asks_itself_is_reported(trio_of):
    a, _, _ = await trio_of()
    with pytest.raises(DeadlockError) as caught:
        await run(a, run(a, nothing))()

    assert caught.value.cycle == ("a", "a")


async def test_two_actors_that_ask_each_other_are_reported(trio_of):
    a, b, _ = await trio_of()
    with pytest.raises(DeadlockError) as caught:
        await run(a, run(b, run(a, nothing)))()

    assert caught.value.cycle == ("b", "a", "b")
    assert "b -> a -> b" in str(caught.value)


async def test_a_circle_of_three_is_named_whole(trio_of):
    a, b, c = await trio_of()
    with pytest.raises(DeadlockError) as caught:
        await run(a, run(b, run(c, run(a, nothing))))()

    assert caught.value.cycle == ("c", "a", "b", "c")


async def test_actors_go_on_after_a_deadlock_was_refused(trio_of):
    a, b, _ = await trio_of()
    with pytest.raises(DeadlockError):
        await run(a, run(b, run(a, nothing)))()

    assert await run(a, run(b, nothing))() == "done"
    assert await run(b, run(a, nothing))() == "done"


async def test_a_send_into_the_full_mailbox_of_an_actor_that_waits_for_us_is_reported(
    trio_of, nursery
):
    a, b, _ = await trio_of(mailbox=1)

    async def fill_then_overfill():
        await a.tell(Idle())
        await a.tell(Idle())

    with pytest.raises(DeadlockError):
        await run(a, run(b, fill_then_overfill))()


async def test_a_send_into_the_own_full_mailbox_is_reported(trio_of):
    a, _, _ = await trio_of(mailbox=1)

    async def overfill():
        await a.tell(Idle())
        await a.tell(Idle())

    with pytest.raises(DeadlockError):
        await run(a, overfill)()


async def test_work_beside_the_mailbox_may_ask_back(trio_of):
    a, b, _ = await trio_of()
    assert await later(a, run(b, run(a, nothing)))() == "done"


async def test_an_ask_that_is_answered_later_delays_no_other_message(trio_of, autojump_clock):
    a, b, _ = await trio_of()

    async def slow():
        await trio.sleep(5)
        return "slow"

    answers = []

    async def note(ask):
        answers.append(await ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(note, run(a, later(b, slow)))
        await wait_all_tasks_blocked()
        # b serves others while it owes a an answer, and may ask a.
        nursery.start_soon(note, run(b, run(a, nothing)))

    assert answers == ["slow", "done"]


async def test_many_actors_that_ask_each_other_from_side_tasks_raise_no_alarm(trio_of):
    a, b, c = await trio_of()
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(later(a, run(b, nothing)))
            nursery.start_soon(later(b, run(c, nothing)))
            nursery.start_soon(later(c, run(a, nothing)))


async def test_an_actor_that_was_just_released_raises_no_alarm(trio_of):
    a, b, _ = await trio_of()
    replies = []

    async def answer_and_ask_back():
        replies[0].send("free")
        return await run(a, nothing)()

    def kept(reply):
        replies.append(reply)
        return Run(answer_and_ask_back, reply=Reply())

    async def ask_b():
        return await b.ask(kept)

    assert await run(a, ask_b)() == "free"
    assert await run(b, nothing)() == "done"


async def test_an_actor_that_just_got_space_raises_no_alarm(trio_of, nursery):
    a, b, _ = await trio_of(mailbox=1)
    gate = trio.Event()
    answers = []

    async def note(ask):
        answers.append(await ask())

    nursery.start_soon(note, run(b, gate.wait))
    await wait_all_tasks_blocked()
    nursery.start_soon(note, run(b, run(a, nothing)))
    await wait_all_tasks_blocked()
    nursery.start_soon(note, run(a, partial(b.tell, Idle())))
    await wait_all_tasks_blocked()
    gate.set()
    await wait_all_tasks_blocked()

    assert answers == [None, None, "done"]


async def test_a_cancelled_wait_leaves_no_edge(trio_of, autojump_clock):
    a, b, _ = await trio_of()
    gate = trio.Event()

    async def give_up():
        with trio.move_on_after(1):
            await run(b, gate.wait)()

    await run(a, give_up)()
    gate.set()

    assert await run(b, run(a, nothing))() == "done"


async def test_a_child_that_asks_the_actor_that_starts_it_is_reported(supervisor, trio_of):
    a, _, _ = await trio_of()

    class Needy(Runner):
        async def start(self):
            await run(a, nothing)()

    async def start_needy():
        await supervisor.start_child(ChildSpec("needy", Needy))

    with pytest.raises(DeadlockError):
        await run(a, start_needy)()


async def test_an_actor_that_stops_itself_through_its_supervisor_is_reported(supervisor, trio_of):
    a, _, _ = await trio_of()
    with pytest.raises(DeadlockError):
        await run(a, partial(supervisor.stop_child, "a"))()
