"""Observers that ask again, and others for whom it is asked again (STB-09, SYN-16, I-D7)."""

import pytest
import trio

from specs.bodies.object import ObjectName
from specs.limits.protocol import RECONNECT_TRIES
from specs.limits.sync import BUSY_PAUSE, LEAVE_TRIES
from specs.message import Message, MessageType, refuse, reply_to
from tests.actors.runtime.sync.lone_observers import BOB, CAROL, URL, Lone


@pytest.mark.parametrize(("asks_again", "taken_back"), [(False, [BOB]), (True, [])])
async def test_a_late_timeout_takes_back_no_other_request(asks_again, taken_back):
    lone = Lone()
    first = lone.wanted(1)
    if asks_again:
        lone.wanted(2)
    lone.observed.objects[URL].answer(first, refuse(first, 408, "late"))
    assert lone.said_of(MessageType.UNSUBSCRIBE) == taken_back
    assert lone.observed.observers == ({BOB} if asks_again else set())


@pytest.mark.parametrize("number", [1, 2])
async def test_a_late_refusal_of_an_older_request_cuts_no_newer_one_off(number):
    """Neither by its own number nor while the newer request is being decided on."""
    lone = observing(BOB)
    lone.wanted(2)
    lone.observed.objects[URL].refuse_again(BOB, number)
    assert lone.observed.observers == {BOB}
    assert lone.said_of(MessageType.UNSUBSCRIBE) == []


async def test_a_late_refusal_of_an_older_request_cuts_no_admitted_one_off():
    lone = observing(BOB)
    second = lone.wanted(2)
    lone.observed.objects[URL].answer(second, reply_to(second, 200, {}))
    lone.observed.objects[URL].refuse_again(BOB, 1)
    assert lone.observed.objects[URL].admits(BOB)


async def test_a_leave_that_is_to_be_repeated_ends_with_a_new_request(autojump_clock):
    """While an object moves, its owner answers 503; the observer may be back before the repeat."""
    lone = observing(BOB)
    lone.jobs.clear()
    lone.bus.decide = lambda message: 503 if message.type is MessageType.UNSUBSCRIBE else 200
    request = Message(7, MessageType.UNSUBSCRIBE, BOB, lone.bus.url, {"resource": URL})
    lone.observed.leave(request, ObjectName(URL))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lone.run)
        await trio.sleep(BUSY_PAUSE / 2)
        lone.wanted(8)
    assert lone.said_of(MessageType.UNSUBSCRIBE) == [BOB]
    assert lone.observed.observers == {BOB}


async def test_no_path_is_set_for_an_object_that_was_closed_before():
    """Nothing would take it back: a later observer of the object may come by a link."""
    lone = Lone()
    lone.wanted(1)
    opening = lone.jobs.pop()
    request = Message(7, MessageType.UNSUBSCRIBE, BOB, lone.bus.url, {"resource": URL})
    lone.observed.leave(request, ObjectName(URL))
    await lone.run()
    assert not lone.observed.objects
    await opening()
    said = lone.bus.said
    assert [message for message in said if message.type is MessageType.SUBSCRIBE] == []
    assert [message.code for message in said if (message.to, message.id) == (BOB, 1)][-1] == 410


@pytest.mark.parametrize(("refusals", "times"), [(0, 1), (2, 3), (99, LEAVE_TRIES)])
async def test_a_leave_that_is_refused_for_now_is_said_again_some_times(
    refusals, times, autojump_clock
):
    lone = observing(BOB)
    lone.jobs.clear()
    codes = iter([503] * refusals)
    is_leave = MessageType.UNSUBSCRIBE
    lone.bus.decide = lambda message: next(codes, 200) if message.type is is_leave else 200
    request = Message(7, is_leave, BOB, lone.bus.url, {"resource": URL})
    lone.observed.leave(request, ObjectName(URL))
    await lone.run()
    assert lone.said_of(is_leave) == [BOB] * times


def observing(*observers):
    lone = Lone()
    for number, observer in enumerate(observers, 1):
        request = lone.wanted(number, observer)
        answer = reply_to(request, 200, {})
        lone.observed.objects[URL].answer(request, answer, is_first=number == 1)
    lone.jobs.clear()
    lone.bus.said.clear()
    lone.observed.renew_paths("a.ex")
    return lone


