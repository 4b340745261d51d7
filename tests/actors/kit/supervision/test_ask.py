"""Asks: one answer, to the one who still waits, or one error."""

from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.errors import ActorStoppedError, ReplyTwiceError
from actors.kit.supervision.actor import Reply
from actors.kit.supervision.supervisor import ChildSpec, Restart, open_supervisor
from tests.support.runtime.scribe import Count, Crash, Do, Keep, Note, Scribe, Wait, finish


@pytest.fixture
async def supervisor():
    async with open_supervisor("s") as opened:
        yield opened


@pytest.fixture
async def ref(supervisor, diary):
    spec = ChildSpec("a", partial(Scribe, diary), Restart.TEMPORARY, 2)
    return await supervisor.start_child(spec)


async def outcome_of(ask, outcomes):
    try:
        outcomes.append(await ask)
    except (ActorStoppedError, KeyError) as error:
        outcomes.append(error)


async def keep(ref, nursery, outcomes):
    nursery.start_soon(outcome_of, ref.ask(Keep), outcomes)
    await wait_all_tasks_blocked()


async def test_an_ask_returns_the_answer(ref):
    await ref.tell(Note("one"))
    assert await ref.ask(Count) == 1


async def test_an_answer_can_come_later_while_others_are_served(ref, nursery):
    outcomes = []
    await keep(ref, nursery, outcomes)
    assert await ref.ask(Count) == 0

    await ref.tell(Do(lambda actor: actor.kept.pop().send(7)))
    await wait_all_tasks_blocked()
    assert outcomes == [7]


async def test_an_ask_raises_what_it_was_failed_with(ref, nursery):
    outcomes = []
    await keep(ref, nursery, outcomes)
    await ref.tell(Do(lambda actor: actor.kept.pop().fail(KeyError("no"))))
    await wait_all_tasks_blocked()

    assert isinstance(outcomes[0], KeyError)


async def test_an_ask_to_an_actor_that_is_gone_fails_at_once(ref):
    await ref.tell(finish())
    await ref.wait_stopped()

    with pytest.raises(ActorStoppedError):
        await ref.ask(Count)


async def test_an_ask_whose_message_crashes_the_actor_fails_with_the_cause(ref):
    crash = ValueError("why")
    with pytest.raises(ActorStoppedError) as caught:
        await ref.ask(lambda _reply: Crash(crash))

    assert caught.value.__cause__ is crash


@pytest.mark.parametrize("end", [Crash(), finish()], ids=["crash", "finish"])
async def test_an_ask_kept_for_later_fails_when_the_actor_ends(ref, nursery, end):
    outcomes = []
    await keep(ref, nursery, outcomes)
    await ref.tell(end)
    await ref.wait_stopped()
    await wait_all_tasks_blocked()

    assert isinstance(outcomes[0], ActorStoppedError)


async def test_an_ask_still_in_the_mailbox_fails_when_the_actor_ends(ref, nursery):
    gate = trio.Event()
    outcomes = []
    await ref.tell(Wait(gate))
    await wait_all_tasks_blocked()
    await ref.tell(finish())
    nursery.start_soon(outcome_of, ref.ask(Count), outcomes)
    await wait_all_tasks_blocked()
    gate.set()
    await wait_all_tasks_blocked()

    assert isinstance(outcomes[0], ActorStoppedError)


async def test_an_ask_that_waits_for_space_fails_when_the_actor_ends(ref, nursery):
    gate = trio.Event()
    outcomes = []
    await ref.tell(Wait(gate))
    await wait_all_tasks_blocked()
    for _ in range(3):
        nursery.start_soon(outcome_of, ref.ask(lambda _reply: finish()), outcomes)
    await wait_all_tasks_blocked()
    gate.set()
    await wait_all_tasks_blocked()

    assert [type(outcome) for outcome in outcomes] == [ActorStoppedError] * 3


async def test_a_cancelled_ask_is_never_handled(ref, diary, autojump_clock):
    gate = trio.Event()
    await ref.tell(Wait(gate))
    with trio.move_on_after(1):
        await ref.ask(lambda _reply: Note("nobody waits for this"))
    gate.set()

    assert await ref.ask(Count) == 0


async def test_an_ask_cancelled_after_its_answer_was_sent_returns_it(ref):
    """Who answers an open reply knows that the answer is received."""
    scope = trio.CancelScope()

    def answer(actor):
        scope.cancel()
        reply = actor.kept.pop()
        assert reply.is_open
        reply.send(7)

    got = []
    with scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outcome_of, ref.ask(Keep), got)
            await wait_all_tasks_blocked()
            with trio.CancelScope(shield=True):
                await ref.tell(Do(answer))
                await wait_all_tasks_blocked()
    assert (got, scope.cancelled_caught) == ([7], False)


async def test_an_ask_cancelled_before_its_actor_ends_is_cancelled(nursery):
    """In one moment: the scope ends, and nothing leaves it."""
    reply, scope, ends = Reply(), trio.CancelScope(), []

    async def asking():
        with scope:
            await reply.get()
        ends.append(scope.cancelled_caught)

    nursery.start_soon(asking)
    await wait_all_tasks_blocked()
    scope.cancel()
    reply.lose(ActorStoppedError("a"))
    await wait_all_tasks_blocked()
    assert ends == [True]


async def test_an_ask_cancelled_while_it_waits_for_space_leaves_nothing(ref, autojump_clock):
    gate = trio.Event()
    await ref.tell(Wait(gate))
    await wait_all_tasks_blocked()
    await ref.tell(Note("one"))
    await ref.tell(Note("two"))
    with trio.move_on_after(1):
        await ref.ask(lambda _reply: Note("three"))
    gate.set()

    assert await ref.ask(Count) == 2


async def test_an_unawaited_answer_is_discarded(ref, autojump_clock):
    with trio.move_on_after(1):
        await ref.ask(Keep)
    await ref.tell(Do(lambda actor: actor.kept.pop().send(7)))

    assert await ref.ask(Count) == 0


async def test_a_second_answer_is_a_bug():
    reply = Reply[int]()
    reply.send(1)

    with pytest.raises(ReplyTwiceError):
        reply.send(2)
    with pytest.raises(ReplyTwiceError):
        reply.fail(ValueError())
    assert await reply.get() == 1


async def test_a_reply_handed_on_may_be_answered_after_its_first_owner_crashed(ref, nursery):
    outcomes, replies = [], []
    await keep(ref, nursery, outcomes)
    await ref.tell(Do(lambda actor: replies.append(actor.kept.pop())))
    await ref.tell(Crash())
    await ref.wait_stopped()

    replies[0].send(7)
    assert isinstance(outcomes[0], ActorStoppedError)


async def test_a_reply_knows_whether_its_requester_waits(ref, nursery, autojump_clock):
    known = []
    with trio.move_on_after(1):
        await ref.ask(Keep)
    await ref.tell(Do(lambda actor: known.append(actor.kept.pop().is_open)))
    await ref.ask(Count)

    assert known == [False]