async def test_an_observer_that_has_left_meanwhile_is_not_asked_again():
    lone = observing(BOB, CAROL)

    def decide(message):
        if message.body.get("source") == BOB:
            del lone.observed.objects[URL].observers[CAROL]
        return 200

    lone.bus.decide = decide
    await lone.run()
    assert lone.said_of(MessageType.SUBSCRIBE) == [BOB]


@pytest.mark.parametrize("code", [404, 408, 503])
async def test_a_path_that_is_not_set_is_asked_for_again_before_the_owner_is(code, autojump_clock):
    """I-D4: without it no change comes here, though the owner says that all is well."""
    lone = observing(BOB)
    node, codes = "domain://msg-node.a.ex/sm", iter([code, code])
    lone.bus.decide = lambda message: next(codes, 200) if message.to == node else 200
    await lone.run()
    assert [m.to for m in lone.bus.said] == [*3 * [node], f"{URL}/subscription", BOB]


async def test_without_a_path_the_owner_is_asked_at_last_and_the_path_later(autojump_clock, caplog):
    """I-D4: what outlasts all tries at once is found all the same."""
    lone = observing(BOB)
    node = "domain://msg-node.a.ex/sm"
    codes = iter([503] * RECONNECT_TRIES)
    lone.bus.decide = lambda message: next(codes, 200) if message.to == node else 200
    await lone.run()
    asked = [f"{URL}/subscription", BOB]
    assert [m.to for m in lone.bus.said] == [*RECONNECT_TRIES * [node], *asked, node, *asked]
    assert [record.getMessage() for record in caplog.records] == [
        f"no path for an observed object url={URL}"
    ]


async def test_an_owner_that_cannot_answer_for_long_is_asked_again(autojump_clock):
    """I-D4: the node delivers to an observer only after the owner's yes has passed it."""
    lone = observing(BOB)
    codes = iter([503] * 3 * RECONNECT_TRIES)
    is_asked = f"{URL}/subscription"
    lone.bus.decide = lambda message: next(codes, 200) if message.to == is_asked else 200
    await lone.run()
    assert [m.to for m in lone.bus.said].count(is_asked) == 3 * RECONNECT_TRIES + 1
    assert lone.bus.said[-1].to == BOB


async def test_a_node_that_comes_and_goes_is_asked_by_one_task_only(autojump_clock):
    lone = observing(BOB)
    codes = iter([*[503] * RECONNECT_TRIES, 200, *[503] * RECONNECT_TRIES])
    node = "domain://msg-node.a.ex/sm"
    lone.bus.decide = lambda message: next(codes) if message.to == node else 200
    for _ in range(3):
        await lone.jobs.pop()()
        repeats = len(lone.jobs)
        lone.observed.renew_paths("a.ex")
    assert repeats == 1


async def test_a_path_of_what_is_observed_no_more_is_not_asked_for_again(autojump_clock):
    lone = observing(BOB)

    def decide(message):
        lone.observed.objects[URL].is_closing = True
        return 503

    lone.bus.decide = decide
    await lone.run()
    assert len(lone.bus.said) == 1


async def test_an_observer_that_is_not_readmitted_is_notified_and_receives_nothing():
    lone = observing(BOB, CAROL)
    lone.bus.decide = lambda message: 403 if message.body.get("source") == BOB else 200
    await lone.run()
    assert lone.observed.observers == {CAROL}
    assert ("unfollow", f"{URL}/changes", BOB) in lone.bus.done
    reported = [(m.type, m.to, m.body) for m in lone.bus.said if m.to == BOB]
    assert reported == [(MessageType.UNSUBSCRIBE, BOB, {"resource": URL})]


async def test_an_observer_that_left_during_the_path_set_up_is_not_asked_again():
    lone = Lone()
    request = lone.wanted(1)

    def decide(message):
        if not lone.said_of(MessageType.SUBSCRIBE):
            lone.observed.objects[URL].route.left(BOB)
        return 200

    lone.bus.decide = decide
    await lone.run()
    assert lone.said_of(MessageType.SUBSCRIBE) == []
    answers = [m for m in lone.bus.said if (m.to, m.id) == (BOB, request.id)]
    assert [answer.code for answer in answers] == [100, 410]
